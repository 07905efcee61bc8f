//go:build linux

package load

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// OpenLoop sends requests at a constant rate whatever the server does, as many independent clients
// would. A request's latency runs from the moment it was due, not from when a connection was free
// for it: a server that falls behind does not slow down those who measure it ("coordinated
// omission", Gil Tene).
type OpenLoop struct {
	Addr, Path  string
	Rate        float64 // requests per second
	Duration    time.Duration
	Connections int           // the most requests on the wire at once
	Patience    time.Duration // after this, from the due moment, a client gives up
	// LeadIn is for how long before Duration requests come at a quarter of Rate. They are not counted: a service
	// meets more than it can serve when it is running, and its clients are connected.
	LeadIn time.Duration
}

// OpenLoopResult is what became of the requests that fell due.
type OpenLoopResult struct {
	Due        int64 `json:"due"`
	Answered   Class `json:"answered"` // status 200 to 399
	Rejected   Class `json:"rejected"` // 503
	Other      int64 `json:"other"`    // other statuses
	Unanswered int64 `json:"unanswered"`
	All        Class `json:"all"` // whatever became of them; those given up count with the time they were waited for
	// Lag is how late the generator itself was: 99 % of the requests were begun, or left to wait for a
	// connection, within it. Beyond a few milliseconds the load was not the one asked for.
	Lag time.Duration `json:"lag_ns"`
	// CPU is the generator's own, Took the time it ran: a generator that needs a whole core is the limit
	// itself.
	CPU  time.Duration `json:"cpu_ns"`
	Took time.Duration `json:"took_ns"`
}

// Failed counts what was not a good answer.
func (r OpenLoopResult) Failed() int64 { return r.Rejected.Count + r.Other + r.Unanswered }

// Class is a number of answers and their latencies.
type Class struct {
	Count int64         `json:"count"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
	P999  time.Duration `json:"p999_ns"`
}

// Run returns when every request has its fate, at most Patience after Duration.
func (o OpenLoop) Run(ctx context.Context) (OpenLoopResult, error) {
	if o.Rate <= 0 || o.Connections <= 0 {
		return OpenLoopResult{}, fmt.Errorf("open loop: rate %v with %d connections", o.Rate, o.Connections)
	}
	type outcome struct {
		OpenLoopResult
		err error
	}
	done := make(chan outcome)
	go func() {
		// A thread of its own, which ends with the goroutine: it sleeps with a precision that others need not
		// pay for.
		runtime.LockOSThread()
		result, err := o.generate(ctx)
		done <- outcome{result, err}
	}()
	ended := <-done
	return ended.OpenLoopResult, ended.err
}

// ownCPU is 0 where the kernel does not say.
func ownCPU() time.Duration {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// tally counts fates; its histograms hold microseconds.
type tally struct {
	answered, rejected, all, lag *hdrhistogram.Histogram
	other, unanswered            int64
}

func newTally(patience time.Duration) *tally {
	longest := max(2*patience, time.Second).Microseconds()
	return &tally{
		answered: hdrhistogram.New(1, longest, 3),
		rejected: hdrhistogram.New(1, longest, 3),
		all:      hdrhistogram.New(1, longest, 3),
		lag:      hdrhistogram.New(1, longest, 3),
	}
}

// record keeps what a histogram has no room for as the most it has room for.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	// RecordValue fails for values out of range, and there are none.
	_ = h.RecordValue(min(d.Microseconds(), h.HighestTrackableValue()))
}

// add counts a request that waited for so long for its status, 0 if its client gave up.
func (t *tally) add(latency time.Duration, status int) {
	record(t.all, latency)
	switch {
	case status == 0:
		t.unanswered++
	case status == 503:
		record(t.rejected, latency)
	case status < 400:
		record(t.answered, latency)
	default:
		t.other++
	}
}

func (t *tally) result() OpenLoopResult {
	return OpenLoopResult{
		Answered: class(t.answered), Rejected: class(t.rejected), All: class(t.all),
		Other: t.other, Unanswered: t.unanswered, Lag: class(t.lag).P99,
	}
}

func class(h *hdrhistogram.Histogram) Class {
	at := func(percentile float64) time.Duration {
		return time.Duration(h.ValueAtPercentile(percentile)) * time.Microsecond
	}
	return Class{Count: h.TotalCount(), P50: at(50), P99: at(99), P999: at(99.9)}
}
