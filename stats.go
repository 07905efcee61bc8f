package dunlin

import (
	"encoding/json"
	"expvar"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// Stats is a snapshot of an App. Its JSON names are those of the tags. Times are in nanoseconds, and their JSON names
// end in Ns.
type Stats struct {
	Connections Connections       `json:"connections"`
	Actions     ActionStats       `json:"actions"`
	Memory      MemoryStats       `json:"memory"`
	Runtime     RuntimeStats      `json:"runtime"`
	Shed        map[string]uint64 `json:"shed"`            // refused, delayed and cut off requests by reason, see docs/DEPLOY.md
	Workers     []WorkerStats     `json:"workers"`         // background workers by name, see App.Go
	Routes      []RouteStats      `json:"routes"`          // in the order of registration, see Config.RouteStats
	Unmatched   RouteStats        `json:"unmatched"`       // requests without a route: 404, 405, redirects to a clean path, and requests refused before routing
	LogDropped  uint64            `json:"logDropped"`      // log records for which Config.Logger was too slow
	Added       map[string]any    `json:"added,omitempty"` // counts of other packages, see App.AddStats
}

// WorkerStats are the counts of the background workers of one name, see [App.Go].
type WorkerStats struct {
	Name    string `json:"name"`
	Running int    `json:"running"`
	Ended   uint64 `json:"ended"`  // for any reason
	Errors  uint64 `json:"errors"` // ended with an error, before the app told them to end
	Panics  uint64 `json:"panics"`
}

// Connections counts the connections of both engines.
type Connections struct {
	Open         int    `json:"open"`    // without hijacked ones, at the latest after their handlers have returned
	PerLoop      []int  `json:"perLoop"` // the part of Open on each event loop
	Accepted     uint64 `json:"accepted"`
	AcceptPauses uint64 `json:"acceptPauses"` // pauses of accepting for lack of file descriptors, or at MaxConnections

	// AcceptPaused is the duration of a current pause for one of these reasons, or 0.
	AcceptPaused time.Duration `json:"acceptPausedNs"`

	Refused uint64 `json:"refused"` // requests to the loop engine that were malformed, too large or cut short
}

// ActionStats describes running actions. Actions on the loop engine that do not block are in flight too briefly to be
// seen.
type ActionStats struct {
	InFlight  int    `json:"inFlight"`  // on both engines, see RouteStats
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

// MemoryStats describes the use of the memory limit, in bytes.
type MemoryStats struct {
	Limit       int64            `json:"limit"`        // 0: none
	LimitSource string           `json:"limitSource"`  // config, cgroup v2, cgroup v1, GOMEMLIMIT or none
	Budget      int64            `json:"budget"`       // for memory that clients cause
	Held        int64            `json:"held"`         // the part of Budget in use
	HeldFor     map[string]int64 `json:"heldFor"`      // Held by use: input, body, output, stream, queued, handshake and cache
	HeldPeak    int64            `json:"heldPeak"`     // the maximum of Held
	Refused     uint64           `json:"refused"`      // failed attempts to take memory from the budget
	TLS         int64            `json:"tls"`          // estimated use of TLS for open connections to the loop engine, outside the budget
	Pending     int64            `json:"pending"`      // answers that clients have not read yet
	ReadPaused  int              `json:"readPaused"`   // connections of the loop engine that are not read until their clients read their answers
	Waiting     int              `json:"waiting"`      // requests whose bodies are not read further until there is room
	WaitingFor  time.Duration    `json:"waitingForNs"` // how long Waiting has been above 0 without a break
	Holders     int              `json:"holders"`      // connections and requests that hold memory
	Fair        int64            `json:"fair"`         // the fair share: holders of no more are not refused or cut off for others
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

// mostHoldings is the maximum length of MemoryStats.Largest.
const mostHoldings = 5

// RuntimeStats are figures of the Go runtime.
type RuntimeStats struct {
	Goroutines  int           `json:"goroutines"`
	HeapLive    int64         `json:"heapLive"`    // bytes that survived the latest collection
	Collections uint64        `json:"collections"` // since the process began, like the next two
	GCPauses    time.Duration `json:"gcPausesNs"`  // total time that they stopped the program
	GCShare     float64       `json:"gcShare"`     // of the available processor time, up to the latest collection
}

// Stats returns a snapshot. It takes about ten microseconds, plus about one for each route in use, and stops nothing.
// It is safe for concurrent use at any time. Concurrent changes may be visible in one figure and not yet in another.
func (a *App) Stats() Stats {
	var s Stats
	a.memoryStats(&s.Memory)
	s.Connections.Open, s.Connections.Accepted, s.Connections.AcceptPauses, s.Connections.AcceptPaused = a.std.Connections()
	s.Connections.Refused = a.server.Refused.Load()
	a.engineStats(&s)
	s.Shed = make(map[string]uint64)
	for r := range admission.Reasons {
		s.Shed[r.String()] = a.shed.Count(r)
	}
	s.LogDropped = a.logs.Dropped()
	for _, w := range a.servers.Counts() {
		s.Workers = append(s.Workers, WorkerStats(w))
	}
	s.Routes = a.routeStats()
	countStats(&a.server.Unmatched.Counts, &s.Unmatched)
	s.Actions.InFlight = s.Unmatched.InFlight
	for i := range s.Routes {
		s.Actions.InFlight += s.Routes[i].InFlight
	}
	s.Runtime, s.Added = RuntimeStats(tally.ReadRuntime()), a.parts.Read()
	return s
}

// AddStats adds the result of stats to [Stats.Added], under a name: the counts of a store that is not always reachable,
// for example. stats is called for each snapshot, by any goroutine, and must not block. Its result is encoded as JSON; if
// it panics, a text that reports the panic takes its place. AddStats panics if the name is taken.
//
//	app.AddStats("store", func() any { return guarded.Stats() })
func (a *App) AddStats(name string, stats func() any) {
	if !a.parts.Add(name, stats) {
		panic("dunlin: AddStats: the name " + name + " is taken, or the function is nil (called at " + callerPlace() + ")")
	}
}

// PublishStats publishes Stats as a variable of package expvar, read anew each time. It panics if the name is taken.
func (a *App) PublishStats(name string) {
	expvar.Publish(name, expvar.Func(func() any { return a.Stats() }))
}

// String returns the snapshot as JSON.
func (s Stats) String() string {
	text, err := json.Marshal(s)
	if err != nil {
		return err.Error() // encoding Stats cannot fail
	}
	return string(text)
}

// engineStats fills in the counts of the event loops.
func (a *App) engineStats(s *Stats) {
	from, serving := a.loop.Stats()
	if !serving {
		return
	}
	s.Connections.Open += from.Connections
	s.Connections.PerLoop = from.PerLoop
	s.Connections.Accepted += from.Accepted
	s.Connections.AcceptPauses += from.AcceptPauses
	s.Connections.AcceptPaused = max(s.Connections.AcceptPaused, from.AcceptPaused)
	s.Actions = ActionStats{
		Away:     from.Away,
		Working:  from.Working,
		Most:     from.MostWorking,
		Queued:   from.Queued,
		LoopWait: from.LoopWait, LoopWaitMost: from.LoopWaitMost,
		QueueWait: from.QueueWait, QueueWaitMost: from.QueueWaitMost,
		Takeovers: from.Takeovers,
	}
	s.Memory.ReadPaused, s.Memory.TLS = from.ReadPaused, from.SecureBytes
}

func (a *App) memoryStats(s *MemoryStats) {
	limit, goal, percent, begun := a.memory.State()
	if !begun {
		return // the app has not served yet
	}
	s.Limit, s.LimitSource, s.HeapGoal, s.GOGC = limit.Bytes, limit.Source, goal, percent
	b, bound := &a.memory.Budget, a.memory.Budget.Bound()
	s.Budget, s.Held, s.HeldPeak, s.Refused = bound, b.Held(), b.Peak(), b.Refused()
	s.HeldFor = make(map[string]int64)
	for u := range admission.Uses {
		s.HeldFor[u.String()] = b.HeldFor(u)
	}
	h := a.memory.Holders
	s.Pending = b.HeldFor(admission.Output)
	s.Waiting, s.WaitingFor, s.Holders, s.Fair, s.Ending = h.Waiting(), h.WaitingFor(), h.Count(), min(h.Fair(), bound), h.Ending()
	for _, x := range h.Largest(mostHoldings) {
		s.Largest = append(s.Largest, Holding{x.Remote.String(), x.Held, x.For, x.Free})
	}
}
