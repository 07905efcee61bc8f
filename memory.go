package dunlin

import (
	"os"
	"strings"
	"sync"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// How a memory limit is spent:
//
//	limit ─ the program itself (mapped code and data) ─▶ room, which Go manages
//	      └ of a control group also the kernel's own
//	room ── a quarter at most ─▶ the budget, for what clients make the server hold
//	     └─ the rest ─▶ what actions allocate, the runtime, garbage
//
// The budget is what the framework can refuse. How large the heap grows between
// two collections follows from the room, see admission.PaceCollector.
const (
	budgetShare = 4 // of the room, the budget is one part in so many

	// Without a limit, the budget still has a bound, so that clients alone cannot
	// fill the machine.
	easyBudget = 256 << 20

	// outputShare says at which part of the budget pending output stops the reading
	// of requests: the rest is for what is asked for in the meantime.
	outputShare = 2
	easyOutput  = 16 << 20

	// actionShare is the room, in bytes, that one waiting action is reckoned to take:
	// its goroutine, what it has built and the answer it encodes.
	actionShare   = 256 << 10
	mostActions   = 10_000
	fewestActions = 16

	// kernelShare is the part of a control group's limit, one in so many, that is
	// left to what the kernel counts against it and no process sees: sockets, some
	// 2.5 KB each, and page tables. Without it a small group that is full of
	// connections loses the pages of its program again and again.
	kernelShare = 6
	mostKernel  = 64 << 20

	// leastRoom is less than any server with traffic can do with.
	leastRoom = 4 << 20
)

// memory is the part of an App that keeps the ceiling.
type memory struct {
	mu        sync.Mutex
	begun     bool // or ended before that
	limit     admission.Limit
	room      int64            // beside the program when the app began; 0 without a limit
	budget    admission.Budget // without a bound until begin
	collector *admission.Collector
}

// begin finds the limit and has the collector paced, when the app first serves.
func (m *memory) begin(a *App) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.begun {
		return
	}
	m.begun = true
	m.limit = admission.FindLimit(int64(a.config.MemoryLimit), os.DirFS("/"))
	bound := int64(easyBudget)
	var room func() int64
	if m.limit.Bytes > 0 {
		m.room = roomWithin(m.limit)
		if m.room <= leastRoom {
			a.config.Logger.Warn("the memory limit leaves hardly anything beside the program itself",
				"limit", ByteSize(m.limit.Bytes), "source", m.limit.Source, "program", ByteSize(admission.ProgramBytes()))
		}
		bound = min(bound, m.room/budgetShare)
		room = func() int64 { return roomWithin(m.limit) }
	}
	admission.DropProgram()
	m.budget.SetBound(bound)
	m.collector = admission.PaceCollector(room)
	a.config.Logger.Info("memory", "limit", m.limit.Bytes, "source", m.limit.Source, "budget", bound, "heapGoal", m.collector.Goal())
}

// end gives the collector back its old settings.
func (m *memory) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun = true
	if m.collector != nil {
		m.collector.Stop()
	}
}

// maxPending is the pending output above which no requests are read.
func (m *memory) maxPending() int64 {
	return min(easyOutput, m.budget.Bound()/outputShare)
}

// maxConcurrent is how many actions may wait at once unless Config says it.
func (m *memory) maxConcurrent() int {
	if m.room == 0 {
		return mostActions
	}
	return int(min(max(m.room/actionShare, fewestActions), mostActions))
}

// roomWithin returns what a limit leaves to Go beside the program, as that is now.
func roomWithin(limit admission.Limit) int64 {
	room := limit.Bytes
	switch {
	case limit.Source == "GOMEMLIMIT":
		return room // it does not count the program
	case strings.HasPrefix(limit.Source, "cgroup"):
		room -= min(limit.Bytes/kernelShare, mostKernel)
	}
	return max(room-admission.ProgramBytes(), leastRoom)
}
