// Package load makes the traffic of the scenarios: wrk for closed loops, and what wrk cannot do:
// an open loop at a constant rate, connections that stay idle, and clients that never read.
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

// Wrk is one call of wrk. Scripts are named as in the folder it runs in.
type Wrk struct {
	Threads, Connections int
	Script               string // "": report.lua
	ScriptArgs           []string
	Headers              []string
	Path                 string
	TLS                  bool
}

// WrkResult is what a call counted.
type WrkResult struct {
	Duration         time.Duration
	Requests, Bytes  int64 // Bytes of answers, those cut off at the end included
	P50, P99, P999   time.Duration
	Connect, IO      int64 // failed connects; failed reads and writes
	Status, Timeouts int64 // answers of 400 and above; requests unanswered after two seconds
}

// Errors counts everything that was not a good answer.
func (r WrkResult) Errors() int64 { return r.Connect + r.IO + r.Status + r.Timeouts }

// Without takes away what a shorter call that began alike has counted. Percentiles and errors stay those of r.
func (r WrkResult) Without(began WrkResult) WrkResult {
	r.Duration -= began.Duration
	r.Requests -= min(began.Requests, r.Requests)
	r.Bytes -= min(began.Bytes, r.Bytes)
	return r
}

// Command is the call against addr for d. wrk knows whole seconds only: of those it is given d rounded
// up, and interrupted when d is over. It then counts what it has.
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

// wrkDuration rounds up to the whole seconds that wrk takes.
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

// ParseWrk finds the line that report.lua prints.
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
