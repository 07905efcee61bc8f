package stdhttp

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// A counter counts one request of net/http, which takes from the call of its action
// until its answer is ready. The zero value counts nothing.
type counter struct {
	shard  *tally.Shard
	since  time.Duration // on clock
	secure bool          // the client has asked by TLS
}

// clock is one reading of time that later ones are told by: a time.Now for each request is two.
var clock = time.Now()

// startCount begins to count a request that has been routed. It is in flight until
// endCount is called with what startCount returns, when its answer is written: a client
// that does not take it still has a goroutine.
func (x *wire) startCount() *tally.Shard {
	x.count.shard = x.s.Route.Counts.Shard(x.number)
	x.count.shard.InFlight.Add(1)
	x.count.secure = x.service.Secure(x)
	x.count.since = time.Since(clock)
	return x.count.shard
}

// endCount ends what startCount began.
func endCount(s *tally.Shard) { s.InFlight.Add(-1) }

// end counts the request of a state with its answer.
func (c *counter) end(s *exchange.State, a *exchange.Answer) {
	if c.shard == nil {
		return
	}
	c.shard.Add(s.Outcome(a, c.secure), 1, time.Since(clock)-c.since)
	c.shard = nil
}
