package dunlin

import (
	"encoding/json"
	"expvar"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// Stats is a snapshot of an App at work. As JSON its names are those of the tags;
// times are in nanoseconds, and their names end in Ns.
type Stats struct {
	Connections Connections       `json:"connections"`
	Actions     ActionStats       `json:"actions"`
	Memory      MemoryStats       `json:"memory"`
	Runtime     RuntimeStats      `json:"runtime"`
	Shed        map[string]uint64 `json:"shed"`            // what was refused, put off or cut off, by reason: docs/DEPLOY.md has the list
	Workers     []WorkerStats     `json:"workers"`         // background workers by name, see App.Go
	Routes      []RouteStats      `json:"routes"`          // in the order of their registration, see Config.RouteStats
	Unmatched   RouteStats        `json:"unmatched"`       // requests that no route takes: 404, 405, redirects to a clean path; and those that were refused before there was a route
	LogDropped  uint64            `json:"logDropped"`      // log records for which Config.Logger was too slow
	Added       map[string]any    `json:"added,omitempty"` // what is counted by others, see App.AddStats
}

// WorkerStats are the counts of the background workers of one name, see [App.Go].
type WorkerStats struct {
	Name    string `json:"name"`
	Running int    `json:"running"`
	Ended   uint64 `json:"ended"`  // for whatever reason
	Errors  uint64 `json:"errors"` // ended with an error, before the app told them to end
	Panics  uint64 `json:"panics"`
}

// Connections are those of both engines.
type Connections struct {
	Open         int    `json:"open"`    // without hijacked ones, at the latest once their handlers have returned
	PerLoop      []int  `json:"perLoop"` // of these, on each event loop
	Accepted     uint64 `json:"accepted"`
	AcceptPauses uint64 `json:"acceptPauses"` // times accepting stopped for want of file descriptors, or at MaxConnections

	// AcceptPaused is how long accepting has been paused for one of these reasons; 0 if it is
	// not paused.
	AcceptPaused time.Duration `json:"acceptPausedNs"`

	Refused uint64 `json:"refused"` // requests to the loop engine that were malformed, too large or cut short
}

// ActionStats says how actions run. Those that run on the loop engine without
// blocking are never in flight for long enough to be seen.
type ActionStats struct {
	InFlight  int    `json:"inFlight"`  // on both engines, see RouteStats
	Away      int    `json:"away"`      // connections to the loop engine with a goroutine of their own: actions that block, streams
	Working   int    `json:"working"`   // of these, those that count against Config.MaxConcurrent
	Most      int    `json:"most"`      // how many may be Working: Config.MaxConcurrent, or less by AdaptiveLimit
	Queued    int    `json:"queued"`    // waiting for a worker, see Config.MaxConcurrent
	Takeovers uint64 `json:"takeovers"` // event loops taken from an action that blocked

	// How long requests waited before anything was done for them: the longest wait of the last
	// second or two, and (Most) the longest ever. LoopWait is for a turn on an event loop,
	// QueueWait for a worker.
	LoopWait      time.Duration `json:"loopWaitNs"`
	LoopWaitMost  time.Duration `json:"loopWaitMostNs"`
	QueueWait     time.Duration `json:"queueWaitNs"`
	QueueWaitMost time.Duration `json:"queueWaitMostNs"`
}

// MemoryStats says what the memory limit is spent on, in bytes.
type MemoryStats struct {
	Limit       int64            `json:"limit"`        // 0: none
	LimitSource string           `json:"limitSource"`  // config, cgroup v2, cgroup v1, GOMEMLIMIT or none
	Budget      int64            `json:"budget"`       // what clients may make the server hold
	Held        int64            `json:"held"`         // what they make it hold now
	HeldFor     map[string]int64 `json:"heldFor"`      // Held by use: input, body, output, stream, queued, handshake and cache
	HeldPeak    int64            `json:"heldPeak"`     // the most there has been
	Refused     uint64           `json:"refused"`      // times something found no room in the budget
	TLS         int64            `json:"tls"`          // estimated use of TLS for open connections to the loop engine, beside the budget
	Pending     int64            `json:"pending"`      // answers that clients have not taken yet
	ReadPaused  int              `json:"readPaused"`   // connections to the loop engine that are not read until their clients take their answers
	Waiting     int              `json:"waiting"`      // requests whose bodies are not read on until there is room
	WaitingFor  time.Duration    `json:"waitingForNs"` // how long there have been such requests without a break; 0 if there are none
	Holders     int              `json:"holders"`      // connections and requests that hold something
	Fair        int64            `json:"fair"`         // the fair share: who holds no more is not refused or cut off for others
	Ending      int64            `json:"ending"`       // held by those who are being ended to make room
	Largest     []Holding        `json:"largest"`      // those who hold most, the largest first
	HeapGoal    int64            `json:"heapGoal"`     // how large the heap may grow before a collection; 0: Go's own choice
	GOGC        int              `json:"gogc"`         // as set after the latest collection; 0: the program's own
}

// A Holding says what one client makes the server hold: over a connection to the loop engine,
// or with a request to net/http.
type Holding struct {
	Remote string        `json:"remote"` // address and port
	Held   int64         `json:"held"`   // bytes
	For    time.Duration `json:"forNs"`  // since it began to hold something
	Free   time.Duration `json:"freeNs"` // until that will be free, as estimated from the client's speed
}

// mostHoldings is how many there are in MemoryStats.
const mostHoldings = 5

// RuntimeStats are Go's own figures.
type RuntimeStats struct {
	Goroutines  int           `json:"goroutines"`
	HeapLive    int64         `json:"heapLive"`    // bytes that the latest collection left
	Collections uint64        `json:"collections"` // since the process began, as the next two
	GCPauses    time.Duration `json:"gcPausesNs"`  // how long they stopped the program in all
	GCShare     float64       `json:"gcShare"`     // of the processor time there was, up to the latest collection
}

// Stats returns a snapshot. It takes some ten microseconds, and about one for each
// route that is in use, and stops nothing; it may be called at any time, from any
// goroutine. What happens meanwhile may show in one figure and not yet in another.
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

// AddStats adds what stats returns to [Stats.Added], under a name: the counts of a store that is not always reachable,
// for example. stats is called for each snapshot, by any goroutine, and must not block. What it returns is encoded as
// JSON; if it panics, a text that says so stands there instead. AddStats panics when the name is taken.
//
//	app.AddStats("store", func() any { return guarded.Stats() })
func (a *App) AddStats(name string, stats func() any) {
	if !a.parts.Add(name, stats) {
		panic("dunlin: AddStats: the name " + name + " is taken, or the function is nil (called at " + callerPlace() + ")")
	}
}

// PublishStats makes Stats a variable of package expvar, read anew each time. It panics when the name is taken.
func (a *App) PublishStats(name string) {
	expvar.Publish(name, expvar.Func(func() any { return a.Stats() }))
}

// String returns the snapshot as JSON.
func (s Stats) String() string {
	text, err := json.Marshal(s)
	if err != nil {
		return err.Error() // no field of it can fail
	}
	return string(text)
}

// engineStats fills in what the event loops know.
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
