//go:build linux

package engine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/overload"
)

// yieldEvery is the time after which a driver that always has events yields its processor to other goroutines of the process.
const yieldEvery = int64(200 * time.Microsecond)

// eventBatch is the maximum number of events that a loop fetches at once.
const eventBatch = 128

// A loop is an epoll set and its connections. All fields belong to its driver except those that say otherwise. The remaining
// work of a turn is recorded here and not on the driver's stack, so that another driver can continue it.
type loop struct {
	epoch   atomic.Uint64 // see takeover.go; any goroutine
	_       [56]byte      // the monitor reads epoch; keep the rest off its cache line
	takeMu  sync.Mutex    // held while the loop changes drivers
	current *Conn         // the connection that the driver serves; a takeover reads it
	raw     *buffer       // the read buffer, see memory.go; nil until it is needed
	out     []byte        // a large Out between Enter and Leave, see memory.go
	sealed  []byte        // the buffer of encrypted records for one call of send, see tlswrite.go; empty between calls

	e      *Engine
	number int // index in e.loops
	epfd   int32
	waker  int32           // eventfd in the set; it is only written to, never read, since each write causes an event
	park   syscall.RawConn // the epoll descriptor in the runtime's own poller
	file   *os.File
	poll   func(uintptr) bool // fills events; made once to save allocations
	polls  int                // calls of poll in this wait

	events  [eventBatch]unix.EpollEvent
	n, next int         // events[next:n] are not yet served
	queue   connQueue   // connections not yet served, in this turn unless the loop is saturated, see queue.go
	later   []laterConn // to be served in the next turn
	batch   []message   // messages from the inbox
	batchAt int         // batch[batchAt:] are not yet handled
	sweepAt int         // conns[sweepAt:] are not yet swept

	sweepers []*sync.WaitGroup // informed of the end of the sweep

	conns []*Conn // by slot, nil if free
	free  []int32 // free slots
	gen   uint32
	count atomic.Int32 // connections, including those that other loops are passing to this loop; any goroutine

	wheel      wheel
	recalls    recalls
	saturation saturation
	now        int64 // ns since the start of the engine's clock, read once a turn
	ready      int64 // estimated time at which the connections of the last fetched events became ready
	fetched    int64 // the earliest time at which they can have become ready
	unix       int64 // wall clock in s
	second     int64 // the value of now at which unix is to be read again
	yielded    int64 // when the driver last let other goroutines run
	armed      int64 // the deadline that is set for parking, 0 for none

	acceptor  acceptor
	inbox     inbox
	evictions atomic.Bool // the inbox contains a msgEnd
	waits     waits       // waiting times of connections
}

func newLoop(e *Engine) (*loop, error) {
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("engine: create epoll set: %w", err)
	}
	if err := unix.SetNonblock(epfd, true); err != nil {
		return nil, errors.Join(fmt.Errorf("engine: set epoll descriptor non-blocking: %w", err), unix.Close(epfd))
	}
	waker, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("engine: create eventfd: %w", err), unix.Close(epfd))
	}
	l := &loop{e: e, epfd: int32(epfd), waker: int32(waker)}
	l.file = os.NewFile(uintptr(epfd), "epoll")
	l.park, err = l.file.SyscallConn()
	if err == nil {
		err = l.file.SetReadDeadline(time.Time{}) // fails if the runtime cannot watch it
	}
	if err == nil {
		err = l.ctl(unix.EPOLL_CTL_ADD, l.waker, unix.EPOLLIN|unix.EPOLLET, wakerSlot, 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("engine: set up loop: %w", err), l.file.Close(), unix.Close(waker))
	}
	l.poll = func(uintptr) bool {
		l.polls++
		l.n = epollPoll(l.epfd, l.events[:])
		return l.n > 0
	}
	l.now = e.now()
	l.wheel.init(tickAt(l.now))
	l.sweepAt = sweepDone
	l.saturation.control = overload.NewQueue(e.cfg.QueueTarget)
	return l, nil
}

// Negative slots in events: wakerSlot is the waker; the listeners have listenerSlot and the numbers below it.
const (
	wakerSlot    = -1
	listenerSlot = -2
)

// sweepDone is the value of sweepAt while no sweep is running.
const sweepDone = int(^uint(0) >> 1)

// ctl changes the set of epoll. Every event carries slot and gen.
func (l *loop) ctl(op int, fd int32, events uint32, slot int32, gen uint32) error {
	return unix.EpollCtl(int(l.epfd), op, int(fd), &unix.EpollEvent{Events: events, Fd: slot, Pad: int32(gen)})
}

// turn runs one turn of the loop: it serves all ready work once, then waits for more. It reports whether d still drives the loop.
func (l *loop) turn(d *Driver) bool {
	for l.next < l.n {
		ev := &l.events[l.next]
		l.next++
		if !l.dispatch(d, ev) || !l.evictMarked(d) {
			return false
		}
	}
	if l.saturation.on {
		if !l.fetchAll(d) {
			return false
		}
		if l.saturation.served == 0 {
			l.checkQueue()
		}
	}
	for l.waiting() > 0 && !l.turnOver() {
		if !l.visitNext(d) || !l.evictMarked(d) {
			return false
		}
	}
	if !l.chores(d) {
		return false
	}
	l.carryOver()
	if l.drained() {
		l.end()
		return false
	}
	l.waitTimed()
	return true
}

// evictMarked evicts the connections that are marked for eviction. It is called before the next connection is served, because
// otherwise all requests of a turn could exceed the budget further. It reports whether d still drives the loop.
func (l *loop) evictMarked(d *Driver) bool { return !l.evictions.Load() || l.handleMessages(d) }

// handleMessages handles all messages. It reports whether d still drives the loop.
func (l *loop) handleMessages(d *Driver) bool {
	if l.batchAt == len(l.batch) {
		l.fetchMessages()
	}
	for l.batchAt < len(l.batch) {
		m := l.batch[l.batchAt]
		l.batch[l.batchAt] = message{}
		l.batchAt++
		if !l.handle(d, m) {
			return false
		}
	}
	return true
}

// chores does the work that most turns do not need: messages, deadlines, sweeps.
func (l *loop) chores(d *Driver) bool {
	if !l.handleMessages(d) {
		return false
	}
	tick := tickAt(l.now)
	for c := l.expired(tick); c != nil; c = l.expired(tick) {
		if !d.expire(c, tick) {
			return false
		}
	}
	for l.sweepAt < len(l.conns) {
		c := l.conns[l.sweepAt]
		l.sweepAt++
		if c != nil && !l.sweep(d, c) {
			return false
		}
	}
	if l.sweepAt != sweepDone {
		l.sweepAt = sweepDone
		for _, done := range l.sweepers {
			done.Done()
		}
		l.sweepers = nil
	}
	if l.acceptor.resumeAt != 0 && l.now >= l.acceptor.resumeAt {
		l.retryAccept()
	}
	if at := l.recalls.dueAt(); at != 0 && l.now >= at {
		return l.recall(d)
	}
	return true
}

// wait fetches events, without waiting if the loop already has work. It parks the goroutine, never a thread: the epoll
// descriptor is itself watched by the runtime.
func (l *loop) wait() {
	began := l.now
	l.noteTurn(began, l.n)
	l.next, l.n = 0, 0
	if l.now-l.yielded > yieldEvery {
		runtime.Gosched()
		l.yielded = l.e.now()
	}
	if l.waiting() > 0 {
		l.n, l.polls = epollPoll(l.epfd, l.events[:]), 1
	} else {
		l.arm()
		l.polls = 0
		if err := l.park.Read(l.poll); err != nil {
			l.armed = -1 // the deadline has passed and must be set again
		}
	}
	l.now = l.e.now()
	l.saturate(began)
	if l.polls > 1 {
		l.yielded = l.now
	}
	if l.now >= l.second {
		t := time.Now()
		l.unix = t.Unix()
		l.second = l.now + int64(time.Second) - int64(t.Nanosecond())
	}
}

// arm sets the time at which wait returns if no event arrives.
func (l *loop) arm() {
	var at int64
	if next := l.wheel.next; next != 0 {
		at = startOf(next)
	}
	if resume := l.acceptor.resumeAt; resume != 0 && (at == 0 || resume < at) {
		at = resume
	}
	if due := l.recalls.dueAt(); due != 0 && (at == 0 || due < at) {
		at = due
	}
	if at == l.armed {
		return
	}
	l.armed = at
	var deadline time.Time
	if at != 0 {
		deadline = l.e.deadlineAt(at)
	}
	// It cannot fail: newLoop has tested it.
	_ = l.file.SetReadDeadline(deadline)
}

// dispatch serves one event. It reports whether d still drives the loop.
func (l *loop) dispatch(d *Driver, ev *unix.EpollEvent) bool {
	if ev.Fd < 0 {
		if ev.Fd <= listenerSlot {
			return l.accept(d, int(listenerSlot-ev.Fd))
		}
		return true // the waker: turn always reads the inbox
	}
	c := l.conns[ev.Fd]
	if c == nil || c.gen != uint32(ev.Pad) || !c.noteEvent(ev.Events) {
		return true
	}
	if ev.Events&(unix.EPOLLIN|hungUp) != 0 {
		c.flags |= flagReadable
		if ev.Events&hungUp != 0 {
			if c.queued && c.flags&flagPeerDone == 0 {
				l.saturation.control.Abandoned()
			}
			c.flags |= flagPeerDone
		}
	}
	if c.Notes&Paused != 0 && ev.Events&(unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		c.flags |= flagCloseNow
	}
	if l.saturation.on && c.out == nil {
		l.enqueue(c)
		return true
	}
	return d.visit(c)
}

// serveSoon schedules a visit of c in the next turn.
func (l *loop) serveSoon(c *Conn) {
	if c.queued {
		return
	}
	c.queued = true
	l.later = append(l.later, laterConn{c, c.asks(), stampAt(l.now)})
}

// adopt adds c to the loop's connections. The loop's count already includes it.
func (l *loop) adopt(c *Conn) {
	c.loop = l
	if n := len(l.free); n > 0 {
		c.slot = l.free[n-1]
		l.free = l.free[:n-1]
	} else {
		c.slot = int32(len(l.conns))
		l.conns = append(l.conns, nil)
	}
	l.conns[c.slot] = c
	l.gen += genStep
	c.gen = l.gen | c.gen&genSecure
	if err := l.ctl(unix.EPOLL_CTL_ADD, c.fd, c.interest(), c.slot, c.gen); err != nil {
		if n, due := l.e.failures.Note(); due {
			l.e.cfg.Logger.Error("engine: cannot watch a connection", "err", err, "count", n)
		}
		l.close(c)
		return
	}
	if l.e.draining.Load() {
		c.flags |= flagReadable // read once, so that input that has already arrived is answered
		l.serveSoon(c)
		return
	}
	if open := c.openTimeout(l.e); open > 0 {
		c.deadline = deadlineTick(l.now, open)
		l.refile(c, c.deadline)
	}
}

// lingerTime bounds how long a connection stays open to discard input, so that the peer can read the last answer before the
// close.
const lingerTime = 2 * time.Second

// finish closes c, or begins to linger. Unsent output of c is dropped.
func (l *loop) finish(c *Conn) {
	if c.flags&flagCloseNow != 0 || c.flags&flagLinger == 0 || c.flags&flagEOF != 0 || l.e.forced.Load() {
		l.close(c)
		return
	}
	shutdown(c.fd, unix.SHUT_WR)
	l.e.buffers.put(c.in)
	c.in = nil
	c.flags &^= flagCloseAfter | flagLinger | flagAgain
	c.flags |= flagLingering | flagReadable
	c.deadline = 0
	l.linger(c)
	l.serveSoon(c)
}

// linger bounds how long c stays open to discard input. During a drain the bound is shorter: a client that does not close its
// side must not use up the time of the drain.
func (l *loop) linger(c *Conn) {
	after := lingerTime
	if most := l.e.lastRequestsLimit.Load(); most > 0 {
		after = min(after, time.Duration(most)/2)
	}
	if end := deadlineTick(l.now, after); c.deadline == 0 || c.deadline > end {
		c.deadline = end
	}
	l.refileIfEarlier(c)
}

// close closes c, which the loop must own.
func (l *loop) close(c *Conn) {
	e := l.e
	l.unfile(c)
	l.conns[c.slot] = nil
	l.free = append(l.free, c.slot)
	c.slot = -1
	c.state.Store(closing)
	t := c.secure()
	if t != nil {
		t.farewellNow(c)
		t.drop(e)
	}
	closeFD(c.fd)
	c.dropPending(e)
	e.buffers.put(c.in)
	c.in = nil
	counted := t == nil || !t.passed
	if counted {
		e.cfg.Addresses.Release(e.source(c.peer.addr()))
	}
	l.count.Add(-1) // after Addresses.Release: a goroutine that sees the new count must find room for this address
	if counted {
		e.forget()
	}
	c.fireHangup()
	if p := c.protocol(); p != nil {
		p.Closed()
	} else {
		e.handler.Closed(c)
	}
	if a := c.acct.Load(); a != nil {
		a.Close()
	}
}

// forget counts a connection as closed.
func (e *Engine) forget() {
	e.conns.Add(-1)
	if e.pausedLoops.Load() > 0 {
		e.broadcast(message{kind: msgResume})
	}
}

// closeSoon closes c, which is idle, if its time for a last request has passed. Otherwise it sets the deadline of c to that time.
func (l *loop) closeSoon(c *Conn) {
	if c.deadline != 0 && c.deadline <= tickAt(l.now) {
		l.close(c)
		return
	}
	after := lastRequests
	if c.Notes&Begun == 0 {
		after = firstRequest
	}
	if most := l.e.lastRequestsLimit.Load(); most > 0 {
		after = min(after, time.Duration(most))
	}
	if end := deadlineTick(l.now, after); c.deadline == 0 || c.deadline > end {
		c.deadline = end
	}
	l.refileIfEarlier(c)
}

// sweep closes c on shutdown unless it has unfinished work. It reports whether d still drives the loop.
func (l *loop) sweep(d *Driver, c *Conn) bool {
	if !c.noteEvent(0) {
		if l.e.forced.Load() {
			// The goroutine that owns the connection fails in its next read or write. The descriptor stays open: only the loop
			// closes it.
			c.fireHangup()
			shutdown(c.fd, unix.SHUT_RDWR)
		}
		return true
	}
	if l.e.forced.Load() {
		l.close(c)
		return true
	}
	if c.flags&flagLingering != 0 {
		l.linger(c)
		return true
	}
	if c.Notes&switched != 0 {
		l.woken(c)
		return true
	}
	if c.idle() || c.isSilent() {
		// Input that has arrived but was not read yet is still answered.
		c.flags |= flagReadable
		return d.visit(c)
	}
	return true
}

// drained reports whether the engine drains and the loop has no work left.
func (l *loop) drained() bool {
	return l.e.draining.Load() && l.count.Load() == 0 && len(l.acceptor.listeners) == 0 && l.inbox.close()
}

// end releases the resources of the loop. Its driver returns after it.
func (l *loop) end() {
	_ = l.file.Close() // no data was written to it
	closeFD(l.waker)
	l.e.loopEnded()
}
