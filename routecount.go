package dunlin

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/tally"
)

// A stdCount counts one request of net/http from the call of its action until
// its answer is ready. The zero value counts nothing.
type stdCount struct {
	shard *tally.Shard
	since time.Time
}

// startCount begins to count a request that has been routed.
func (x *stdExchange) startCount() {
	x.count.shard = x.request.s.Route.Counts.Shard(x.number)
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
