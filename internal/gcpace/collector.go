package gcpace

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The collector runs when the heap has grown by GOGC percent over what was live,
// but not before it has 4 MB · GOGC/100. A server with 1 MB of live heap that makes
// 300 MB of garbage a second is collected 75 times a second for no reason while there
// is room for a heap several times as large. So GOGC is chosen after each
// collection:
//
//	goal     = how large the heap may grow: what the room allows
//	percent  = (goal - live) / live, and at most goal / 4 MB, in percent
//
//	live 1 MB, goal 16 MB:  4 MB · percent/100 ≤ 16 MB      → 400
//	live 8 MB, goal 16 MB:  (16-8)/8                        → 100
//	live 30 MB, goal 16 MB: there is no room                → leastPercent
//
// It never falls below leastPercent: a heap that is too large for its limit then is
// collected about three times as often as Go would, and no oftener. A heap that
// cannot fit costs some processor time, not all of it; that the budget refuses new
// work is what makes it smaller.
//
// What is allocated while the collector marks counts as live, which for a server
// short of processor time is more than all the rest. The collections of a second or more together
// say more than one: the least of them is taken to be what is really
// live, and decides the goal. But the heap does grow by percent over what counted as live.
// So for the percentage that is the last collection's, or within a limit, where the
// goal is tight and a percentage holds for several collections, the mean of the last few. Where each
// collection is looked at, it holds for the next one only, and the last says best how far that lets
// the heap grow. Should it really have grown at once, the runtime's own limit holds meanwhile.
//
// Where no event loop serves and nothing limits memory, only a small heap is given more than Go gives it, see modestGoal.
//
// Without a limit the runtime's is set all the same where event loops serve, somewhat above the goal: by how much a
// heap passes its goal depends on how long a collection has to wait for a processor, and what is
// free in it in pieces stays resident. A heap that really grows is not held up for longer than
// a few collections, as that limit is never below what Go's own percentage would have the process take.
//
// Under load a small heap is collected hundreds of times a second. Each look costs some
// microseconds and a change of goroutines, so there is a pause after it, for which the
// setting holds.
//
// When a process has become quiet, nobody collects any more what the last clients left
// behind. So some time after the last collection there is another, and the memory
// goes back to the system.
const (
	leastPercent = 30
	mostPercent  = 400
	minHeap      = 4 << 20 // of the runtime, at GOGC=100

	// untouched is memory that the runtime maps for its own bookkeeping and counts
	// against its memory limit, but hardly ever touches, so that it is not resident.
	untouched = 4 << 20

	// While a collection waits for a processor, the others go on to allocate beyond the
	// runtime's limit, the more the larger the heap is. A beyondShare of what a room has
	// more than withoutBeyond is kept for that. In a large room the percentage has a heap
	// collected before it comes near that limit, and less is kept: the same share less of
	// what a room has more than withBeyond.
	beyondShare   = 4
	withoutBeyond = 7 << 20
	withBeyond    = 32 << 20
	mostBeyond    = 4 << 20
	leastBeyond   = 1 << 20

	// easyGoal is how large a small heap grows when nothing limits memory; while less than
	// 4 MB are live, mostPercent makes that 16 MB. A larger one then doubles, as with Go's
	// own setting.
	easyGoal = 20 << 20

	// modestGoal is that where no event loop serves: by net/http a service is to take hardly more memory than others
	// by it, but the 4 MB from which on Go collects are spent 500 times a second by bodies of 64 KB. A larger heap grows
	// as with Go's own percentage.
	modestGoal = 7 << 20

	// easyLimit is the runtime's memory limit while little is live and nothing limits memory, and
	// easyShare how much more than needed there is of a larger one, one part in so many.
	easyLimit = 24 << 20
	easyShare = 8

	// limitedGoal is how large a small heap grows in a room that is large enough.
	limitedGoal = 12 << 20

	// mostBeside is how much of a room is not for the heap, at most. Should more be needed,
	// the runtime's own limit holds.
	mostBeside = 6 << 20

	// quietAfter is how long after a collection a process counts as quiet when there
	// was no other, and worthReturning how many bytes must be to be gained then.
	quietAfter     = 10 * time.Second
	worthReturning = 1 << 20

	// remembered is how many looks are averaged, and lookPause the least time between two;
	// within a limit, where that is done, limitedPause; but rarePause where collections are
	// further apart than lookPause. A look that is to see each has to be asked for before the
	// collection begins.
	remembered   = 4
	lookPause    = 10 * time.Millisecond
	limitedPause = 20 * time.Millisecond
	rarePause    = 5 * time.Millisecond

	// easyPart says by which part of itself, one in so many, the percentage must be wrong to be set anew;
	// within a limit limitedPart, since what is not used of the room costs collections.
	easyPart    = 8
	limitedPart = 32
)

// percentFor chooses GOGC for a heap of which live bytes survived the last
// collection.
func percentFor(live, goal int64) int {
	percent := min(100*(goal-live)/max(live, 1<<16), 100*goal/minHeap, mostPercent)
	return int(max(percent, leastPercent))
}

// modestPercent chooses it for a heap that is to stay about as small as Go's own percentage, which counts
// stacks, too, has it.
func modestPercent(live, stacks int64) int {
	percent := min(100*(modestGoal-live)/max(live+stacks, 1<<16), 100*modestGoal/minHeap)
	return int(max(percent, goPercent))
}

// A Collector paces the garbage collector of the process. There is one of
// those, so the settings are the process's: of several servers in it the
// tightest limit holds.
type Collector struct {
	room    func() int64 // nil: no limit
	goal    atomic.Int64
	percent atomic.Int64 // GOGC as last set

	// Under collectors.Mutex.
	lows    lows
	recent  lastFew
	spaced  spacing
	stopped bool
	quiet   *time.Timer  // set by each look: then becameQuiet
	pause   *time.Timer  // set by each look: then watch
	letGo   func() int64 // see OnQuiet; nil: nothing is kept for later
	modest  bool         // nothing limits memory, and LoopServes was not called
}

// collectors are the collectors at work; the runtime's settings from before the
// first of them come back after the last.
var collectors struct {
	sync.Mutex
	all     []*Collector
	runtime settings
}

// PaceCollector begins to pace the collector until Stop, for a process that may have
// room() bytes of memory under Go's control. room is called again and again, by one
// goroutine at a time, as what else the process holds may change; nil is no limit: then the heap may grow
// further if event loops serve, see also LoopServes. What
// the user has set is respected: a percentage that is in the environment, or is not Go's own,
// stays, and a memory limit of the runtime is only ever made tighter. What the program changes
// later is its own from then on.
func PaceCollector(room func() int64, loop bool) *Collector {
	c := &Collector{room: room, modest: room == nil && !loop}
	p := &collectors
	p.Lock()
	defer p.Unlock()
	if len(p.all) == 0 {
		p.runtime.begin()
	}
	p.all = append(p.all, c)
	c.quiet = time.AfterFunc(quietAfter, c.becameQuiet)
	c.pause = time.AfterFunc(lookPause, c.watch)
	c.adjust()
	return c
}

// Percent returns the GOGC last chosen, 0 when that is left to the user. A nil Collector
// has chosen nothing.
func (c *Collector) Percent() int {
	if c == nil {
		return 0
	}
	return int(c.percent.Load())
}

// Goal returns how large the heap is to grow before a collection, in bytes; 0 for a nil Collector.
func (c *Collector) Goal() int64 {
	if c == nil {
		return 0
	}
	return c.goal.Load()
}

// Stop ends the pacing. The settings are those of the others then; after the last one
// they are what they were.
func (c *Collector) Stop() {
	p := &collectors
	p.Lock()
	defer p.Unlock()
	if c.stopped {
		return
	}
	c.stopped = true
	c.quiet.Stop()
	c.pause.Stop()
	p.all = slices.DeleteFunc(p.all, func(other *Collector) bool { return other == c })
	p.runtime.end()
	for _, other := range p.all {
		other.adjust()
	}
}

// LoopServes says that event loops serve: without a limit a small heap may grow further then.
func (c *Collector) LoopServes() {
	collectors.Lock()
	defer collectors.Unlock()
	if c.modest && !c.stopped {
		c.modest = false
		c.adjust()
	}
}

// OnQuiet has letGo called when the process becomes quiet: it leaves to the collector
// what is kept for later only, and returns how many bytes that is.
func (c *Collector) OnQuiet(letGo func() int64) {
	collectors.Lock()
	defer collectors.Unlock()
	c.letGo = letGo
}

// becameQuiet collects and returns memory to the system, if there is any to speak of.
// Its own collections have it called once more, when there is not.
func (c *Collector) becameQuiet() {
	collectors.Lock()
	letGo, stopped := c.letGo, c.stopped
	collectors.Unlock()
	if stopped {
		return
	}
	gained := returnable()
	if letGo != nil {
		gained += letGo()
	}
	if gained < worthReturning {
		return
	}
	runtime.GC() // what was pooled goes with the second collection
	debug.FreeOSMemory()
}

// returnable returns how much of the heap's memory is not known to be live, in bytes.
func returnable() int64 {
	samples := [...]metrics.Sample{
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(samples[:])
	var n [len(samples)]int64
	for i := range samples {
		n[i] = int64(samples[i].Value.Uint64())
	}
	return n[0] + n[1] - n[2]
}

// sentinel dies in every collection. It is large enough not to share its memory
// with others, whose life would prolong its own.
type sentinel struct{ _ [64]byte }

// watch has the next collection looked at, without a timer: an idle process is not
// woken.
func (c *Collector) watch() {
	runtime.AddCleanup(new(sentinel), (*Collector).look, c)
}

// look follows a collection.
func (c *Collector) look() {
	collectors.Lock()
	defer collectors.Unlock()
	if !c.stopped {
		c.adjust()
		c.quiet.Reset(quietAfter)
		c.pause.Reset(c.pauseNow())
	}
}

// pauseNow returns how long nobody is to look.
func (c *Collector) pauseNow() time.Duration {
	switch {
	case !c.limited():
		return lookPause
	case c.spaced.apart > lookPause:
		return rarePause
	}
	return limitedPause
}

func (c *Collector) limited() bool { return c.room != nil }

// tighter reports whether c's settings go before those of other: a limit goes
// before none, without one that of event loops before a modest one, then a smaller goal before a larger.
func (c *Collector) tighter(other *Collector) bool {
	if c.limited() != other.limited() {
		return c.limited()
	}
	if c.modest != other.modest {
		return other.modest
	}
	return c.Goal() < other.Goal()
}

// adjust sets GOGC and the runtime's limit to suit the live heap and the room.
// collectors is locked.
func (c *Collector) adjust() {
	p := &collectors
	now := readRuntime()
	p.runtime.look(now)
	if !p.runtime.percent.ours {
		c.percent.Store(0)
	}
	live := now.live
	at := time.Now()
	least, mean := c.lows.note(live, at), c.recent.mean(live, remembered)
	c.spaced.note(now.cycles, at)
	few := slices.Min(c.recent.recent)
	room := int64(0)
	if c.limited() {
		room = c.room()
	}
	c.goal.Store(goalFor(least, room))
	if c.modest {
		c.goal.Store(max(modestGoal, 2*least+now.stacks))
	}
	for _, other := range p.all {
		if other.tighter(c) {
			return
		}
	}
	if c.limited() {
		p.runtime.limit.setAbout(min(room-beyond(room)+untouched, p.runtime.limit.before), 64)
		if c.spaced.seen < remembered {
			live = mean
		}
	} else if p.runtime.percent.ours && !c.modest {
		p.runtime.limit.setAbout(min(easyLimitFor(few, now), p.runtime.limit.before), 16)
	} else {
		p.runtime.limit.set(p.runtime.limit.before)
	}
	part := int64(easyPart)
	if c.limited() {
		part = limitedPart
	}
	percent := percentFor(live, c.Goal())
	if c.modest {
		percent = modestPercent(live, now.stacks)
	}
	p.runtime.percent.setAbout(int64(percent), part)
	if p.runtime.percent.ours {
		c.percent.Store(p.runtime.percent.last)
	}
}

// spacing is how collections follow each other.
type spacing struct {
	cycles int64 // ever, at the last look
	at     time.Time
	apart  time.Duration // how far from each other those since the look before were
	seen   int           // looks in a row that have each seen the next collection
}

// note takes down a look, by the number of collections so far.
func (s *spacing) note(cycles int64, at time.Time) {
	n := cycles - s.cycles
	if n <= 0 {
		return // nobody has collected since
	}
	s.seen++
	if n > 1 {
		s.seen = 0
	}
	s.apart = at.Sub(s.at) / time.Duration(n)
	s.cycles, s.at = cycles, at
}

// easyLimitFor returns the runtime's memory limit without one of ours, for a heap of which few bytes
// stayed live over the last few collections. It leaves room for what Go's own percentage would have
// the heap grow to, which counts stacks, too.
func easyLimitFor(few int64, now runtimeState) int64 {
	heap := 2*few + now.stacks
	return max(easyLimit, now.beside+heap+heap/easyShare)
}

// beyond returns how much of a room is kept for what is allocated beyond the runtime's
// limit.
func beyond(room int64) int64 {
	most := max(mostBeyond-max(room-withBeyond, 0)/beyondShare, leastBeyond)
	return min(max(room-withoutBeyond, 0)/beyondShare, most)
}

// userLimit returns the runtime's memory limit as the user has set it.
func userLimit() int64 {
	p := &collectors
	p.Lock()
	defer p.Unlock()
	if limit := &p.runtime.limit; len(p.all) > 0 && limit.ours {
		return limit.before
	}
	return debug.SetMemoryLimit(-1)
}

// goalFor returns the goal for a heap of which least bytes are really live, with room
// bytes for all that Go holds, 0 for no limit. A heap that is small beside the room leaves
// half of it alone; one that is not may double, as with Go's own setting (an eighth more, as what is allocated
// while the collector marks counts as live for the percentage), until the room is
// full but for what is not heap (stacks, the collector's own) and what fragments: a quarter
// of a small room, and at most mostBeside.
func goalFor(least, room int64) int64 {
	if room == 0 {
		return max(easyGoal, 2*least)
	}
	return min(room-min(room/4, mostBeside), max(limitedGoal, room/2, 2*least+least/4))
}
