//go:build linux

package load

import (
	"context"
	"fmt"
	"sync"
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
}

// OpenLoopResult is what became of the requests that fell due.
type OpenLoopResult struct {
	Due        int64 `json:"due"`
	Answered   Class `json:"answered"` // status 200 to 399
	Rejected   Class `json:"rejected"` // 503
	Other      int64 `json:"other"`    // other statuses
	Unanswered int64 `json:"unanswered"`
	All        Class `json:"all"` // whatever became of them; those given up count with the time they were waited for
	// Lag is how late the generator itself was, at its worst. Beyond a few milliseconds the load
	// was not the one asked for.
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

// tick is the least time between two releases of the requests that have fallen due; each keeps its own due
// moment. Long sleeps end to see whether all of it is to end.
const (
	tick      = 200 * time.Microsecond
	longSleep = 10 * time.Millisecond
)

// Run returns when every request has its fate, at most Patience after Duration.
func (o OpenLoop) Run(ctx context.Context) (OpenLoopResult, error) {
	if o.Rate <= 0 || o.Connections <= 0 {
		return OpenLoopResult{}, fmt.Errorf("open loop: rate %v with %d connections", o.Rate, o.Connections)
	}
	total := int(o.Rate * o.Duration.Seconds())
	due := make(chan time.Time, total)
	tally := newTally(o.Patience)
	var clients sync.WaitGroup
	for range o.Connections {
		clients.Go(func() {
			c := client{addr: o.Addr, request: requestFor(o.Addr, o.Path)}
			defer c.close()
			for at := range due {
				tally.add(at, o.fate(&c, at))
			}
		})
	}
	start, cpu := time.Now(), ownCPU()
	lag := o.release(ctx, due, total)
	close(due)
	clients.Wait()
	result := tally.result()
	result.Due, result.Lag = int64(total), lag
	result.Took, result.CPU = time.Since(start), ownCPU()-cpu
	return result, ctx.Err()
}

// ownCPU is 0 where the kernel does not say.
func ownCPU() time.Duration {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// release hands out each request when it is due and returns the worst delay in doing so.
func (o OpenLoop) release(ctx context.Context, due chan<- time.Time, total int) time.Duration {
	var worst time.Duration
	interval := float64(time.Second) / o.Rate
	start := time.Now()
	dueAt := func(n int) time.Time { return start.Add(time.Duration(float64(n) * interval)) }
	for sent := 0; sent < total && ctx.Err() == nil; {
		sleep(min(max(time.Until(dueAt(sent)), tick), longSleep))
		for now := time.Now(); sent < total && !dueAt(sent).After(now); sent++ {
			worst = max(worst, now.Sub(dueAt(sent)))
			due <- dueAt(sent)
		}
	}
	return worst
}

// sleep is the kernel's: Go's own timers are no finer than a millisecond in a process that is otherwise idle.
func sleep(d time.Duration) {
	t := unix.NsecToTimespec(d.Nanoseconds())
	unix.Nanosleep(&t, nil)
}

// fate sends one request and returns the status, or 0 if the client gave up first.
func (o OpenLoop) fate(c *client, at time.Time) int {
	deadline := at.Add(o.Patience)
	if time.Now().After(deadline) {
		return 0
	}
	status, err := c.do(deadline)
	if err != nil {
		c.close()
		return 0
	}
	return status
}

// tally counts fates; its histograms hold microseconds.
type tally struct {
	mu                      sync.Mutex
	answered, rejected, all *hdrhistogram.Histogram
	other, unanswered       int64
}

func newTally(patience time.Duration) *tally {
	longest := max(2*patience, time.Second).Microseconds()
	return &tally{
		answered: hdrhistogram.New(1, longest, 3),
		rejected: hdrhistogram.New(1, longest, 3),
		all:      hdrhistogram.New(1, longest, 3),
	}
}

func (t *tally) add(due time.Time, status int) {
	latency := time.Since(due).Microseconds()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all.RecordValue(min(latency, t.all.HighestTrackableValue()))
	switch {
	case status == 0:
		t.unanswered++
	case status == 503:
		t.rejected.RecordValue(min(latency, t.rejected.HighestTrackableValue()))
	case status < 400:
		t.answered.RecordValue(min(latency, t.answered.HighestTrackableValue()))
	default:
		t.other++
	}
}

func (t *tally) result() OpenLoopResult {
	return OpenLoopResult{
		Answered: class(t.answered), Rejected: class(t.rejected), All: class(t.all),
		Other: t.other, Unanswered: t.unanswered,
	}
}

func class(h *hdrhistogram.Histogram) Class {
	at := func(percentile float64) time.Duration {
		return time.Duration(h.ValueAtPercentile(percentile)) * time.Microsecond
	}
	return Class{Count: h.TotalCount(), P50: at(50), P99: at(99), P999: at(99.9)}
}
