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

// OpenLoop sends requests at a constant rate that does not depend on the server, like many independent clients. The latency of
// a request is measured from the time at which it was due, not from the time at which a connection was free. Therefore a slow
// server does not slow down its own measurement ("coordinated omission", Gil Tene).
type OpenLoop struct {
	Addr, Path  string
	Rate        float64 // requests per second
	Duration    time.Duration
	Connections int           // maximum number of concurrent requests
	Patience    time.Duration // a client gives up when this time has passed since the request was due
	// LeadIn is a time before Duration. Requests arrive at a quarter of Rate during it and are not counted. It represents a
	// service that is already running, with connected clients, when an overload begins.
	LeadIn time.Duration
}

// OpenLoopResult has the results of the requests that became due.
type OpenLoopResult struct {
	Due        int64 `json:"due"`
	Answered   Class `json:"answered"` // responses with status 200 to 399
	Rejected   Class `json:"rejected"` // responses with status 503
	Other      int64 `json:"other"`    // responses with another status
	Unanswered int64 `json:"unanswered"`
	All        Class `json:"all"` // all requests; a request that the client gave up counts with the time that the client waited
	// Lag is the delay of the generator itself: 99 % of the requests were sent, or queued for a connection, at most this long
	// after they were due. If Lag exceeds a few milliseconds, the generator did not produce the load that was requested.
	Lag time.Duration `json:"lag_ns"`
	// CPU is the CPU time of the generator, and Took is its running time. A generator that uses an entire core is itself the
	// bottleneck.
	CPU  time.Duration `json:"cpu_ns"`
	Took time.Duration `json:"took_ns"`
}

// Failed returns the number of requests without a successful response.
func (r OpenLoopResult) Failed() int64 { return r.Rejected.Count + r.Other + r.Unanswered }

// A Class is a number of responses, with their latencies.
type Class struct {
	Count int64         `json:"count"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
	P999  time.Duration `json:"p999_ns"`
}

// Run returns when every request is settled. This is at most Patience after Duration.
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
		// The thread ends together with the goroutine, because its precise sleeps would be expensive for other goroutines.
		runtime.LockOSThread()
		result, err := o.generate(ctx)
		done <- outcome{result, err}
	}()
	ended := <-done
	return ended.OpenLoopResult, ended.err
}

// ownCPU returns the CPU time of this thread. It returns 0 if the kernel does not report it.
func ownCPU() time.Duration {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// A tally counts results. The values of its histograms are in microseconds.
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

// record records d in a histogram, but at most the maximum of the histogram.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	// RecordValue returns an error only for a value that is out of range.
	_ = h.RecordValue(min(d.Microseconds(), h.HighestTrackableValue()))
}

// add counts a request. The status is 0 if the client gave up.
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
