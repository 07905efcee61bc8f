package load

import (
	"context"
	"fmt"
	"sync"
	"time"

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
	// Lag is how late the generator itself was, at its worst. Beyond a few milliseconds the load
	// was not the one asked for.
	Lag time.Duration `json:"lag_ns"`
}

// Class is a number of answers and their latencies.
type Class struct {
	Count int64         `json:"count"`
	P50   time.Duration `json:"p50_ns"`
	P99   time.Duration `json:"p99_ns"`
	P999  time.Duration `json:"p999_ns"`
}

// tick is how often the requests that have fallen due are released; each keeps its own due moment.
const tick = 500 * time.Microsecond

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
	lag := o.release(ctx, due, total)
	close(due)
	clients.Wait()
	result := tally.result()
	result.Due, result.Lag = int64(total), lag
	return result, ctx.Err()
}

// release hands out each request when it is due and returns the worst delay in doing so.
func (o OpenLoop) release(ctx context.Context, due chan<- time.Time, total int) time.Duration {
	var worst time.Duration
	interval := float64(time.Second) / o.Rate
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	start := time.Now()
	for sent := 0; sent < total; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return worst
		}
		for now := time.Now(); sent < total; sent++ {
			at := start.Add(time.Duration(float64(sent) * interval))
			if at.After(now) {
				break
			}
			worst = max(worst, now.Sub(at))
			due <- at
		}
	}
	return worst
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
	mu                 sync.Mutex
	answered, rejected *hdrhistogram.Histogram
	other, unanswered  int64
}

func newTally(patience time.Duration) *tally {
	longest := max(2*patience, time.Second).Microseconds()
	return &tally{
		answered: hdrhistogram.New(1, longest, 3),
		rejected: hdrhistogram.New(1, longest, 3),
	}
}

func (t *tally) add(due time.Time, status int) {
	latency := time.Since(due).Microseconds()
	t.mu.Lock()
	defer t.mu.Unlock()
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
		Answered: class(t.answered), Rejected: class(t.rejected),
		Other: t.other, Unanswered: t.unanswered,
	}
}

func class(h *hdrhistogram.Histogram) Class {
	at := func(percentile float64) time.Duration {
		return time.Duration(h.ValueAtPercentile(percentile)) * time.Microsecond
	}
	return Class{Count: h.TotalCount(), P50: at(50), P99: at(99), P999: at(99.9)}
}
