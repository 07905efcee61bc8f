//go:build linux

package engine

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// message is something another goroutine asks of a loop.
type message struct {
	kind     messageKind
	conn     *Conn
	listener *listener
	account  *admission.Account // of msgEnd
	done     *sync.WaitGroup    // of msgSweep, when every connection was looked at, and msgStopAccepting
}

type messageKind uint8

const (
	msgAdopt         messageKind = iota + 1 // conn is new
	msgListen                               // accept from listener
	msgCheck                                // conn was given back and may need filing, closing or serving
	msgClose                                // conn is to be closed
	msgUnlisten                             // let go of listener
	msgStopAccepting                        // let go of all listeners
	msgSweep                                // the engine is draining, or closing by force
	msgResume                               // descriptors may be free again: accept
	msgEnd                                  // conn is to be ended, since others need what account holds
	msgRoom                                 // there may be room for what waits for it
	msgLook                                 // conn's goroutine is to look what has become of it
	msgOverdue                              // conn, which was in line for a worker, is to be refused
	msgDropIdle                             // TLS takes more memory than it may: close idle connections with it
	msgWake                                 // conn is to be served, though nothing came from its peer
	msgEvict                                // conn is to be ended if it waits for its peer: others need its descriptor
	msgShake                                // the next TLS handshake is to have the processor
)

// inbox takes messages from any goroutine.
type inbox struct {
	signalled atomic.Bool // a message may be there and the loop has been woken for it
	mu        sync.Mutex
	messages  []message
	closed    bool
}

// close closes the inbox if it is empty; it reports whether it is closed.
func (b *inbox) close() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = b.closed || len(b.messages) == 0
	return b.closed
}

// post leaves m for the loop and wakes it. It reports false if the loop has ended.
func (l *loop) post(m message) bool {
	b := &l.inbox
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.messages = append(b.messages, m)
	if b.signalled.CompareAndSwap(false, true) {
		// Under the lock, so that the loop cannot end and close the descriptor before.
		var one [8]byte
		binary.NativeEndian.PutUint64(one[:], 1)
		_, _ = unix.Write(int(l.waker), one[:]) // cannot fail before 2^64 wake-ups
	}
	return true
}

// fetchMail moves the messages from the inbox to mail, which has been handled.
func (l *loop) fetchMail() {
	b := &l.inbox
	if !b.signalled.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.signalled.Store(false)
	l.mail, b.messages, l.mailAt = b.messages, l.mail[:0], 0
}

// handle does what m asks. It reports whether d still drives the loop.
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
	case msgRoom:
		l.e.roomPosted.Store(false)
		return l.retryRoom(d)
	case msgEnd:
		return l.endHolder(d, m.conn, m.account)
	case msgLook:
		if m.conn.slot >= 0 {
			m.conn.noteEvent(0)
		}
	case msgEvict:
		return l.evict(d, m.conn)
	case msgShake:
		now := l.e.now()
		l.e.shakes.turn(now, now-l.now)
	case msgOverdue:
		return l.serveOverdue(d, m.conn)
	case msgDropIdle:
		l.e.idlePosted.Store(false)
		if l.e.tooSecure() {
			l.dropIdle(true)
		}
	case msgWake:
		l.woken(m.conn)
	}
	return true
}
