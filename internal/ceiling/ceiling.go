// Package ceiling keeps a process below its memory limit: it finds the limit, gives a part of
// it to the budget for what clients make the server hold, and has the collector paced by the
// rest.
//
// # What a limit is spent on
//
// internal/ceiling finds the limit: Config.MemoryLimit, unless a control group leaves less, else
// the control group's, else GOMEMLIMIT. What the program itself takes is subtracted (GOMEMLIMIT
// does not count that), and from a control group's limit a third, at most 64 MB, for the kernel,
// whose sockets and files count there; the rest is the room.
//
//   - The program (internal/admission/program_linux.go) has touched much of itself by starting
//     that it does not need again. Soon after an app has begun to serve, what is mapped of it is
//     dropped; what is used comes back from the system's cache. Not so where the limit is a
//     control group's: there the system does that itself.
//   - The collector (internal/admission/collector.go) is paced, without a limit from 10 ms after the first listener on.
//     After a collection GOGC is chosen such that the heap grows as far as the
//     room allows, at most a hundred times a second (fifty within a limit, where collections come oftener than that). The room is reckoned
//     anew each time: it becomes smaller as more of the program is used. The runtime's memory
//     limit is a backstop. It is set 1 to 4 MB below a room of some size, since it is passed when a
//     collection has to wait for a processor, and then 4 MB higher, which the runtime counts but
//     hardly ever touches. Without a limit it is 24 MB, or so much that a larger heap can grow
//     as far as with Go's own percentage, and an eighth more: that bounds how far a small heap
//     passes its goal of 16 MB. Without a limit and with only net/http's server there is none, and the goal is 7 MB, where Go's
//     own is 4, or twice what is live. Ten seconds after the last collection, when a process has become
//     quiet, the buffers kept for later and the program's pages are let go and one more
//     collection gives back to the system what the last clients left; after that no timer is
//     set.
//   - The budget (internal/admission/budget.go), a quarter of the room and at most 256 MB, which
//     it has without a limit, is for what clients make the server hold, by use: input that is
//     not complete, bodies that an action reads in whole, output that is not taken, buffers of
//     streams, and requests queued for a worker. The capacity of a buffer is reserved before
//     it is filled and released with it, so everything is zero when all connections are closed;
//     tests check that after every case. A request that is read, answered and written in one go
//     touches no budget.
//   - Caches (internal/admission/kept.go): what can be made again has a part of the budget
//     (App.CacheMemory), gets room only while a quarter is free, and is dropped before anything
//     else is refused or anybody is ended.
//   - By holder (internal/admission/holders.go, room.go, victims.go): what is in the budget is
//     charged to accounts, one for each connection of the loop engine
//     (internal/engine/holder.go) and one for each request of net/http that reads a body in
//     whole (internal/stdhttp/holder.go); the accounts of an address have a sum. A connection
//     opens its account when it first holds something. Whoever holds more than a fair share
//     stands in a list; when there is no room, the costliest of the slow ones among these is
//     ended: its loop gets a message, and refuses or closes it; a goroutine that has it fails
//     when it would next wait. Until it has let go, its bytes count as leaving. A large body
//     is reserved in whole (body.go). What was reserved for a request is its answer's until that
//     has been sent. Nothing else happens to anybody: there are no stages for all.
//   - A quarter of the budget stays for those who hold little: all who hold more than 80 KiB
//     reserve three quarters of it together at most, unless there is only one, since those of
//     them for whom the service works cannot be ended. What they ask for beyond that waits; heads
//     and small bodies find the rest. An answer that has been made cannot wait: it is not bound by
//     that, and has others make room like everything else.
//   - Caps (internal/admission/caps.go): Config.MaxMemoryPerConnection bounds the body of a
//     request, and Config.MaxMemoryPerAddress what an address holds in all, by the same rules
//     within it as in the budget: who is costliest there makes room. Without them the budget is
//     the bound, and an address that holds more than half of it makes room before others.
//   - Requests whose answers are large, as the route has shown (internal/loophttp/room.go), are
//     begun when there is room for as much as will be left; until then they wait with their loop
//     (internal/engine/room.go), in order.
//   - The policy alone is tested by a simulation in virtual time (holders_sim_test.go): about a
//     thousand clients of every kind, with what is promised as assertions after each step.
//   - Workers are bounded by one for each 256 KB of the room, unless Config.MaxConcurrent says
//     otherwise.
//   - A driver's buffers and those of pools are dropped when they have grown beyond a bound, and
//     a body costs memory as it arrives, not as it is announced. One that is gathered gets 64 KB
//     once it is more than 16 KB, from a pool that keeps 16 such pieces at most and no more than
//     a sixteenth of the budget. An answer that lies in the request's body is sent from there,
//     however long it is: it costs no second copy, which no budget would know of.
//
// App.Stats (stats.go) says where all this stands.
package ceiling

import (
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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

	// actionShare is the room, in bytes, that one waiting action is reckoned to take:
	// its goroutine, what it has built and the answer it encodes.
	actionShare   = 256 << 10
	mostActions   = 10_000
	fewestActions = 16

	// kernelShare is the part of a control group's limit, one in so many, that is
	// left to what the kernel counts against it and no process sees: sockets, some
	// 2.5 KB each, page tables, and files in its cache. Without it a small group that
	// is full of connections loses the pages of its program again and again, until
	// the kernel finds no others and kills it.
	kernelShare = 3
	mostKernel  = 64 << 20

	// comesBack is how many sixteenths of what starting has touched of the program are
	// used again, at the least.
	comesBack = 10

	// leastRoom is less than any server with traffic can do with.
	leastRoom = 4 << 20
)

// Settings are what a Ceiling needs to know.
type Settings struct {
	Limit       int64 // in bytes; 0: that of the control group, or GOMEMLIMIT
	KeepProgram bool  // what starting has touched of the program is not dropped
	NoPacing    bool  // the collector is left alone
	Log         *slog.Logger
}

// A Ceiling keeps a memory limit. Before Begin its budget has no bound.
type Ceiling struct {
	Budget  admission.Budget   // for what clients make the server hold
	Holders *admission.Holders // who holds what of it

	mu        sync.Mutex
	begun     bool // or ended before that
	told      bool // what the limit is
	loop      bool // event loops serve
	settings  Settings
	limit     admission.MemoryLimit
	program   *program
	room      int64        // beside the program when the app began; 0 without a limit
	roomNow   func() int64 // for the collector's pace; nil without a limit
	letGo     func() int64 // see OnQuiet
	collector *admission.Collector
	soon      *time.Timer // paces the collector; nil unless Serving has asked for it
	ended     bool
}

// New returns a Ceiling that has begun nothing.
func New() *Ceiling {
	m := new(Ceiling)
	m.Holders = admission.NewHolders(&m.Budget, admission.Clock())
	return m
}

// Begin finds the limit, and has the collector paced if there is one, when called first.
func (m *Ceiling) Begin(settings Settings) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.begun {
		return
	}
	m.begun, m.settings = true, settings
	m.limit = findLimit(settings.Limit, admission.KernelFiles())
	bound := int64(easyBudget)
	p := newProgram(m.limit, settings.KeepProgram)
	m.program = p
	if m.limit.Bytes > 0 {
		p.measure()
		m.room = p.beside(m.limit, p.most)
		if m.room <= leastRoom {
			settings.Log.Warn("the memory limit leaves hardly anything beside the program itself",
				"limit", m.limit.Bytes, "source", m.limit.Source, "program", p.most)
		}
		bound = min(bound, m.room/budgetShare)
		m.roomNow = func() int64 { return p.room(m.limit) }
	}
	m.Budget.SetBound(bound)
	if m.roomNow != nil {
		m.pace()
	}
	if p.drops {
		p.drop = time.AfterFunc(dropAfter, p.dropNow)
	}
}

// Serving has the collector paced from the first listener on, limit or not: requests leave so
// little that is live that Go would collect all the time. Without a limit how far the heap may
// grow depends on whether the loop engine serves: by net/http a service is to take hardly more memory than others by it.
// The first call also says in the log what the limit is, and what follows from it.
//
// Where there is no limit pacing begins a moment later, or when somebody asks for the State: a program that starts
// has no heap to speak of yet, and the first look at the runtime is its dearest.
func (m *Ceiling) Serving(loop bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return
	}
	if !m.told {
		m.told = true
		m.settings.Log.Debug("memory", "limit", m.limit.Bytes, "source", m.limit.Source, "budget", m.Budget.Bound(), "heapGoal", m.collector.Goal())
	}
	m.loop = m.loop || loop
	switch {
	case m.collector == nil && m.soon == nil:
		m.soon = time.AfterFunc(paceAfter, m.paceNow)
	case m.collector != nil && loop:
		m.collector.LoopServes()
	}
}

func (m *Ceiling) paceNow() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pace()
}

// pace begins to pace the collector unless it is paced or is not to be. m.mu is held.
func (m *Ceiling) pace() {
	if m.collector != nil || m.ended || m.settings.NoPacing {
		return
	}
	m.collector = admission.PaceCollector(m.roomNow, m.loop)
	if m.program.drops {
		m.collector.DropsProgram()
	}
	if m.letGo != nil {
		m.collector.OnQuiet(m.letGo)
	}
}

// End gives the collector back its old settings.
func (m *Ceiling) End() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun, m.ended = true, true
	if m.collector != nil {
		m.collector.Stop()
	}
	if m.soon != nil {
		m.soon.Stop()
	}
	if m.program != nil && m.program.drop != nil {
		m.program.drop.Stop()
	}
}

// OnQuiet has letGo called when the process becomes quiet, beside those of earlier calls, see admission.Collector.
func (m *Ceiling) OnQuiet(letGo func() int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if earlier := m.letGo; earlier != nil {
		last := letGo
		letGo = func() int64 { return earlier() + last() }
	}
	m.letGo = letGo
	if m.collector != nil {
		m.collector.OnQuiet(letGo)
	}
}

// MaxConcurrent is how many actions may wait at once, by the memory that they take.
func (m *Ceiling) MaxConcurrent() int {
	if m.room == 0 {
		return mostActions
	}
	return int(min(max(m.room/actionShare, fewestActions), mostActions))
}

// SecureMemory is what TLS may take for open connections, in bytes, beside the budget; 0 without a limit.
func (m *Ceiling) SecureMemory() int64 { return m.room - m.room/budgetShare }

// State returns the limit, how large the heap may grow before a collection, and GOGC as it was
// chosen (0: as Go or the user has them); false before Begin.
func (m *Ceiling) State() (limit admission.MemoryLimit, heapGoal int64, percent int, begun bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.program == nil {
		return admission.MemoryLimit{}, 0, 0, false
	}
	if m.soon != nil {
		m.pace()
	}
	return m.limit, m.collector.Goal(), m.collector.Percent(), true
}

// A program is what a process has in memory of its own file and its libraries. What only
// starting has needed of it is dropped, but not for the limit of a control group: that
// also bounds what the system keeps of the program's file, mapped or not, and the system takes
// back first what has not been used for long.
type program struct {
	drops   bool
	drop    *time.Timer
	settled atomic.Bool // nothing is to be dropped any more
	most    int64       // that is known to be needed, in bytes
}

// dropAfter is how long after the first Serve the program is dropped, which with what comes back at once takes
// two or three milliseconds: a service that starts has other things to do.
const dropAfter = 250 * time.Millisecond

// paceAfter is how long after it has begun to serve the collector of a program without a limit is paced.
const paceAfter = 10 * time.Millisecond

func newProgram(limit admission.MemoryLimit, keep bool) *program {
	p := &program{drops: !keep && !ofGroup(limit)}
	p.settled.Store(!p.drops)
	return p
}

// measure finds out how much of the program is known to be needed.
func (p *program) measure() {
	p.most = admission.ProgramBytes()
	if p.drops {
		p.most = p.most * comesBack / 16
	}
}

func (p *program) dropNow() {
	admission.DropProgram()
	p.settled.Store(true)
}

// room returns what a limit leaves to Go beside the program as it is now. That the system has
// taken back some of the program, as it does where memory is short, is no reason to take more
// for the heap; that all of it is there, because nothing has been dropped yet, is one to take
// less.
func (p *program) room(limit admission.MemoryLimit) int64 {
	now := max(p.most, admission.ProgramBytes())
	if p.settled.Load() {
		p.most = now
	}
	return p.beside(limit, now)
}

// beside returns what a limit leaves to Go beside so many bytes of the program.
func (p *program) beside(limit admission.MemoryLimit, bytes int64) int64 {
	switch {
	case limit.Source == "GOMEMLIMIT":
		return limit.Bytes // it does not count the program
	case ofGroup(limit):
		return max(leftToProcesses(limit)-bytes, leastRoom)
	}
	return max(limit.Bytes-bytes, leastRoom)
}

// findLimit finds the limit that holds: the configured one, unless the process's control group
// leaves less.
func findLimit(configured int64, root fs.ReadFileFS) admission.MemoryLimit {
	limit := admission.FindMemoryLimit(configured, root)
	if configured > 0 {
		if group := admission.FindMemoryLimit(0, root); ofGroup(group) && leftToProcesses(group) < configured {
			return group
		}
	}
	return limit
}

// leftToProcesses returns what a control group's limit leaves to its processes.
func leftToProcesses(group admission.MemoryLimit) int64 {
	return group.Bytes - min(group.Bytes/kernelShare, mostKernel)
}

func ofGroup(limit admission.MemoryLimit) bool { return strings.HasPrefix(limit.Source, "cgroup") }
