package gcpace

import (
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
)

const (
	budgetShare = 4 // the budget is one part in budgetShare of the room

	// easyBudget is the budget without a limit, so that clients alone cannot fill the machine.
	easyBudget = 256 << 20

	// actionShare is the expected memory of one waiting action, in bytes: its goroutine, its values and the encoded
	// answer.
	actionShare   = 256 << 10
	maxActions    = 10_000
	fewestActions = 16

	// The kernel keeps one part in kernelShare of a control group's limit, at most maxKernel, for sockets (2.5 KB each), page
	// tables and cached files, which count against the limit. Without this part a small group with many connections loses the
	// pages of its program again and again, until the kernel kills the process.
	kernelShare = 3
	maxKernel   = 64 << 20

	// usedAgain is the share, in sixteenths, of the program's pages touched during start-up that are used again. The
	// system reclaims the others first, or the program drops them.
	usedAgain = 10

	// minRoom is less than any server with traffic needs.
	minRoom = 4 << 20
)

// Settings are the settings of a Process.
type Settings struct {
	Limit    int64 // in bytes; 0: the limit of the control group, or GOMEMLIMIT
	NoPacing bool  // do not change the collector's settings
	Log      *slog.Logger
}

// A Process applies the memory limit of the process for an app. The zero value is ready for Begin.
type Process struct {
	mu        sync.Mutex
	begun     bool // Begin or End was called
	settings  Settings
	limit     MemoryLimit
	room      int64        // limit less the program's size at Begin; 0 without a limit
	dropFree  func() int64 // see OnQuiet
	collector *Collector
	ended     bool
}

// Begin finds the limit, and starts to pace the collector if there is one. It returns the budget for clients, in
// bytes, or 0 if Begin or End was called before.
func (p *Process) Begin(settings Settings) (budget int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun {
		return 0
	}
	p.begun, p.settings = true, settings
	p.limit = findLimit(settings.Limit, os.DirFS("/").(fs.ReadFileFS))
	settings.Log.Debug("memory", "limit", p.limit.Bytes, "source", p.limit.Source)
	if p.limit.Bytes <= 0 {
		return easyBudget
	}
	program := ProgramBytes()
	if !ofCgroup(p.limit) {
		program = program * usedAgain / 16
	}
	if p.room = p.beside(program); p.room <= minRoom {
		settings.Log.Warn("the memory limit leaves hardly any memory after the program itself",
			"limit", p.limit.Bytes, "source", p.limit.Source, "program", program)
	}
	p.pace()
	return min(easyBudget, p.room/budgetShare)
}

// LoopServes must be called when event loops begin to serve. With event loops the collector is paced also without a limit.
func (p *Process) LoopServes() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pace()
}

// pace starts to pace the collector, unless it is paced already or must not be paced. The caller holds p.mu.
func (p *Process) pace() {
	if p.collector != nil || p.ended || p.settings.NoPacing {
		return
	}
	var room func() int64
	if p.limit.Bytes > 0 {
		room = p.roomNow
	}
	p.collector = PaceCollector(room)
	if p.dropFree != nil {
		p.collector.OnQuiet(p.dropFree)
	}
}

// End restores the collector's settings.
func (p *Process) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun, p.ended = true, true
	if p.collector != nil {
		p.collector.Stop()
	}
}

// OnQuiet registers a function that is called when the process becomes quiet, in addition to earlier ones, see
// [Collector.OnQuiet].
func (p *Process) OnQuiet(dropFree func() int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if earlier := p.dropFree; earlier != nil {
		last := dropFree
		dropFree = func() int64 { return earlier() + last() }
	}
	p.dropFree = dropFree
	if p.collector != nil {
		p.collector.OnQuiet(dropFree)
	}
}

// MaxConcurrent returns the number of actions that may wait at once, derived from the room.
func (p *Process) MaxConcurrent() int {
	if p.room == 0 {
		return maxActions
	}
	return int(min(max(p.room/actionShare, fewestActions), maxActions))
}

// SecureMemory returns the memory for open TLS connections in bytes, in addition to the budget. It is 0 without a
// limit.
func (p *Process) SecureMemory() int64 { return p.room - p.room/budgetShare }

// State returns the limit, the heap size at which the next collection starts, and the chosen GOGC (0 if not chosen
// here). It returns false before Begin.
func (p *Process) State() (limit MemoryLimit, heapGoal int64, percent int, begun bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit.Source == "" {
		return MemoryLimit{}, 0, 0, false
	}
	return p.limit, p.collector.Goal(), p.collector.Percent(), true
}

// roomNow returns the room with the program's current resident size.
func (p *Process) roomNow() int64 { return p.beside(ProgramBytes()) }

// beside returns the part of the limit that remains for Go when the program has the given resident size.
func (p *Process) beside(program int64) int64 {
	bytes := p.limit.Bytes
	if p.limit.Source == "GOMEMLIMIT" {
		return bytes // this limit does not include the program
	}
	if ofCgroup(p.limit) {
		bytes = leftToProcesses(p.limit)
	}
	return max(bytes-program, minRoom)
}

// findLimit returns the effective limit: the configured one, unless the control group leaves less.
func findLimit(configured int64, root fs.ReadFileFS) MemoryLimit {
	limit := FindMemoryLimit(configured, root)
	if configured > 0 {
		if cgroup := FindMemoryLimit(0, root); ofCgroup(cgroup) && leftToProcesses(cgroup) < configured {
			return cgroup
		}
	}
	return limit
}

// leftToProcesses returns the part of a control group's limit that its processes can use.
func leftToProcesses(cgroup MemoryLimit) int64 {
	return cgroup.Bytes - min(cgroup.Bytes/kernelShare, maxKernel)
}

func ofCgroup(limit MemoryLimit) bool { return strings.HasPrefix(limit.Source, "cgroup") }
