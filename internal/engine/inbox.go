//go:build linux

package engine

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/memory"
)

// message is a request to a loop from any goroutine.
type message struct {
	kind     messageKind
	conn     *Conn
	listener *listener
	account  *memory.Account // for msgEnd
	f        func()          // for msgCall
	done     *sync.WaitGroup // for msgSweep, done when every connection was checked; and for msgStopAccepting
}

type messageKind uint8

const (
	msgAdopt         messageKind = iota + 1 // conn is new
	msgListen                               // accept from listener
	msgCheck                                // conn has returned to the loop: set its timer, close or serve it if necessary
	msgClose                                // close conn
	msgUnlisten                             // release listener
	msgStopAccepting                        // release all listeners
	msgSweep                                // the engine is draining, or closing by force
	msgResume                               // descriptors may be free again: accept
	msgEnd                                  // end conn: the memory of account is needed
	msgLook                                 // wake the goroutine that owns conn, so that it checks the state of conn
	msgOverdue                              // refuse conn, which waited in line for a worker
	msgDropIdle                             // TLS uses more memory than its bound: close idle connections with TLS
	msgWake                                 // serve conn without new input from its peer
	msgEvict                                // end conn if it waits for its peer: its descriptor is needed
	msgCall                                 // call f
	msgHandshake                            // give the processor to the next TLS handshake
)

// inbox accepts messages from any goroutine.
type inbox struct {
	signalled atomic.Bool // the inbox may have a message, and the loop has been woken for it
	mu        sync.Mutex
	messages  []message
	closed    bool
}

// close closes the inbox if it is empty; it reports whether the inbox is closed.
func (b *inbox) close() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = b.closed || len(b.messages) == 0
	return b.closed
}

// post adds m to the inbox and wakes the loop. It reports false if the loop has ended.
func (l *loop) post(m message) bool {
	b := &l.inbox
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.messages = append(b.messages, m)
	if b.signalled.CompareAndSwap(false, true) {
		// The lock is held, so that the loop cannot end and close the descriptor before the write.
		var one [8]byte
		binary.NativeEndian.PutUint64(one[:], 1)
		_, _ = unix.Write(int(l.waker), one[:]) // cannot fail before 2^64 wake-ups
	}
	return true
}

// fetchMessages moves the messages from the inbox to l.batch, whose previous messages have all been handled.
func (l *loop) fetchMessages() {
	b := &l.inbox
	if l.evictions.Load() {
		l.evictions.Store(false)
	}
	if !b.signalled.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.signalled.Store(false)
	l.batch, b.messages, l.batchAt = b.messages, l.batch[:0], 0
}

// handle executes m. It reports whether d still drives the loop.
func (l *loop) handle(d *Driver, m message) bool {
	switch m.kind {
	case msgAdopt:
		l.adopt(m.conn)
	case msgListen:
		l.listen(d, m.listener)
	case msgUnlisten:
		l.unlisten(d, m.listener)
	case msgClose:
		m.conn.state.Store(atLoop)
		l.finish(m.conn)
	case msgCheck:
		c := m.conn
		if c.slot < 0 || !c.noteEvent(0) {
			return true
		}
		if l.e.draining.Load() && (c.idle() || l.e.forced.Load()) {
			return l.sweep(d, c)
		}
		l.refileIfEarlier(c)
		ended := c.hasEnded()
		if ended {
			c.flags |= flagReadable
		}
		if (ended || c.flags&flagAgain != 0) && c.out == nil {
			l.serveSoon(c)
		}
	case msgStopAccepting:
		l.stopListening(d)
		m.done.Done()
	case msgSweep:
		l.stopListening(d)
		l.sweepAt = 0
		l.sweepers = append(l.sweepers, m.done)
	case msgResume:
		l.resumeAccept()
	case msgEnd:
		return l.endHolder(d, m.conn, m.account)
	case msgLook:
		if m.conn.slot >= 0 {
			m.conn.noteEvent(0)
		}
	case msgEvict:
		return l.evict(d, m.conn)
	case msgHandshake:
		now := l.e.now()
		l.e.handshakes.loopServed(now, now-l.now)
	case msgOverdue:
		return l.serveOverdue(d, m.conn)
	case msgDropIdle:
		l.e.idlePosted.Store(false)
		if l.e.overSecureMemory() {
			l.dropIdle(true)
		}
	case msgCall:
		m.f()
	case msgWake:
		l.woken(m.conn)
	}
	return true
}
