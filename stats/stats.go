// Package stats has the types of an app's statistics, see App.Stats of package dunlin. The tags define the JSON names. In
// JSON, durations are in nanoseconds, and their names end in Ns.
package stats

import (
	"encoding/json"
	"expvar"
	"time"

	"github.com/dunlinhttp/dunlin/internal/tally"
)

// A Snapshot has the counts of an app at one time.
type Snapshot struct {
	Connections Connections       `json:"connections"`
	Actions     Actions           `json:"actions"`
	Memory      Memory            `json:"memory"`
	Runtime     Runtime           `json:"runtime"`
	Shed        map[string]uint64 `json:"shed"`            // refused, delayed and ended requests and connections by reason, see docs/DEPLOY.md
	Workers     []Worker          `json:"workers"`         // background workers by name, see App.Go
	Routes      []Route           `json:"routes"`          // in the order of registration, see Config.RouteStats
	Unmatched   Route             `json:"unmatched"`       // requests without a route: 404, 405, redirects to a clean path, and requests refused before routing
	LogDropped  uint64            `json:"logDropped"`      // log records that were dropped because Config.Logger was too slow
	Added       map[string]any    `json:"added,omitempty"` // counts of other packages, see package ext
}

// Worker has the counts of the background workers with one name, see App.Go.
type Worker struct {
	Name    string `json:"name"`
	Running int    `json:"running"`
	Ended   uint64 `json:"ended"`  // workers that have ended, for any reason
	Errors  uint64 `json:"errors"` // workers that ended with an error before the app drained
	Panics  uint64 `json:"panics"` // workers that panicked
}

// Connections counts the connections of both engines.
type Connections struct {
	Open         int    `json:"open"`    // without hijacked connections, which on the loop engine count until their handlers return
	PerLoop      []int  `json:"perLoop"` // Open by event loop
	Accepted     uint64 `json:"accepted"`
	AcceptPauses uint64 `json:"acceptPauses"` // pauses of accepting for lack of file descriptors, or at MaxConnections

	// AcceptPaused is the duration so far of a current pause of accepting, or 0.
	AcceptPaused time.Duration `json:"acceptPausedNs"`

	Refused uint64 `json:"refused"` // requests to the loop engine that were malformed, too large or incomplete
}

// Actions describes running actions. Actions on the loop engine that do not block usually do not appear in these
// numbers, because they run only for a short time.
type Actions struct {
	InFlight  int    `json:"inFlight"`  // running requests on both engines: the sum of Route.InFlight
	Away      int    `json:"away"`      // connections of the loop engine that have their own goroutine: blocking actions, streams
	Working   int    `json:"working"`   // the part of Away that counts for Config.Limits.MaxConcurrent
	Most      int    `json:"most"`      // the limit on Working: Config.Limits.MaxConcurrent, or less by Limits.Adaptive
	Queued    int    `json:"queued"`    // requests that wait for a worker, see Config.Limits.MaxConcurrent
	Takeovers uint64 `json:"takeovers"` // takeovers of event loops from blocking actions

	// LoopWait is the longest time for which a request has waited for its turn on an event loop, and QueueWait that for
	// a worker. Both are for the last second or two. LoopWaitMost and QueueWaitMost are for the life of the app.
	LoopWait      time.Duration `json:"loopWaitNs"`
	LoopWaitMost  time.Duration `json:"loopWaitMostNs"`
	QueueWait     time.Duration `json:"queueWaitNs"`
	QueueWaitMost time.Duration `json:"queueWaitMostNs"`
}

// Memory describes the use of the memory limit, in bytes.
type Memory struct {
	Limit       int64            `json:"limit"`        // the memory limit of the process; 0: none
	LimitSource string           `json:"limitSource"`  // config, cgroup v2, cgroup v1, GOMEMLIMIT or none
	Budget      int64            `json:"budget"`       // the limit of the memory that clients make the server hold
	Held        int64            `json:"held"`         // the part of Budget in use
	HeldFor     map[string]int64 `json:"heldFor"`      // Held by use: input, body, output and cache
	HeldPeak    int64            `json:"heldPeak"`     // the maximum of Held
	Refused     uint64           `json:"refused"`      // failed attempts to reserve memory of the budget
	TLS         int64            `json:"tls"`          // estimated memory of TLS for open connections to the loop engine; it is not in the budget
	Pending     int64            `json:"pending"`      // answers that clients have not read yet
	ReadPaused  int              `json:"readPaused"`   // connections of the loop engine that are not read until their clients read their answers
	Waiting     int              `json:"waiting"`      // requests that wait for memory, for their bodies or for large answers
	WaitingFor  time.Duration    `json:"waitingForNs"` // time for which Waiting has been above 0 without interruption
	Holders     int              `json:"holders"`      // connections and requests that hold memory
	Fair        int64            `json:"fair"`         // holders of at most this do not wait: 80 KiB
	Ending      int64            `json:"ending"`       // memory of holders that are being ended to make room
	Largest     []Holding        `json:"largest"`      // the largest holders, the largest first
	HeapGoal    int64            `json:"heapGoal"`     // the heap size that starts a garbage collection; 0: Go chooses it
	GOGC        int              `json:"gogc"`         // the value set after the latest collection; 0: the app does not set it
}

// A Holding is the memory held for one client: for a connection to the loop engine, or a request to net/http.
type Holding struct {
	Remote string        `json:"remote"` // address and port
	Held   int64         `json:"held"`   // bytes
	For    time.Duration `json:"forNs"`  // time since the client began to hold memory
	Free   time.Duration `json:"freeNs"` // estimated time until the memory is free, from the client's speed
}

// Runtime has figures of the Go runtime since the process began.
type Runtime struct {
	Goroutines  int           `json:"goroutines"`  // current number
	HeapLive    int64         `json:"heapLive"`    // bytes that survived the latest garbage collection
	Collections uint64        `json:"collections"` // number of garbage collections
	GCPauses    time.Duration `json:"gcPausesNs"`  // total time for which collections stopped the program
	GCShare     float64       `json:"gcShare"`     // share of the available processor time, up to the latest collection
}

// Publish publishes snapshots as a variable of package expvar. Each time the variable is read, it calls read, such as the method
// Stats of an app. read must be safe for concurrent use. Publish panics if the name is already used.
func Publish(name string, read func() Snapshot) {
	expvar.Publish(name, expvar.Func(func() any { return read() }))
}

// String returns the snapshot as JSON.
func (s Snapshot) String() string {
	text, err := json.Marshal(s)
	if err != nil {
		return err.Error() // encoding a Snapshot cannot fail
	}
	return string(text)
}

// Route has the counts of one route since the app was made.
type Route struct {
	Methods string `json:"methods,omitempty"` // as registered: "GET", "GET,HEAD", "*"
	Pattern string `json:"pattern,omitempty"`
	Host    string `json:"host,omitempty"`
	Version string `json:"version,omitempty"`
	Name    string `json:"name,omitempty"`

	Requests uint64       `json:"requests"` // ended requests
	Status   StatusCounts `json:"status"`   // ended requests by status
	InFlight int          `json:"inFlight"` // requests that have begun and not ended, except those that an event loop is answering

	Panics    uint64 `json:"panics"`    // actions that panicked
	Timeouts  uint64 `json:"timeouts"`  // requests answered with 503 while the action continued, see Group.WithTimeout
	Takeovers uint64 `json:"takeovers"` // takeovers of an event loop because an action of the route blocked
	Blocking  bool   `json:"blocking"`  // the actions block, or wait briefly, so often that workers run them from the start

	Latency Latency `json:"latency"`

	Ended []tally.Ended `json:"-"` // counts by outcome, for module otel; the other fields are their sums
}

// StatusCounts counts requests by the status of their answers.
type StatusCounts struct {
	Dropped       uint64 `json:"dropped"` // no complete answer: the client disconnected, or the connection was cut
	Informational uint64 `json:"1xx"`     // 101: the connection was upgraded to another protocol
	Success       uint64 `json:"2xx"`
	Redirection   uint64 `json:"3xx"`
	ClientError   uint64 `json:"4xx"`
	ServerError   uint64 `json:"5xx"`
}

// Latency is the distribution of the time from the end of reading a request until its answer is ready to be sent or, for a
// stream, has been sent. On the loop engine the time begins when the loop detects that the connection is readable, so it
// includes the time for which a request waits for other requests. Pipelined requests become readable together. On net/http
// the latency is the duration of the action.
//
// P50 is the maximum latency of 50 % of the requests, and P999 that of 99.9 %. The quantiles are read from a histogram, with
// an error of at most a quarter. Max is exact.
type Latency struct {
	P50  time.Duration `json:"p50Ns"`
	P90  time.Duration `json:"p90Ns"`
	P99  time.Duration `json:"p99Ns"`
	P999 time.Duration `json:"p999Ns"`
	Max  time.Duration `json:"maxNs"`

	all tally.Latencies
}

// LatencyOf returns the distribution of latencies that an app has counted.
func LatencyOf(all tally.Latencies) Latency {
	return Latency{
		P50: all.Quantile(0.5), P90: all.Quantile(0.9), P99: all.Quantile(0.99), P999: all.Quantile(0.999),
		Max: all.Max, all: all,
	}
}

// Since returns the latency of the requests between earlier, a snapshot of the same route, and l. Its Max has an error of
// at most a quarter.
func (l Latency) Since(earlier Latency) Latency { return LatencyOf(l.all.Since(&earlier.all)) }

// Buckets yields the histogram: for each of a series of increasing durations the number of requests that took less. The
// last duration is longer than every request. A Latency decoded from JSON has no buckets.
func (l Latency) Buckets(yield func(below time.Duration, requests uint64) bool) { l.all.Buckets(yield) }

// RoutePolicy selects when requests are counted by route.
type RoutePolicy uint8

const (
	// Auto counts from the time when the App first serves a listener. An App that is used only as an
	// http.Handler does not count.
	Auto RoutePolicy = iota
	On               // always
	Off              // never
)
