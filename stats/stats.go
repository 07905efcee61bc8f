// Package stats has the types of an app's statistics: see App.Stats of package dunlin. The tags define the JSON names. Times
// are in nanoseconds, and their JSON names end in Ns.
package stats

import (
	"encoding/json"
	"expvar"
	"time"

	"github.com/dunlinhttp/dunlin/internal/tally"
)

// A Snapshot holds the counts of an app at one time.
type Snapshot struct {
	Connections Connections       `json:"connections"`
	Actions     Actions           `json:"actions"`
	Memory      Memory            `json:"memory"`
	Runtime     Runtime           `json:"runtime"`
	Shed        map[string]uint64 `json:"shed"`            // refused, delayed and cut off requests by reason, see docs/DEPLOY.md
	Workers     []Worker          `json:"workers"`         // background workers by name, see App.Go
	Routes      []Route           `json:"routes"`          // in the order of registration, see Config.RouteStats
	Unmatched   Route             `json:"unmatched"`       // requests without a route: 404, 405, redirects to a clean path, and requests refused before routing
	LogDropped  uint64            `json:"logDropped"`      // log records for which Config.Logger was too slow
	Added       map[string]any    `json:"added,omitempty"` // counts of other packages, see package ext
}

// Worker are the counts of the background workers of one name, see App.Go.
type Worker struct {
	Name    string `json:"name"`
	Running int    `json:"running"`
	Ended   uint64 `json:"ended"`  // number of workers that ended, for any reason
	Errors  uint64 `json:"errors"` // ended with an error, before the app told them to end
	Panics  uint64 `json:"panics"`
}

// Connections counts the connections of both engines.
type Connections struct {
	Open         int    `json:"open"`    // without hijacked ones, at the latest after their handlers have returned
	PerLoop      []int  `json:"perLoop"` // Open by event loop
	Accepted     uint64 `json:"accepted"`
	AcceptPauses uint64 `json:"acceptPauses"` // pauses of accepting for lack of file descriptors, or at MaxConnections

	// AcceptPaused is the duration of a current pause for one of these reasons, or 0.
	AcceptPaused time.Duration `json:"acceptPausedNs"`

	Refused uint64 `json:"refused"` // requests to the loop engine that were malformed, too large or cut short
}

// Actions describes running actions. Actions on the loop engine that do not block are in flight too briefly to be
// seen.
type Actions struct {
	InFlight  int    `json:"inFlight"`  // on both engines, see Route
	Away      int    `json:"away"`      // connections of the loop engine with a goroutine of their own: blocking actions, streams
	Working   int    `json:"working"`   // the part of Away that counts against Config.Limits.MaxConcurrent
	Most      int    `json:"most"`      // the maximum of Working: Config.Limits.MaxConcurrent, or less by Limits.Adaptive
	Queued    int    `json:"queued"`    // waiting for a worker, see Config.Limits.MaxConcurrent
	Takeovers uint64 `json:"takeovers"` // event loops taken from blocking actions

	// Times that requests waited before any work for them: the longest wait of the last second or two, and (Most) the
	// longest ever. LoopWait is for a turn on an event loop, QueueWait for a worker.
	LoopWait      time.Duration `json:"loopWaitNs"`
	LoopWaitMost  time.Duration `json:"loopWaitMostNs"`
	QueueWait     time.Duration `json:"queueWaitNs"`
	QueueWaitMost time.Duration `json:"queueWaitMostNs"`
}

// Memory describes the use of the memory limit, in bytes.
type Memory struct {
	Limit       int64            `json:"limit"`        // 0: none
	LimitSource string           `json:"limitSource"`  // config, cgroup v2, cgroup v1, GOMEMLIMIT or none
	Budget      int64            `json:"budget"`       // for memory that clients cause
	Held        int64            `json:"held"`         // the part of Budget in use
	HeldFor     map[string]int64 `json:"heldFor"`      // Held by use: input, body, output and cache
	HeldPeak    int64            `json:"heldPeak"`     // the maximum of Held
	Refused     uint64           `json:"refused"`      // failed attempts to take memory from the budget
	TLS         int64            `json:"tls"`          // estimated use of TLS for open connections to the loop engine, outside the budget
	Pending     int64            `json:"pending"`      // answers that clients have not read yet
	ReadPaused  int              `json:"readPaused"`   // connections of the loop engine that are not read until their clients read their answers
	Waiting     int              `json:"waiting"`      // requests that wait for memory, for their bodies or for large answers
	WaitingFor  time.Duration    `json:"waitingForNs"` // how long Waiting has been above 0 without a break
	Holders     int              `json:"holders"`      // connections and requests that hold memory
	Fair        int64            `json:"fair"`         // holders of no more do not wait: 80 KiB
	Ending      int64            `json:"ending"`       // held by holders that are being ended to make room
	Largest     []Holding        `json:"largest"`      // the largest holders, the largest first
	HeapGoal    int64            `json:"heapGoal"`     // the heap size that starts a collection; 0: Go's own choice
	GOGC        int              `json:"gogc"`         // as set after the latest collection; 0: the program's own
}

// A Holding is the memory held for one client: for a connection to the loop engine, or a request to net/http.
type Holding struct {
	Remote string        `json:"remote"` // address and port
	Held   int64         `json:"held"`   // bytes
	For    time.Duration `json:"forNs"`  // since it began to hold memory
	Free   time.Duration `json:"freeNs"` // until the memory is free, as estimated from the client's speed
}

// Runtime are figures of the Go runtime.
type Runtime struct {
	Goroutines  int           `json:"goroutines"`
	HeapLive    int64         `json:"heapLive"`    // bytes that survived the latest collection
	Collections uint64        `json:"collections"` // since the process began, like the next two
	GCPauses    time.Duration `json:"gcPausesNs"`  // total time that they stopped the program
	GCShare     float64       `json:"gcShare"`     // of the available processor time, up to the latest collection
}

// Publish publishes snapshots as a variable of package expvar, made anew each time by read, such as the method Stats of an
// app. It panics if the name is taken.
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

// Route counts the requests of one route since the app was made.
type Route struct {
	Methods string `json:"methods,omitempty"` // as registered: "GET", "GET,HEAD", "*"
	Pattern string `json:"pattern,omitempty"`
	Host    string `json:"host,omitempty"`
	Version string `json:"version,omitempty"`
	Name    string `json:"name,omitempty"`

	Requests uint64       `json:"requests"` // ended requests
	Status   StatusCounts `json:"status"`   // ended requests by status
	InFlight int          `json:"inFlight"` // begun and not ended, except requests that a loop is answering right now

	Panics    uint64 `json:"panics"`
	Timeouts  uint64 `json:"timeouts"`  // answered with 503 while the action continued, see Group.WithTimeout
	Takeovers uint64 `json:"takeovers"` // actions that blocked on an event loop
	Blocking  bool   `json:"blocking"`  // the actions block, or wait briefly, so often that the route's requests go to workers at once

	Latency Latency `json:"latency"`

	Ended []tally.Ended `json:"-"` // counts by outcome, for module otel; the other fields are their sums
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

// Latency is the distribution of the time from the end of reading a request until its answer is ready to be sent or, for a
// stream, has been sent. On the loop engine it begins when the loop learns of readable data, so it includes the time that a
// request waits for others; pipelined requests are ready together. On net/http it is the duration of the action.
//
// P50 is the maximum for 50 % of the requests, P999 for 99.9 %. These are read from a histogram and may be off by a quarter
// at most. Max is exact.
type Latency struct {
	P50  time.Duration `json:"p50Ns"`
	P90  time.Duration `json:"p90Ns"`
	P99  time.Duration `json:"p99Ns"`
	P999 time.Duration `json:"p999Ns"`
	Max  time.Duration `json:"maxNs"`

	all tally.Latencies
}

// LatencyOf returns the distribution of the counts of an app.
func LatencyOf(all tally.Latencies) Latency {
	return Latency{
		P50: all.Quantile(0.5), P90: all.Quantile(0.9), P99: all.Quantile(0.99), P999: all.Quantile(0.999),
		Max: all.Max, all: all,
	}
}

// Since returns the latency of the requests between an earlier snapshot of the same route and this one, such as that
// of the last minute. Its Max may also be off by a quarter.
func (l Latency) Since(earlier Latency) Latency { return LatencyOf(l.all.Since(&earlier.all)) }

// Buckets yields the histogram: for each of a series of durations the number of requests that took less. The last
// duration is longer than all requests. A Latency decoded from JSON has no buckets.
func (l Latency) Buckets(yield func(below time.Duration, requests uint64) bool) { l.all.Buckets(yield) }

// RoutePolicy selects when requests are counted by route.
type RoutePolicy uint8

const (
	// Auto counts from the time when the App first serves a listener. An App used only by its
	// ServeHTTP counts nothing.
	Auto RoutePolicy = iota
	On               // always
	Off              // never
)
