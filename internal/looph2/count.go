//go:build linux

package looph2

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// countInFlight counts the present request as in flight.
func (x *Wire) countInFlight(counts *exchange.RouteCounts) {
	x.inFlight.Begin(x.h.server.Counting.Load(), counts)
}

// countElsewhere counts a request that was answered off the loop.
func (x *Wire) countElsewhere(counts *exchange.RouteCounts, outcome tally.Outcome) {
	if x.h.server.Counting.Load() {
		counts.Shard(0).Add(outcome, 1, x.took())
	}
}

// took returns the time that the present request has taken.
func (x *Wire) took() time.Duration { return time.Duration(x.now() - x.since) }
