package dunlin

import (
	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/tally"
	"github.com/dunlinhttp/dunlin/stats"
)

// maxHoldings is the maximum length of Largest of stats.Memory.
const maxHoldings = 5

// Stats returns a snapshot of the app's counts. It takes about ten microseconds, plus about one for each route in use. It is safe
// for concurrent use and does not stop the app. A concurrent change may be visible in one figure and not yet in another.
func (a *App) Stats() stats.Snapshot {
	var s stats.Snapshot
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
		s.Workers = append(s.Workers, stats.Worker(w))
	}
	s.Routes = a.routeStats()
	countStats(&a.server.Unmatched.Counts, &s.Unmatched)
	s.Actions.InFlight = s.Unmatched.InFlight
	for i := range s.Routes {
		s.Actions.InFlight += s.Routes[i].InFlight
	}
	s.Runtime, s.Added = stats.Runtime(tally.ReadRuntime()), a.parts.Read()
	return s
}

// engineStats fills in the counts of the event loops.
func (a *App) engineStats(s *stats.Snapshot) {
	from, serving := a.loop.Stats()
	if !serving {
		return
	}
	s.Connections.Open += from.Connections
	s.Connections.PerLoop = from.PerLoop
	s.Connections.Accepted += from.Accepted
	s.Connections.AcceptPauses += from.AcceptPauses
	s.Connections.AcceptPaused = max(s.Connections.AcceptPaused, from.AcceptPaused)
	s.Actions = stats.Actions{
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

func (a *App) memoryStats(s *stats.Memory) {
	limit, goal, percent, begun := a.memory.State()
	if !begun {
		return // the app has not served yet
	}
	s.Limit, s.LimitSource, s.HeapGoal, s.GOGC = limit.Bytes, limit.Source, goal, percent
	b, bound := &a.memory.Budget, a.memory.Budget.Bound()
	s.Budget, s.Held, s.HeldPeak, s.Refused = bound, b.Held(), b.Peak(), b.Refused()
	s.HeldFor = make(map[string]int64)
	for u := range memory.Uses {
		s.HeldFor[u.String()] = b.HeldFor(u)
	}
	s.Pending = b.HeldFor(memory.Output)
	s.Waiting, s.WaitingFor, s.Holders, s.Fair, s.Ending = b.Waiting(), b.WaitingFor(), b.Count(), min(memory.Small, bound), b.Ending()
	for _, x := range b.Largest(maxHoldings) {
		s.Largest = append(s.Largest, stats.Holding{Remote: x.Remote.String(), Held: x.Held, For: x.For, Free: x.Free})
	}
}

// AddStats implements ext.AddStats.
func (*inside) AddStats(a *App, name string, stats func() any) {
	if !a.parts.Add(name, stats) {
		panic("dunlin: AddStats: the name " + name + " is taken, or the function is nil (called at " + callerPlace() + ")")
	}
}
