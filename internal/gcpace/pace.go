package gcpace

import (
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	budgetShare = 4 // of the room, the budget is one part in so many

	// easyBudget is the budget's bound without a limit, so that clients alone cannot fill the machine.
	easyBudget = 256 << 20

	// actionShare is the part of the room, in bytes, that one waiting action is expected to take:
	// its goroutine, its values and the answer it encodes.
	actionShare   = 256 << 10
	mostActions   = 10_000
	fewestActions = 16

	// kernelShare is the part of a control group's limit, one in so many, that is left to the kernel, which
	// counts sockets (2.5 KB each), page tables and cached files against it. Without it a small group that is full of
	// connections loses the pages of its program again and again, until the kernel kills it.
	kernelShare = 3
	mostKernel  = 64 << 20

	// usedAgain is how many sixteenths of the program's pages that starting has touched are used again. The system takes
	// back the others first, or the program drops them.
	usedAgain = 10

	// leastRoom is less than any server with traffic needs.
	leastRoom = 4 << 20

	// paceAfter is how long after it has begun to serve the collector of a process without a limit is paced.
	paceAfter = 10 * time.Millisecond
)

// Settings are the settings of a Process.
type Settings struct {
	Limit    int64 // in bytes; 0: that of the control group, or GOMEMLIMIT
	NoPacing bool  // the collector is left alone
	Log      *slog.Logger
}

// A Process keeps the memory limit of the process for an app. The zero value has not begun.
type Process struct {
	mu        sync.Mutex
	begun     bool // or ended before that
	told      bool // the log has the limit
	loop      bool // event loops serve
	settings  Settings
	limit     MemoryLimit
	room      int64        // beside the program when the app began; 0 without a limit
	letGo     func() int64 // see OnQuiet
	collector *Collector
	soon      *time.Timer // paces the collector; nil unless Serving has asked for it
	ended     bool
}

// Begin finds the limit, and paces the collector if there is one. It returns the budget for clients, in bytes; 0 if
// Begin or End has been called before.
func (p *Process) Begin(settings Settings) (budget int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun {
		return 0
	}
	p.begun, p.settings = true, settings
	p.limit = findLimit(settings.Limit, KernelFiles())
	if p.limit.Bytes <= 0 {
		return easyBudget
	}
	program := ProgramBytes()
	if !ofGroup(p.limit) {
		program = program * usedAgain / 16
	}
	if p.room = p.beside(program); p.room <= leastRoom {
		settings.Log.Warn("the memory limit leaves hardly anything beside the program itself",
			"limit", p.limit.Bytes, "source", p.limit.Source, "program", program)
	}
	p.pace()
	return min(easyBudget, p.room/budgetShare)
}

// Serving paces the collector from the first listener on, with or without a limit. The first call also logs the limit.
//
// Without a limit, pacing begins a moment later, or when State is called: a program that starts has no heap to speak of,
// and the first look at the runtime is the most expensive one.
func (p *Process) Serving(loop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	if !p.told {
		p.told = true
		p.settings.Log.Debug("memory", "limit", p.limit.Bytes, "source", p.limit.Source, "heapGoal", p.collector.Goal())
	}
	p.loop = p.loop || loop
	switch {
	case p.collector == nil && p.soon == nil:
		p.soon = time.AfterFunc(paceAfter, p.paceNow)
	case p.collector != nil && loop:
		p.collector.LoopServes()
	}
}

func (p *Process) paceNow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pace()
}

// pace begins to pace the collector unless it is paced or must not be. p.mu is held.
func (p *Process) pace() {
	if p.collector != nil || p.ended || p.settings.NoPacing {
		return
	}
	var room func() int64
	if p.limit.Bytes > 0 {
		room = p.roomNow
	}
	p.collector = PaceCollector(room, p.loop)
	if p.letGo != nil {
		p.collector.OnQuiet(p.letGo)
	}
}

// End restores the settings of the collector.
func (p *Process) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun, p.ended = true, true
	if p.collector != nil {
		p.collector.Stop()
	}
	if p.soon != nil {
		p.soon.Stop()
	}
}

// OnQuiet has letGo called when the process becomes quiet, beside the functions of earlier calls, see [Collector.OnQuiet].
func (p *Process) OnQuiet(letGo func() int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if earlier := p.letGo; earlier != nil {
		last := letGo
		letGo = func() int64 { return earlier() + last() }
	}
	p.letGo = letGo
	if p.collector != nil {
		p.collector.OnQuiet(letGo)
	}
}

// MaxConcurrent returns how many actions may wait at once, by the memory that they take.
func (p *Process) MaxConcurrent() int {
	if p.room == 0 {
		return mostActions
	}
	return int(min(max(p.room/actionShare, fewestActions), mostActions))
}

// SecureMemory returns the memory for open connections with TLS, in bytes, beside the budget; 0 without a limit.
func (p *Process) SecureMemory() int64 { return p.room - p.room/budgetShare }

// State returns the limit, how large the heap may grow before a collection, and GOGC as it was
// chosen (0: as Go or the user has them); false before Begin.
func (p *Process) State() (limit MemoryLimit, heapGoal int64, percent int, begun bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit.Source == "" {
		return MemoryLimit{}, 0, 0, false
	}
	if p.soon != nil {
		p.pace()
	}
	return p.limit, p.collector.Goal(), p.collector.Percent(), true
}

// roomNow returns what the limit leaves to Go beside the pages of the program that are in memory now.
func (p *Process) roomNow() int64 { return p.beside(ProgramBytes()) }

// beside returns what the limit leaves to Go beside so many bytes of the program.
func (p *Process) beside(program int64) int64 {
	bytes := p.limit.Bytes
	if p.limit.Source == "GOMEMLIMIT" {
		return bytes // it does not count the program
	}
	if ofGroup(p.limit) {
		bytes = leftToProcesses(p.limit)
	}
	return max(bytes-program, leastRoom)
}

// findLimit finds the limit that holds: the configured one, unless the process's control group
// leaves less.
func findLimit(configured int64, root fs.ReadFileFS) MemoryLimit {
	limit := FindMemoryLimit(configured, root)
	if configured > 0 {
		if group := FindMemoryLimit(0, root); ofGroup(group) && leftToProcesses(group) < configured {
			return group
		}
	}
	return limit
}

// leftToProcesses returns what a control group's limit leaves to its processes.
func leftToProcesses(group MemoryLimit) int64 {
	return group.Bytes - min(group.Bytes/kernelShare, mostKernel)
}

func ofGroup(limit MemoryLimit) bool { return strings.HasPrefix(limit.Source, "cgroup") }
