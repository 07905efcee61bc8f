// Package load generates the traffic of the scenarios. It uses wrk for closed loops, and implements loads that wrk does not
// support: an open loop with a constant rate, idle connections, and clients that never read.
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

// Wrk is a call of wrk. The name of the script is relative to the working directory.
type Wrk struct {
	Threads, Connections int
	Script               string // empty for report.lua
	ScriptArgs           []string
	Headers              []string
	Path                 string
	TLS                  bool
}

// WrkResult has the counts of a call.
type WrkResult struct {
	Duration         time.Duration
	Requests, Bytes  int64 // Bytes counts the bytes of all responses, also of responses that are incomplete at the end
	P50, P99, P999   time.Duration
	Connect, IO      int64 // Connect counts failed connects; IO counts failed reads and writes
	Status, Timeouts int64 // Status counts responses with status 400 and above; Timeouts counts requests without a response after two seconds
}

// Errors counts all requests without a successful response.
func (r WrkResult) Errors() int64 { return r.Connect + r.IO + r.Status + r.Timeouts }

// Without subtracts the counts of began, a shorter call that begins in the same way. Percentiles and errors remain those of
// r.
func (r WrkResult) Without(began WrkResult) WrkResult {
	r.Duration -= began.Duration
	r.Requests -= min(began.Requests, r.Requests)
	r.Bytes -= min(began.Bytes, r.Bytes)
	return r
}

// Command returns the command that runs wrk against addr for d. wrk accepts only whole seconds. Therefore the command has the
// next number of whole seconds, and wrk is interrupted after d. wrk then prints its counts.
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

// wrkDuration rounds d up to whole seconds.
func wrkDuration(d time.Duration) string {
	return strconv.Itoa(int((d+time.Second-1)/time.Second)) + "s"
}

// Run runs wrk on the given cores for d.
func (w Wrk) Run(ctx context.Context, dir, addr string, cores []int, d time.Duration) (WrkResult, error) {
	out, err := proc.Run(ctx, w.Command(dir, addr, cores, d))
	if err != nil {
		return WrkResult{}, err
	}
	return ParseWrk(out)
}

// ParseWrk parses the line that the script report.lua prints.
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
