package stdhttp

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// A counter counts a net/http request from the start of its action until its answer is ready. The zero counter does not
// count.
type counter struct {
	shard  *tally.Shard
	since  time.Duration // time of the start, relative to clock
	secure bool          // the client uses TLS
}

// clock is the origin of the times in a counter. time.Since reads the clock once, and time.Now twice.
var clock = time.Now()

// startCount starts to count a request that has a route. The request is in flight until its answer is written. Then the
// caller must call endCount with the result, because a client that does not read the answer still occupies a goroutine.
func (x *wire) startCount() *tally.Shard {
	x.count.shard = x.s.Route.Counts.Shard(x.number)
	x.count.shard.InFlight.Add(1)
	x.count.secure = x.service.Secure(x)
	x.count.since = time.Since(clock)
	return x.count.shard
}

// endCount ends the counting that startCount has begun.
func endCount(s *tally.Shard) { s.InFlight.Add(-1) }

// end counts the request in the state s, and its answer.
func (c *counter) end(s *exchange.State, a *exchange.Answer) {
	if c.shard == nil {
		return
	}
	c.shard.Add(s.Outcome(a, c.secure), 1, time.Since(clock)-c.since)
	c.shard = nil
}
