package stdhttp

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// A counter counts one net/http request, from the call of its action until its answer is ready. The zero value does not
// count.
type counter struct {
	shard  *tally.Shard
	since  time.Duration // relative to clock
	secure bool          // the client uses TLS
}

// clock is the time origin. time.Since needs one clock reading, time.Now two.
var clock = time.Now()

// startCount starts counting a routed request. The request is in flight until its answer is written and endCount is
// called with the result: a client that does not read still occupies a goroutine.
func (x *wire) startCount() *tally.Shard {
	x.count.shard = x.s.Route.Counts.Shard(x.number)
	x.count.shard.InFlight.Add(1)
	x.count.secure = x.service.Secure(x)
	x.count.since = time.Since(clock)
	return x.count.shard
}

// endCount ends the count begun by startCount.
func endCount(s *tally.Shard) { s.InFlight.Add(-1) }

// end counts the request of a state with its answer.
func (c *counter) end(s *exchange.State, a *exchange.Answer) {
	if c.shard == nil {
		return
	}
	c.shard.Add(s.Outcome(a, c.secure), 1, time.Since(clock)-c.since)
	c.shard = nil
}
