// Package load generates the traffic of the scenarios. It uses wrk for closed loops. It implements what wrk does not support:
// an open loop at a constant rate, idle connections, and clients that never read.
package load

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

// Wrk is one call of wrk. Names of scripts are relative to the working directory.
type Wrk struct {
	Threads, Connections int
	Script               string // "": report.lua
	ScriptArgs           []string
	Headers              []string
	Path                 string
	TLS                  bool
}

// WrkResult holds the counts of a call.
type WrkResult struct {
	Duration         time.Duration
	Requests, Bytes  int64 // Bytes are those of responses, including incomplete ones at the end
	P50, P99, P999   time.Duration
	Connect, IO      int64 // failed connects; failed reads and writes
	Status, Timeouts int64 // responses of 400 and above; requests without a response after two seconds
}

// Errors counts all requests without a successful response.
func (r WrkResult) Errors() int64 { return r.Connect + r.IO + r.Status + r.Timeouts }

// Without subtracts the counts of began, a shorter call with the same beginning. Percentiles and errors remain those of r.
func (r WrkResult) Without(began WrkResult) WrkResult {
	r.Duration -= began.Duration
	r.Requests -= min(began.Requests, r.Requests)
	r.Bytes -= min(began.Bytes, r.Bytes)
	return r
}

// Command returns the call against addr for d. wrk accepts whole seconds only. d is rounded up to seconds, and wrk is
// interrupted after d. It then prints its counts.
func (w Wrk) Command(dir, addr string, cores []int, d time.Duration) proc.Command {
	script := w.Script
	if script == "" {
		script = "report.lua"
	}
	args := []string{
		"-t" + strconv.Itoa(w.Threads), "-c" + strconv.Itoa(w.Connections),
		"-d" + wrkDuration(d), "-s", "loads/" + script,
	}
	for _, header := range w.Headers {
		args = append(args, "-H", header)
	}
	scheme := "http://"
	if w.TLS {
		scheme = "https://"
	}
	args = append(args, scheme+addr+w.Path)
	if len(w.ScriptArgs) > 0 {
		args = append(append(args, "--"), w.ScriptArgs...)
	}
	command := proc.Command{Path: "wrk", Args: args, Dir: dir, Cores: cores}
	if d%time.Second != 0 {
		command.Interrupt = d
	}
	return command
}

// wrkDuration rounds up to whole seconds, as wrk requires.
func wrkDuration(d time.Duration) string {
	return strconv.Itoa(int((d+time.Second-1)/time.Second)) + "s"
}

// Run runs the call on the given cores.
func (w Wrk) Run(ctx context.Context, dir, addr string, cores []int, d time.Duration) (WrkResult, error) {
	out, err := proc.Run(ctx, w.Command(dir, addr, cores, d))
	if err != nil {
		return WrkResult{}, err
	}
	return ParseWrk(out)
}

// ParseWrk parses the line that report.lua prints.
func ParseWrk(out string) (WrkResult, error) {
	for line := range strings.Lines(out) {
		text, found := strings.CutPrefix(line, "compare: ")
		if !found {
			continue
		}
		var raw struct {
			Duration int64 `json:"duration_us"`
			Requests int64
			Bytes    int64
			Connect  int64
			Read     int64
			Write    int64
			Status   int64
			Timeout  int64
			P50      int64 `json:"p50_us"`
			P99      int64 `json:"p99_us"`
			P999     int64 `json:"p999_us"`
		}
		if err := json.Unmarshal([]byte(text), &raw); err != nil {
			return WrkResult{}, fmt.Errorf("read wrk's counts: %w", err)
		}
		if raw.Duration <= 0 {
			return WrkResult{}, fmt.Errorf("read wrk's counts: it ran for %d µs", raw.Duration)
		}
		us := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
		return WrkResult{
			Duration: us(raw.Duration), Requests: raw.Requests, Bytes: raw.Bytes,
			P50: us(raw.P50), P99: us(raw.P99), P999: us(raw.P999),
			Connect: raw.Connect, IO: raw.Read + raw.Write, Status: raw.Status, Timeouts: raw.Timeout,
		}, nil
	}
	return WrkResult{}, fmt.Errorf("read wrk's counts: no line of report.lua in %q", out)
}
