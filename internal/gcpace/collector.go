package gcpace

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"time"
)

// A collection starts when the heap has grown by GOGC percent over its live part, but not below 4 MB · GOGC/100. A server
// with 1 MB of live heap that allocates 300 MB a second is collected 75 times a second, although there is room for a heap
// several times as large. So GOGC is chosen after each collection:
//
//	goal     = the heap size that the room allows
//	percent  = (goal - live) / live, and at most goal / 4 MB, in percent
//
//	live 1 MB, goal 16 MB:  4 MB · percent/100 ≤ 16 MB      → 400
//	live 8 MB, goal 16 MB:  (16-8)/8                        → 100
//	live 30 MB, goal 16 MB: there is no room                → minPercent
//
// GOGC never falls below minPercent: a heap that is too large for its limit is collected about three times as often as by
// default. That costs some CPU time, but leaves most of it to requests. The heap shrinks because the budget refuses new work.
//
// Objects that are allocated during marking count as live. In a server short of CPU time they exceed all others. So the goal is
// derived from the minimum over a second or more of collections, which is taken for the real live part. The percentage is derived
// from the bytes that counted as live at the last collection. Within a limit, a percentage applies to several collections, so it
// is derived from the mean of the last few. If GOGC is adjusted after each collection, it applies to one collection only, and the
// last value predicts that best. If the heap really grows at once, the runtime's own limit applies until the next adjustment.
//
// Without a limit, the runtime's memory limit is set slightly above the goal: the heap exceeds its goal by an amount that depends
// on how long a collection waits for a processor, and fragmented free memory stays resident. This limit is never below the heap
// size that Go's own percentage allows, so it limits a growing heap for a few collections at most.
//
// Under load a small heap is collected hundreds of times a second. Each adjustment costs some microseconds and a goroutine
// switch, so a pause without adjustments follows.
//
// When a process becomes quiet, no collection runs to free the memory of the last clients. So some time after the last collection
// another one is started, and memory is returned to the system.
const (
	minPercent = 30
	maxPercent = 400
	minHeap    = 4 << 20 // of the runtime, at GOGC=100

	// untouched is memory that the runtime maps for its own tables and counts against its memory limit, but rarely
	// touches, so that it is not resident.
	untouched = 4 << 20

	// While a collection waits for a processor, allocation continues beyond the runtime's limit; a larger heap exceeds the limit
	// by more. So one part in beyondShare of the room above withoutBeyond is reserved for this excess. In a room above withBeyond
	// the percentage starts collections well before the limit, and the reserve shrinks by the same share of the room above
	// withBeyond.
	beyondShare   = 4
	withoutBeyond = 7 << 20
	withBeyond    = 32 << 20
	maxBeyond     = 4 << 20
	minBeyond     = 1 << 20

	// easyGoal is the size to which a small heap grows without a memory limit. While less than 4 MB are live,
	// maxPercent limits it to 16 MB. A larger heap doubles, as with Go's default.
	easyGoal = 20 << 20

	// easyLimit is the runtime's memory limit while little is live and there is no configured limit. For a larger heap
	// the limit is one part in easyShare above its need.
	easyLimit = 24 << 20
	easyShare = 8

	// limitedGoal is the size to which a small heap grows in a large room.
	limitedGoal = 12 << 20

	// mostBeside is the maximum part of the room that goalFor keeps free for memory other than the heap. If more is needed, the
	// runtime's own limit applies.
	mostBeside = 6 << 20

	// quietAfter is the time without a collection after which a process is quiet. worthReturning is the minimum number of bytes
	// that can be freed then for which a collection is started.
	quietAfter     = 10 * time.Second
	worthReturning = 1 << 20

	// A look is one adjustment of GOGC after a collection. remembered is the number of looks that are averaged. The minimum time
	// between looks is lookPause without a limit and limitedPause with one; it is rarePause if collections are further apart than
	// lookPause, so that each of them is seen.
	remembered   = 4
	lookPause    = 10 * time.Millisecond
	limitedPause = 20 * time.Millisecond
	rarePause    = 5 * time.Millisecond

	// The percentage is set again only if it changes by more than one part in easyPart, or with a limit one part in limitedPart,
	// because unused room costs collections.
	easyPart    = 8
	limitedPart = 32
)

// percentFor returns GOGC for a heap with live bytes after the last collection.
func percentFor(live, goal int64) int {
	percent := min(100*(goal-live)/max(live, 1<<16), 100*goal/minHeap, maxPercent)
	return int(max(percent, minPercent))
}

// A Collector represents one app that paces the garbage collector. The garbage collector belongs to the process, so all apps
// share its settings. The methods are safe for concurrent use.
type Collector struct {
	room     func() int64 // nil without a limit
	dropFree func() int64 // see OnQuiet, or nil
}

// pacer is the state of the pacing. The runtime's settings before the first Collector are restored after the last.
var pacer struct {
	sync.Mutex
	all     []*Collector
	runtime settings
	goal    int64 // heap size at which the next collection starts
	lows    lows
	recent  lastFew
	spaced  spacing
	quiet   *time.Timer // calls becameQuiet; set by each look
	pause   *time.Timer // calls watch; set by each look
}

// PaceCollector paces the garbage collector until Stop, for a process in which Go may use room() bytes. room is called
// repeatedly, by one goroutine at a time, because the rest of the process changes in size. A nil room means no limit. Of several
// rooms the smallest applies. The user's settings have priority: PaceCollector does not change a GOGC that is set in the
// environment or differs from Go's default, and only lowers the runtime's memory limit. A setting that the program changes later
// belongs to the program from then on.
func PaceCollector(room func() int64) *Collector {
	c := &Collector{room: room}
	p := &pacer
	p.Lock()
	defer p.Unlock()
	if len(p.all) == 0 {
		p.runtime.begin()
		p.lows, p.recent, p.spaced = lows{}, lastFew{}, spacing{}
		p.quiet = time.AfterFunc(quietAfter, becameQuiet)
		p.pause = time.AfterFunc(lookPause, watch)
	}
	p.all = append(p.all, c)
	adjust()
	return c
}

// Percent returns the last GOGC that this package has chosen. It returns 0 if GOGC belongs to the program, and for a nil
// Collector.
func (c *Collector) Percent() int {
	pacer.Lock()
	defer pacer.Unlock()
	if c == nil || !pacer.runtime.percent.ours {
		return 0
	}
	return int(pacer.runtime.percent.last)
}

// Goal returns the heap size at which the next collection starts, in bytes; 0 for a nil Collector.
func (c *Collector) Goal() int64 {
	pacer.Lock()
	defer pacer.Unlock()
	if c == nil {
		return 0
	}
	return pacer.goal
}

// Stop ends the pacing for this app. After the last Stop the program's settings are restored.
func (c *Collector) Stop() {
	p := &pacer
	p.Lock()
	defer p.Unlock()
	at := slices.Index(p.all, c)
	if at < 0 {
		return
	}
	p.all = slices.Delete(p.all, at, at+1)
	if len(p.all) > 0 {
		adjust()
		return
	}
	p.quiet.Stop()
	p.pause.Stop()
	p.runtime.end()
}

// OnQuiet registers a function that is called when the process becomes quiet. It releases memory that is kept for
// later use, and returns its size in bytes.
func (c *Collector) OnQuiet(dropFree func() int64) {
	pacer.Lock()
	defer pacer.Unlock()
	c.dropFree = dropFree
}

// becameQuiet starts a collection and returns memory to the system, if there is enough to return. Its own collections cause
// another call of it, which finds too little to return.
func becameQuiet() {
	pacer.Lock()
	stopped := len(pacer.all) == 0
	var drops []func() int64
	for _, c := range pacer.all {
		if c.dropFree != nil {
			drops = append(drops, c.dropFree)
		}
	}
	pacer.Unlock()
	if stopped {
		return
	}
	gained := returnable()
	for _, drop := range drops {
		gained += drop()
	}
	if gained < worthReturning {
		return
	}
	runtime.GC() // the second collection frees pooled memory
	debug.FreeOSMemory()
}

// returnable returns the part of the heap's memory that is not known to be live, in bytes.
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

// sentinel is freed by every collection. It is large enough not to share an allocation with other objects, which could
// keep it alive.
type sentinel struct{ _ [64]byte }

// watch requests a look after the next collection, without a timer: an idle process is not woken.
func watch() { runtime.AddCleanup(new(sentinel), afterCollection, struct{}{}) }

// afterCollection runs after a collection.
func afterCollection(struct{}) {
	p := &pacer
	p.Lock()
	defer p.Unlock()
	if len(p.all) > 0 {
		limited := adjust()
		p.quiet.Reset(quietAfter)
		p.pause.Reset(pauseNow(limited))
	}
}

// pauseNow returns the time until the next look. pacer is locked.
func pauseNow(limited bool) time.Duration {
	switch {
	case !limited:
		return lookPause
	case pacer.spaced.apart > lookPause:
		return rarePause
	}
	return limitedPause
}

// minRoomOf returns the smallest room of all collectors with a limit. pacer is locked.
func minRoomOf(all []*Collector) (room int64, limited bool) {
	for _, c := range all {
		if c.room == nil {
			continue
		}
		if n := c.room(); !limited || n < room {
			room, limited = n, true
		}
	}
	return room, limited
}

// adjust sets GOGC and the runtime's limit for the live heap and the room, and reports whether there is a limit. pacer is locked.
func adjust() (limited bool) {
	p := &pacer
	now := readRuntime()
	p.runtime.detectChanges(now)
	live, part := now.live, int64(easyPart)
	at := time.Now()
	least, mean := p.lows.add(live, at), p.recent.mean(live, remembered)
	p.spaced.record(now.cycles, at)
	room, limited := minRoomOf(p.all)
	p.goal = goalFor(least, room)
	limit := &p.runtime.limit
	switch {
	case limited:
		limit.setAbout(min(room-beyond(room)+untouched, limit.before), 64)
		if part = limitedPart; p.spaced.seen < remembered {
			live = mean
		}
	case p.runtime.percent.ours:
		limit.setAbout(min(easyLimitFor(slices.Min(p.recent.recent), now), limit.before), 16)
	default:
		limit.set(limit.before)
	}
	p.runtime.percent.setAbout(int64(percentFor(live, p.goal)), part)
	return limited
}

// spacing measures the time between collections.
type spacing struct {
	cycles int64 // number of collections at the last look
	at     time.Time
	apart  time.Duration // average time between the collections since the previous look
	seen   int           // consecutive looks that have each seen the next collection
}

// record records a look with the number of collections so far.
func (s *spacing) record(cycles int64, at time.Time) {
	n := cycles - s.cycles
	if n <= 0 {
		return // no collection since the previous look
	}
	s.seen++
	if n > 1 {
		s.seen = 0
	}
	s.apart = at.Sub(s.at) / time.Duration(n)
	s.cycles, s.at = cycles, at
}

// easyLimitFor returns the runtime's memory limit for a process without a configured limit. few is the minimum number of live
// bytes of the last collections. The limit leaves room for the growth by Go's default percentage, which includes stacks.
func easyLimitFor(few int64, now runtimeState) int64 {
	heap := 2*few + now.stacks
	return max(easyLimit, now.beside+heap+heap/easyShare)
}

// beyond returns the part of a room reserved for allocation beyond the runtime's limit.
func beyond(room int64) int64 {
	most := max(maxBeyond-max(room-withBeyond, 0)/beyondShare, minBeyond)
	return min(max(room-withoutBeyond, 0)/beyondShare, most)
}

// userLimit returns the runtime's memory limit as set by the user.
func userLimit() int64 {
	p := &pacer
	p.Lock()
	defer p.Unlock()
	if limit := &p.runtime.limit; len(p.all) > 0 && limit.ours {
		return limit.before
	}
	return debug.SetMemoryLimit(-1)
}

// goalFor returns the goal for a heap with least live bytes, with room bytes for all of Go's memory, 0 for no limit. A
// heap that is small compared with the room may fill half of it. A larger one may double, as with Go's default (plus
// an eighth, since allocation during marking counts as live), until the room is full except for stacks, the
// collector's own memory and fragmentation: a quarter of a small room, and at most mostBeside.
func goalFor(least, room int64) int64 {
	if room == 0 {
		return max(easyGoal, 2*least)
	}
	return min(room-min(room/4, mostBeside), max(limitedGoal, room/2, 2*least+least/4))
}
