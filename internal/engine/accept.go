//go:build linux

package engine

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// acceptBatch bounds the connections that a loop accepts in a turn before it serves other connections. saturatedBatch is the
// bound for a saturated loop, whose turns are short.
const (
	acceptBatch    = 16
	saturatedBatch = 8
)

const (
	// acceptPause is the time, in ns, after which a loop that could not accept tries again. If a connection closes before, the
	// loop tries again at once.
	acceptPause = int64(time.Second / 8)
	// evictPause is the minimum time, in ns, between two evictions of connections that are not idle.
	evictPause = int64(time.Second)
)

// listener is a duplicated listening descriptor that every loop watches. The last loop to release it accepts the rest of the
// backlog and closes it.
type listener struct {
	fd        int32
	tls       *TLS         // nil without TLS
	multipath bool         // the listener is one of Multipath TCP, where accepted sockets inherit only some options
	early     atomic.Int32 // at most this many connections arrived before Prepare, and did not inherit the options
	loops     atomic.Int32
}

// Prepare sets the options of ln, a TCP or unix listener, that accepted connections inherit. keepAlive is Config.KeepAlive of the
// engine that will serve ln. Serve calls Prepare itself. If clients may connect to ln before Serve, the caller calls Prepare
// first, and then ServePrepared instead of Serve.
func Prepare(ln net.Listener, keepAlive time.Duration) error {
	sc, ok := ln.(syscall.Conn)
	if !ok {
		return fmt.Errorf("engine: serve: %T has no file descriptor", ln)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return fmt.Errorf("engine: serve: %w", err)
	}
	if ln.Addr().Network() == "unix" {
		return nil
	}
	var optErr error
	err = raw.Control(func(fd uintptr) { optErr = setInherited(int(fd), keepAlive) })
	return errors.Join(err, optErr)
}

// setInherited sets options of listening socket fd. Accepted sockets inherit the options, which saves system calls for each
// connection.
func setInherited(fd int, keepAlive time.Duration) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return fmt.Errorf("engine: serve: set TCP_NODELAY: %w", err)
	}
	if err := probe(fd, keepAlive); err != nil {
		return fmt.Errorf("engine: serve: set SO_KEEPALIVE: %w", err)
	}
	_ = boundUnsent(int32(fd), maxUnsent)
	return nil
}

// newListener duplicates ln's descriptor.
func newListener(ln net.Listener) (*listener, error) {
	raw, err := ln.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("engine: serve: %w", err)
	}
	fd := -1
	var dupErr error
	err = raw.Control(func(orig uintptr) {
		fd, dupErr = unix.FcntlInt(orig, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err == nil {
		err = dupErr
	}
	if err != nil {
		return nil, fmt.Errorf("engine: serve: duplicate listener: %w", err)
	}
	l := &listener{fd: int32(fd)}
	if ln.Addr().Network() != "unix" {
		protocol, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
		l.multipath = err == nil && protocol == unix.IPPROTO_MPTCP
		if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			l.early.Store(int32(info.Unacked)) // for a listener, the number of connections that wait to be accepted
		}
	}
	return l, nil
}

// acceptor is the state of a loop for accepting connections.
type acceptor struct {
	listeners []*listener
	stopped   bool // accepting has ended for good
	paused    bool
	roomAt    int64 // the earliest time of the next eviction of connections that are not idle; 0 after a connection was accepted
	resumeAt  int64 // the time to try again, if no connection closes before
	addr      unix.RawSockaddrAny
}

func (l *loop) listen(d *Driver, ln *listener) {
	if l.acceptor.stopped {
		l.leaveListener(d, ln)
		return
	}
	l.acceptor.listeners = append(l.acceptor.listeners, ln)
	if !l.acceptor.paused {
		l.watchListener(len(l.acceptor.listeners) - 1)
	}
}

// watchListener adds a listener to the set, level-triggered: any loop may accept the connections that another leaves in the
// backlog.
func (l *loop) watchListener(i int) {
	fd := l.acceptor.listeners[i].fd
	if err := l.ctl(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN|unix.EPOLLEXCLUSIVE, int32(listenerSlot-i), 0); err != nil {
		l.e.cfg.Logger.Error("engine: cannot watch a listener", "err", err)
	}
}

// stopListening releases all listeners.
func (l *loop) stopListening(d *Driver) {
	a := &l.acceptor
	a.stopped = true
	for _, ln := range a.listeners {
		if !a.paused {
			_ = l.ctl(unix.EPOLL_CTL_DEL, ln.fd, 0, 0, 0)
		}
		l.leaveListener(d, ln)
	}
	a.listeners = nil
	l.unpause()
}

// unlisten releases one listener. The listeners after it move to lower indexes.
func (l *loop) unlisten(d *Driver, ln *listener) {
	a := &l.acceptor
	i := slices.Index(a.listeners, ln)
	if i < 0 {
		return // stopListening has already released it
	}
	if !a.paused {
		for _, ln := range a.listeners[i:] {
			_ = l.ctl(unix.EPOLL_CTL_DEL, ln.fd, 0, 0, 0)
		}
	}
	a.listeners = slices.Delete(a.listeners, i, i+1)
	if !a.paused {
		for ; i < len(a.listeners); i++ {
			l.watchListener(i)
		}
	}
	l.leaveListener(d, ln)
}

// lastAccepts bounds the number of connections that are accepted before a listener is closed, in case another process still
// accepts from it and the backlog never ends.
const lastAccepts = 1 << 14

// leaveListener ends the loop's use of ln. Closing the socket would reset the connections in its backlog, whose clients may
// have sent requests already, so the last loop accepts them first.
func (l *loop) leaveListener(d *Driver, ln *listener) {
	if ln.loops.Add(-1) > 0 {
		return
	}
	for range lastAccepts {
		fd, errno := accept(ln.fd, &l.acceptor.addr)
		switch errno {
		case 0:
			l.e.conns.Add(1)
			l.admitNew(d, ln, fd)
			continue
		case unix.ECONNABORTED, unix.EPROTO:
			continue // a connection that was lost meanwhile
		}
		break
	}
	closeFD(ln.fd)
}

// accept accepts waiting connections from listener i. It always reports true: d still drives the loop.
func (l *loop) accept(d *Driver, i int) bool {
	a := &l.acceptor
	if i >= len(a.listeners) || a.paused {
		return true // an old event
	}
	e := l.e
	batch := acceptBatch
	if l.saturation.on {
		batch = saturatedBatch
	}
	for range batch {
		if e.conns.Add(1) > int64(e.cfg.MaxConns) {
			e.conns.Add(-1)
			if hasBacklog(a.listeners[i].fd) { // otherwise the next client starts the pause, and gets room at once
				l.pauseAccept(errMaxConns)
				l.makeConnRoom()
			}
			return true
		}
		ln := a.listeners[i]
		fd, errno := accept(ln.fd, &a.addr)
		if errno != 0 {
			e.conns.Add(-1)
			return l.acceptFailed(errno)
		}
		a.roomAt = 0
		l.admitNew(d, ln, fd)
	}
	return true
}

// admitNew makes a connection of the descriptor that accept has just returned for ln.
func (l *loop) admitNew(d *Driver, ln *listener, fd int32) {
	if ln.early.Load() > 0 && ln.early.Add(-1) >= 0 {
		_ = setInherited(int(fd), l.e.cfg.KeepAlive) // if the connection is lost, reading from it reports that
	}
	c := newConn(ln, fd)
	if ln.multipath {
		c.flags |= flagUnbounded
	}
	c.peer, c.port = newPeerAddr(&l.acceptor.addr)
	l.admit(d, c)
}

// acceptFailed handles an error of accept. It always reports true: the driver still drives the loop. Most errors concern only one
// connection (accept(2), "Error handling"), which is lost.
func (l *loop) acceptFailed(errno syscall.Errno) bool {
	switch errno {
	case unix.EAGAIN, unix.ECONNABORTED, unix.EPROTO, unix.EPERM, unix.ENETDOWN, unix.ENOPROTOOPT,
		unix.EHOSTDOWN, unix.ENONET, unix.EHOSTUNREACH, unix.EOPNOTSUPP, unix.ENETUNREACH:
	default: // no descriptors or memory, or the listener is broken
		l.pauseAccept(errno)
		l.makeConnRoom()
	}
	return true
}

// admit gives an accepted connection to a loop, unless its address or every loop is at its bound.
func (l *loop) admit(d *Driver, c *Conn) {
	e := l.e
	if !e.cfg.Addresses.Take(e.source(c.peer.addr())) {
		e.noteAddressLimit(c.RemoteAddr())
		d.refuseConn(c, e.cfg.AddressRefusal)
		return
	}
	to := l.leastLoaded()
	if to == nil {
		e.cfg.Addresses.Release(e.source(c.peer.addr()))
		if n, due := e.cfg.Shed.Note(admission.LoopLimit); due {
			e.cfg.Logger.Warn("engine: connections refused: every loop is at its limit", "limit", e.cfg.MaxLoopConns, "count", n)
		}
		d.refuseConn(c, e.cfg.LoopRefusal)
		return
	}
	e.accepts.Add(1)
	e.expectHeader(c)
	if to != l {
		c.loop = to
		if to.post(message{kind: msgAdopt, conn: c}) {
			return
		}
		to.count.Add(-1) // the loop has ended
		l.count.Add(1)
	}
	l.adopt(c)
}

// noteAddressLimit counts and logs a connection above the bound of its address.
func (e *Engine) noteAddressLimit(from netip.AddrPort) {
	if n, due := e.cfg.Shed.Note(admission.AddressLimit); due {
		e.cfg.Logger.Warn("engine: connections refused: their address is at its limit", "latest", from, "count", n)
	}
}

// leastLoaded returns the loop for a new connection and increments the count of that loop. It prefers l, since moving a
// connection wakes the other loop, and returns another loop only if that has clearly fewer connections. leastLoaded returns nil
// if all loops are full.
func (l *loop) leastLoaded() *loop {
	least := l
	for _, other := range l.e.loops {
		if other.count.Load() < least.count.Load() {
			least = other
		}
	}
	most := int32(l.e.cfg.MaxLoopConns)
	own, few := l.count.Load(), least.count.Load()
	if own <= few+few/16 && own < most {
		least = l
	}
	for n := least.count.Load(); n < most; n = least.count.Load() {
		// The count must never be too high, not even for a moment: a loop that ends would wait for a connection that never
		// arrives, and would not be woken.
		if least.count.CompareAndSwap(n, n+1) {
			return least
		}
	}
	return nil
}

// refuseConn closes an accepted connection that is above a bound. It sends answer to the peer if that is possible without
// waiting. It reads input that has already arrived, because closing would otherwise reset the connection before the peer reads
// the answer.
func (d *Driver) refuseConn(c *Conn, answer []byte) {
	e := d.engine
	e.conns.Add(-1)
	if e.pausedLoops.Load() > 0 {
		e.broadcast(message{kind: msgResume})
	}
	if len(answer) > 0 && c.secure() == nil {
		_, _ = send(c.fd, answer)
		shutdown(c.fd, unix.SHUT_WR)
		_, _ = recv(c.fd, d.loop.readBuf())
	}
	closeFD(c.fd)
}

// errMaxConns is the reason for a pause of accepting at Config.MaxConns.
var errMaxConns = errors.New("the maximum number of connections is open")

// pauseAccept stops watching the listeners until a connection closes, or for acceptPause.
func (l *loop) pauseAccept(why error) {
	a, e := &l.acceptor, l.e
	a.paused, a.resumeAt = true, l.now+acceptPause
	for _, ln := range a.listeners {
		_ = l.ctl(unix.EPOLL_CTL_DEL, ln.fd, 0, 0, 0)
	}
	e.acceptPauses.Add(1)
	if e.pausedLoops.Add(1) == 1 {
		e.pausedSince.Store(l.now)
	}
	l.notePaused(why)
	if why == errMaxConns && e.conns.Load() < int64(e.cfg.MaxConns) {
		l.resumeAccept() // a connection was closed before the pause was visible
	}
}

// notePaused logs that no connections are accepted. It is called again while the pause lasts.
func (l *loop) notePaused(why error) {
	if n, due := l.e.cfg.Shed.Note(admission.AcceptPaused); due {
		l.e.cfg.Logger.Warn("engine: accepting pauses", "err", why, "open", l.e.conns.Load(), "count", n)
	}
}

// retryAccept ends a pause if its reason is over. Otherwise the pause goes on, and retryAccept makes room for waiting
// connections.
func (l *loop) retryAccept() {
	if e := l.e; e.conns.Load() >= int64(e.cfg.MaxConns) {
		if slices.ContainsFunc(l.acceptor.listeners, func(ln *listener) bool { return hasBacklog(ln.fd) }) {
			l.makeConnRoom()
		}
		l.notePaused(errMaxConns)
		l.acceptor.resumeAt = l.now + acceptPause
		return
	}
	l.resumeAccept() // only a call of accept shows whether descriptors are free again
}

// hasBacklog reports whether a connection waits to be accepted.
func hasBacklog(fd int32) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: fd, Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

func (l *loop) unpause() {
	if l.acceptor.paused {
		l.acceptor.paused, l.acceptor.resumeAt = false, 0
		l.e.pausedLoops.Add(-1)
	}
}

// resumeAccept watches the listeners again after a pause.
func (l *loop) resumeAccept() {
	if !l.acceptor.paused {
		return
	}
	l.unpause()
	for i := range l.acceptor.listeners {
		l.watchListener(i)
	}
}

const (
	// One part in idleShare of the idle connections is closed at a time, but at least minIdle connections.
	idleShare, minIdle = 16, 16
	// silentTicks is the time, in ticks, for which a new connection is spared, since a client sends its first request at once.
	// Connections of an address with more than half of all connections are spared for the same time after each request.
	silentTicks = secondTicks / 8
)

// dropIdle closes some of the loop's idle connections, longest idle first, to free their descriptors. With secure set, it closes
// only connections with TLS, to free their memory. A connection used within the last second is spared, since its client probably
// uses it. A new connection is spared for silentTicks if descriptors are needed, and for a second if memory is needed. dropIdle
// returns the number of closed connections.
func (l *loop) dropIdle(secure bool) (closed int) {
	why := "no room for more connections"
	if secure {
		why = "no memory for more connections with TLS"
	}
	return l.closeIdle(l.idleConns(secure), why)
}

// idleConns returns the connections that dropIdle may close.
func (l *loop) idleConns(secure bool) (idle []*Conn) {
	used, opened := l.idleTick(secondTicks), l.idleTick(silentTicks)
	for _, c := range l.conns {
		if c == nil || c.state.Load() != atLoop || !c.idle() || c.flags&busyFlags != 0 || c.queued || c.deadline == 0 || secure && c.secure() == nil {
			continue
		}
		if c.deadline < used || c.deadline < opened && c.Notes&Begun == 0 && !secure {
			idle = append(idle, c)
		}
	}
	return idle
}

// idleTick returns the smallest deadline, as a tick, of a connection used within the given number of ticks.
func (l *loop) idleTick(ticks uint32) uint32 {
	if open := l.e.cfg.OpenTimeout; open > 0 {
		return deadlineTick(l.now, open) - ticks
	}
	return ^uint32(0)
}

// closeIdle closes some of the given idle connections, longest idle first, and returns their number.
func (l *loop) closeIdle(idle []*Conn, why string) (closed int) {
	slices.SortStableFunc(idle, func(a, b *Conn) int { return cmp.Compare(a.deadline, b.deadline) })
	for _, c := range idle[:min(len(idle), max(len(idle)/idleShare, minIdle))] {
		if unread, err := unix.IoctlGetInt(int(c.fd), unix.TIOCINQ); err == nil && unread > 0 {
			continue // a request is waiting to be read
		}
		if n, due := l.e.cfg.Shed.Note(admission.IdleDropped); due {
			l.e.cfg.Logger.Warn("engine: "+why+": idle ones are closed, the oldest first", "idle", len(idle), "count", n)
		}
		l.close(c)
		closed++
	}
	return closed
}
