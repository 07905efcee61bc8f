package dunlin

import (
	"encoding/json"
	"expvar"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// Stats is a snapshot of an App at work. What the net/http engine serves shows in
// Memory and Runtime only.
type Stats struct {
	Connections Connections
	Actions     ActionStats
	Memory      MemoryStats
	Runtime     RuntimeStats
	Shed        map[string]uint64 // what was refused, put off or cut off, by reason
}

// Connections are those of the loop engine.
type Connections struct {
	Open         int
	PerLoop      []int
	Accepted     uint64
	AcceptPauses uint64 // times accepting stopped for want of file descriptors
}

// ActionStats says how actions run on the loop engine.
type ActionStats struct {
	Away      int           // with a goroutine of their own: they block, or stream
	Working   int           // of these, on workers
	Queued    int           // waiting for a worker, see Config.MaxConcurrent
	QueueWait time.Duration // how long the latest one waited
	Takeovers uint64        // event loops taken from an action that blocked
}

// MemoryStats says what the memory limit is spent on, in bytes.
type MemoryStats struct {
	Limit       int64  // 0: none
	LimitSource string // config, cgroup v2, cgroup v1, GOMEMLIMIT or none
	Budget      int64  // what clients may make the server hold
	Pending     int64  // answers that clients have not taken yet
	PendingMost int64  // from which on no requests are read
	HeapGoal    int64  // how large the heap may grow before a collection
	GOGC        int    // as chosen after the latest collection; 0: the user's
}

// RuntimeStats are Go's own figures.
type RuntimeStats struct {
	Goroutines  int
	HeapLive    int64 // what the latest collection left
	Collections uint64
}

// Stats returns a snapshot. It takes some microseconds and stops nothing; it may
// be called at any time, from any goroutine.
func (a *App) Stats() Stats {
	var s Stats
	a.memory.stats(&s.Memory)
	a.engineStats(&s)
	s.Shed = make(map[string]uint64)
	for r := range admission.Reasons {
		s.Shed[r.String()] = a.shed.Count(r)
	}
	s.Runtime = runtimeStats()
	return s
}

// PublishStats makes Stats a variable of package expvar, read anew each time. It
// panics when the name is taken.
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

func (m *memory) stats(s *MemoryStats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.budget == nil {
		return // the app has not served yet
	}
	s.Limit, s.LimitSource = m.limit.Bytes, m.limit.Source
	s.Budget = m.budget.Bound()
	s.PendingMost = m.maxPending()
	s.HeapGoal, s.GOGC = m.collector.Goal(), m.collector.Percent()
}

func runtimeStats() RuntimeStats {
	samples := [2]metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(samples[:])
	return RuntimeStats{
		Goroutines:  runtime.NumGoroutine(),
		HeapLive:    int64(samples[0].Value.Uint64()),
		Collections: samples[1].Value.Uint64(),
	}
}
