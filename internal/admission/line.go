package admission

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Those who wait for room stand in line, by address. What is given back goes at once, in their names,
// to those whom it serves: who gives it back takes it for them and wakes nobody else.
//
//	room ──▶ of those whose turn goes before others' (modest), else of all:
//	         the address that holds least ──▶ the first there for whom there is room
//
// Who asks for more than there is is passed, so that nobody waits for one who may wait for long; when it
// has waited for roomWait others make room for it. A connection on a loop does not stand here, since its
// loop has a line of its own: loops and this line take turns.
//
// Invariant: when a call that gives something back has returned, there is nobody in line for whom there is
// room. The lock of the line is taken before all others.
type line struct {
	mu      sync.Mutex
	sources []*source // that have somebody in line
	n       atomic.Int64
	least   atomic.Int64 // that anybody in line wants, or less, in bytes
	loops   atomic.Bool  // it is the loops' turn
	round   uint64       // of serveLine
	places  uint64       // given out
}

// lined are those of one address who stand in line.
type lined struct {
	first, last [2]*waiter // those whose turn goes before others', and the others
	slot        int        // in line.sources
	least       int64      // that anybody wants, or less, in bytes
}

// A waiter is an account that stands in line, or has got there what it wants. But for granted, what changes is
// guarded by the line's lock.
type waiter struct {
	account    *Account
	waker      waker
	use        Use
	n          int64
	next, prev *waiter
	class      int
	at         uint64 // its place among those of its address
	inLine     bool
	missed     uint64 // the round in which there was no room for it after all
	granted    bool   // the account holds n bytes more, which were not claimed yet; under its lock
}

// A waker tells a waiter to ask again. It must not wait, and may be called with locks held.
type waker interface{ wake() }

// A wakeup is the waker of a goroutine.
type wakeup chan struct{}

func (w wakeup) wake() {
	select {
	case w <- struct{}{}:
	default:
	}
}

const nothingWanted = math.MaxInt64 / 2

// enterLine has the account stand in line when it must wait, until leaveLine. It returns nil if it does
// already, or is closed: then it asks now and then.
func (a *Account) enterLine(by waker) *waiter {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.line != nil || a.closed {
		return nil
	}
	a.line = &waiter{account: a, waker: by}
	return a.line
}

// leaveLine ends that, and gives back what was granted and not claimed. w may be nil.
func (a *Account) leaveLine(w *waiter) {
	if w == nil {
		return
	}
	h := a.holders
	h.line.mu.Lock()
	h.line.remove(w)
	a.mu.Lock()
	granted := w.granted
	w.granted = false
	a.line = nil
	a.mu.Unlock()
	h.line.mu.Unlock()
	if granted {
		a.Release(w.use, w.n)
	}
}

// markClosed marks the account, which does not stand in line any more. It reports whether it is over.
func (a *Account) markClosed() bool {
	l := &a.holders.line
	a.mu.Lock()
	if a.line != nil {
		a.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		a.mu.Lock()
	}
	defer a.mu.Unlock()
	a.closed = true
	if w := a.line; w != nil {
		l.remove(w)
		w.waker.wake()
	}
	return a.held.Load() == 0 && a.isOver()
}

// claim reports whether the account was granted n bytes while it stood in line, and makes them its caller's.
func (a *Account) claim(u Use, n int64) bool {
	a.mu.Lock()
	w := a.line
	if w == nil || !w.granted || w.use != u || a.ending || a.closed {
		a.mu.Unlock()
		return false
	}
	w.granted = false
	got := w.n
	a.mu.Unlock()
	switch {
	case got < n: // it wants more than it did
		a.Release(u, got)
		return false
	case got > n:
		a.Release(u, got-n)
	}
	return true
}

// standInLine has an account that must wait for n bytes stand in line, if it is one that does. It reports
// whether there is room now.
func (h *Holders) standInLine(a *Account, u Use, n int64) bool {
	a.mu.Lock()
	w := a.line
	a.mu.Unlock()
	if w == nil {
		lower(&h.want, n)
		return h.takeMuch(a, u, n, 0)
	}
	ok, undone := h.joinLine(a, w, u, n)
	if undone {
		h.signal()
	}
	return ok
}

// joinLine has a waiter stand in line, unless it can have what it wants. undone is as in tryTake.
func (h *Holders) joinLine(a *Account, w *waiter, u Use, n int64) (ok, undone bool) {
	l := &h.line
	l.mu.Lock()
	defer l.mu.Unlock()
	a.mu.Lock()
	answered, modest := w.granted || a.ending || a.closed, a.modest
	a.mu.Unlock()
	if answered {
		w.waker.wake()
		return false, false
	}
	if ok, undone = h.tryTakeMuch(a, u, n, 0); ok { // given back meanwhile
		l.remove(w)
		return true, false
	}
	class := 1
	if modest {
		class = 0
	}
	if w.inLine && (w.class != class || w.use != u || w.n != n) {
		l.remove(w)
	}
	if !w.inLine {
		w.use, w.n, w.class = u, n, class
		l.push(w)
	}
	return false, undone
}

// lower makes *least at most n.
func lower(least *atomic.Int64, n int64) {
	for was := least.Load(); n < was && !least.CompareAndSwap(was, n); was = least.Load() {
	}
}

// push puts a waiter at the end of its address's line, or at its place there. l.mu is held.
func (l *line) push(w *waiter) {
	s := &w.account.source.lined
	if s.first[0] == nil && s.first[1] == nil {
		s.slot, s.least = len(l.sources), nothingWanted
		l.sources = append(l.sources, w.account.source)
	}
	if w.at == 0 {
		l.places++
		w.at = l.places
	}
	w.prev = s.last[w.class]
	for w.prev != nil && w.prev.at > w.at {
		w.prev = w.prev.prev
	}
	if w.prev != nil {
		w.next, w.prev.next = w.prev.next, w
	} else {
		w.next, s.first[w.class] = s.first[w.class], w
	}
	if w.next != nil {
		w.next.prev = w
	} else {
		s.last[w.class] = w
	}
	w.inLine = true
	s.least = min(s.least, w.n)
	lower(&l.least, w.n)
	l.n.Add(1)
}

// remove takes a waiter out of line, if it is there. l.mu is held.
func (l *line) remove(w *waiter) {
	if !w.inLine {
		return
	}
	s := &w.account.source.lined
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		s.first[w.class] = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		s.last[w.class] = w.prev
	}
	w.prev, w.next, w.inLine = nil, nil, false
	l.n.Add(-1)
	if s.first[0] == nil && s.first[1] == nil {
		last := l.sources[len(l.sources)-1]
		l.sources[s.slot], last.lined.slot = last, s.slot
		l.sources = slices.Delete(l.sources, len(l.sources)-1, len(l.sources))
	}
}

// signal serves those in line for whom there is room, and has loops look whether there is some for theirs.
// No lock may be held.
func (h *Holders) signal() {
	waiting := h.waiting.Load()
	if waiting == 0 {
		return
	}
	inLine := h.line.n.Load()
	if waiting > inLine && h.OnRoom != nil && h.mayFit(h.want.Load()) {
		h.want.Store(nothingWanted)
		h.OnRoom()
		if inLine > 0 && h.line.loops.CompareAndSwap(true, false) {
			return // they have had a look when they call ServeWaiters
		}
	}
	if inLine > 0 && h.mayFit(h.line.least.Load()) {
		h.serveLine()
	}
}

// ServeWaiters has those in line served with what room there is. Loops call it that have looked whether there is
// some for theirs.
func (h *Holders) ServeWaiters() {
	if h.line.n.Load() > 0 && h.mayFit(h.line.least.Load()) {
		h.serveLine()
	}
}

// mayFit reports whether there may be room for one that waits and wants n bytes: false only if there is not.
func (h *Holders) mayFit(n int64) bool { return h.roomNow().mayFit(n) }

// A roomNow is how many bytes there are for those who wait: in all, and for those who will hold much.
type roomNow struct{ all, much int64 }

func (r roomNow) mayFit(n int64) bool { return n <= r.all && (n <= r.much || n <= leastShare) }

func (h *Holders) roomNow() roomNow {
	bound := h.budget.Bound()
	if bound <= 0 {
		return roomNow{math.MaxInt64, math.MaxInt64}
	}
	r := roomNow{bound + h.spared.Load() + h.budget.HeldFor(InCache) - h.budget.Held(), math.MaxInt64}
	if h.larges.Load() > 1 {
		r.much = bound - bound/smallShare - h.much.Load()
	}
	return r
}

// serveLine grants what room there is to those in line.
func (h *Holders) serveLine() {
	l := &h.line
	l.mu.Lock()
	defer l.mu.Unlock()
	l.round++
	for l.n.Load() > 0 && h.mayFit(l.least.Load()) {
		w := h.nextInLine()
		if w == nil {
			return
		}
		h.grant(w)
	}
}

// nextInLine returns who is to be served next, nil if there is nobody for whom there is room. h.line.mu is held.
func (h *Holders) nextInLine() *waiter {
	l := &h.line
	room, modest := h.roomNow(), h.modest.Load() > 0
	for class := range 2 {
		var next *waiter
		least := int64(nothingWanted)
		for _, src := range l.sources {
			s := &src.lined
			if next != nil && src.held.Load() >= next.account.source.held.Load() {
				continue // the other one goes first
			}
			if s.first[class] != nil && room.mayFit(s.least) && !h.addressFull(src, s.least) && !(class == 1 && modest && h.greedy(src, s.least)) {
				if w := h.firstThatFits(s, class, room); w != nil {
					next = w
				}
			}
			least = min(least, s.least)
		}
		if next != nil {
			return next
		}
		l.least.Store(least)
	}
	return nil
}

// firstThatFits returns the first of one address for whom there is room. h.line.mu is held.
func (h *Holders) firstThatFits(s *lined, class int, room roomNow) *waiter {
	for w := s.first[class]; w != nil; w = w.next {
		if room.mayFit(w.n) && w.missed != h.line.round && h.fits(w.account, w.n) {
			return w
		}
	}
	least := int64(nothingWanted)
	for _, first := range s.first {
		for w := first; w != nil; w = w.next {
			least = min(least, w.n)
		}
	}
	s.least = least
	return nil
}

// fits reports whether one that waits, and for whom there is room, may have n bytes of it.
func (h *Holders) fits(a *Account, n int64) bool {
	a.mu.Lock()
	over := a.ending || a.closed
	a.mu.Unlock()
	return !over && h.overMuch(a, n) <= 0 && !h.yields(a, n) && !h.addressFull(a.source, n)
}

// addressFull reports whether one that waits for n bytes must not have them because of what its address holds.
func (h *Holders) addressFull(s *source, n int64) bool {
	return h.MaxAddress > 0 && s.known && s.held.Load()+n > h.MaxAddress
}

// grant takes for a waiter what it wants, and wakes it. h.line.mu is held.
func (h *Holders) grant(w *waiter) {
	a := w.account
	ok, undone := h.tryTakeMuch(a, w.use, w.n, 0)
	switch {
	case ok:
		h.line.remove(w)
		a.mu.Lock()
		w.granted = true
		a.mu.Unlock()
		a.unwait()
		w.waker.wake()
		if h.waiting.Load() > h.line.n.Load() {
			h.line.loops.Store(true)
		}
	case undone: // its connection holds as much as it may: it is to be told so
		h.line.remove(w)
		w.waker.wake()
	default: // somebody else was faster, or a cache keeps what it has
		w.missed = h.line.round
	}
}

// Unwait ends the wait for room of an account.
func (a *Account) Unwait() {
	h := a.holders
	if a.unwait() {
		h.signal()
	}
}

// unwait is Unwait. It reports whether there may be room for others now who have left it to this one.
func (a *Account) unwait() (last bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waits == 0 {
		return false
	}
	a.waits = 0
	a.start(a.holders.now())
	since := a.holders.waitSince.Load()
	if a.holders.waiting.Add(-1) == 0 {
		a.holders.waitSince.CompareAndSwap(since, 0) // unless another waits by now
	}
	if a.modest {
		a.modest = false
		last = a.holders.modest.Add(-1) == 0
	}
	if a.turn {
		a.turn = false
		a.group.turn.Store(false)
	}
	return last
}

// AcquireBody is ReserveBody for those who can wait: it returns when the bytes are granted or
// refused, or with MustWait when over, which is asked when done is closed and now and then, says
// that nobody waits for them any more.
func (a *Account) AcquireBody(capacity int64, done <-chan struct{}, over func() bool) Outcome {
	return a.acquire(func() Outcome { return a.ReserveBody(capacity) }, done, over)
}

// AcquireAhead is ReserveAhead likewise.
func (a *Account) AcquireAhead(n int64, done <-chan struct{}, over func() bool) Outcome {
	return a.acquire(func() Outcome { return a.ReserveAhead(n) }, done, over)
}

func (a *Account) acquire(reserve func() Outcome, done <-chan struct{}, over func() bool) Outcome {
	room := make(wakeup, 1)
	w := a.enterLine(room)
	defer a.leaveLine(w)
	timer := time.NewTimer(time.Duration(roomWait / 4))
	defer timer.Stop()
	for {
		if outcome := reserve(); outcome != MustWait {
			return outcome
		}
		timer.Reset(time.Duration(roomWait / 4))
		select {
		case <-room:
			continue
		case <-timer.C:
		case <-done:
			done = nil
		}
		if over() {
			a.Unwait()
			return MustWait
		}
	}
}
