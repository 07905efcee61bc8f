package dunlin

import (
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/tally"
)

// What is counted of requests, by route, costs a request on the loop engine one look
// at the clock and two additions to memory that its loop has for itself, and
// pipelined ones share that (loopcount_linux.go). On net/http it is two looks and four
// additions. A bare ServeHTTP pays one branch.

// routeCounts is what is counted for a route.
type routeCounts struct {
	tally.Counter // by outcome

	// These are rare and not worth a shard.
	panics, timeouts, takeovers atomic.Uint64
}

// counts returns where the request is counted: by its route, or with all others
// that no route takes.
func (r *Request) counts() *routeCounts {
	if r.route == nil {
		return &r.app.unmatched
	}
	return &r.route.counts
}

// A stdCount counts one request of net/http from the call of its action until
// its answer is ready. The zero value counts nothing.
type stdCount struct {
	shard *tally.Shard
	since time.Time
}

// startCount begins to count a request that has been routed.
func (x *stdExchange) startCount() {
	x.count.shard = x.request.counts().Shard(x.number)
	x.count.shard.InFlight.Add(1)
	x.count.since = time.Now()
}

// end counts the request with its outcome.
func (c *stdCount) end(outcome uint8) {
	if c.shard == nil {
		return
	}
	c.shard.Add(outcome, 1, time.Since(c.since))
	c.shard.InFlight.Add(-1)
	c.shard = nil
}
