package dunlin

import (
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// RouteStats counts the requests of one route since the app was made.
type RouteStats struct {
	Methods string `json:"methods,omitempty"` // as registered: "GET", "GET,HEAD", "*"
	Pattern string `json:"pattern,omitempty"`
	Host    string `json:"host,omitempty"`
	Version string `json:"version,omitempty"`
	Name    string `json:"name,omitempty"`

	Requests uint64       `json:"requests"` // ended requests
	Status   StatusCounts `json:"status"`   // ended requests by status
	InFlight int          `json:"inFlight"` // begun and not ended, except requests that a loop is answering right now

	Panics    uint64 `json:"panics"`
	Timeouts  uint64 `json:"timeouts"`  // answered with 503 while the action continued, see Group.Timeout
	Takeovers uint64 `json:"takeovers"` // actions that blocked on an event loop
	Blocking  bool   `json:"blocking"`  // the actions block, or wait briefly, so often that the route's requests go to workers at once

	Latency Latency `json:"latency"`

	ended []tally.Ended // the other fields are sums of these
}

// StatusCounts counts requests by the status of their answers.
type StatusCounts struct {
	Dropped       uint64 `json:"dropped"` // no complete answer: the client left, or the connection was dropped
	Informational uint64 `json:"1xx"`     // 101: the connection was handed to the action
	Success       uint64 `json:"2xx"`
	Redirection   uint64 `json:"3xx"`
	ClientError   uint64 `json:"4xx"`
	ServerError   uint64 `json:"5xx"`
}

// Latency is the distribution of the time from the end of reading a request until its answer is ready to be sent or,
// for a stream, has been sent. On the loop engine it begins when the loop learns of readable data, so the time that a
// request waits for others counts; pipelined requests are ready with the last of them. On net/http it is the action's
// time.
//
// P50 is the maximum for 50 % of the requests, P999 for 99.9 %. These are read from a histogram and may be off by a
// quarter at most. Max is exact.
type Latency struct {
	P50  time.Duration `json:"p50Ns"`
	P90  time.Duration `json:"p90Ns"`
	P99  time.Duration `json:"p99Ns"`
	P999 time.Duration `json:"p999Ns"`
	Max  time.Duration `json:"maxNs"`

	all tally.Latencies
}

func latencyOf(all tally.Latencies) Latency {
	return Latency{
		P50: all.Quantile(0.5), P90: all.Quantile(0.9), P99: all.Quantile(0.99), P999: all.Quantile(0.999),
		Max: all.Max, all: all,
	}
}

// Since returns the latency of the requests between an earlier snapshot of the same route and this one, such as that
// of the last minute. Its Max may also be off by a quarter.
func (l Latency) Since(earlier Latency) Latency { return latencyOf(l.all.Since(&earlier.all)) }

// Buckets yields the histogram: for each of a series of durations the number of requests that took less. The last
// duration is longer than all requests. A Latency decoded from JSON has no buckets.
func (l Latency) Buckets(yield func(below time.Duration, requests uint64) bool) { l.all.Buckets(yield) }

// Ended returns the ended requests of a route by their outcomes.
func (*inside) Ended(s *RouteStats) []tally.Ended { return s.ended }

// routeStats returns the counts of all routes in the order of registration.
func (a *App) routeStats() []RouteStats {
	a.mu.Lock()
	routes := a.registered // only appended to
	list := make([]RouteStats, len(routes))
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
func countStats(c *exchange.RouteCounts, s *RouteStats) {
	sums := c.Sums()
	o := &sums.Classes
	s.Requests, s.ended = sums.Latency.Count(), sums.Ended
	s.Status = StatusCounts{o[0], o[1], o[2], o[3], o[4], o[5]}
	s.InFlight = int(max(sums.InFlight, 0)) // shards are read one after the other
	s.Panics, s.Timeouts, s.Takeovers = c.Panics.Load(), c.Timeouts.Load(), c.Takeovers.Load()
	s.Latency = latencyOf(sums.Latency)
}
