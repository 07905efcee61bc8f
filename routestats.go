package dunlin

import (
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/stats"
)

// routeStats returns the counts of all routes in the order of registration.
func (a *App) routeStats() []stats.Route {
	a.mu.Lock()
	routes := a.registered // only appended to
	list := make([]stats.Route, len(routes))
	for i, r := range routes {
		list[i].Name = r.name
	}
	a.mu.Unlock()
	for i, r := range routes {
		s := &list[i]
		s.Methods, s.Pattern, s.Host, s.Version = r.methods, r.shared.Pattern, r.host, r.version
		s.Blocking = r.shared.Blocking.Learned()
		countStats(&r.shared.Counts, s)
	}
	return list
}

// countStats fills in the counts of a route.
func countStats(c *exchange.RouteCounts, s *stats.Route) {
	sums := c.Sums()
	o := &sums.Classes
	s.Requests, s.Ended = sums.Latency.Count(), sums.Ended
	s.Status = stats.StatusCounts{Dropped: o[0], Informational: o[1], Success: o[2], Redirection: o[3], ClientError: o[4], ServerError: o[5]}
	s.InFlight = int(max(sums.InFlight, 0)) // the sum may be negative, because shards are read one after the other
	s.Panics, s.Timeouts, s.Takeovers = c.Panics.Load(), c.Timeouts.Load(), c.Takeovers.Load()
	s.Latency = stats.LatencyOf(sums.Latency)
}
