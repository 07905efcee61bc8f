// Package backlog passes messages to receivers that may be slow. It has a log of the latest messages, in which each receiver has
// a position.
package backlog

import (
	"context"
	"sync"
)

// Length is the maximum number of messages in a log. When a message leaves the log, a receiver that has not received it has lost
// it.
const Length = 64

// A Log has the latest messages that at least one receiver has not received. Its methods are safe for concurrent use.
//
//	next = 70: messages 6 to 69 are in the log, message n in slots[n%Length]
type Log[T any] struct {
	mu        sync.Mutex
	slots     [Length]slot[T]
	next      uint64
	receivers int
	added     chan struct{} // closed by the next Add; nil if no receiver waits
}

// A slot holds a message until all receivers have received it or left.
type slot[T any] struct {
	message T
	lacking int // number of receivers that have not received it
}

// Add adds a message for the present receivers.
func (l *Log[T]) Add(message T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.receivers == 0 {
		return
	}
	l.slots[l.next%Length] = slot[T]{message, l.receivers}
	l.next++
	if l.added != nil {
		close(l.added)
		l.added = nil
	}
}

// Join returns a receiver of the messages that are added from now on.
func (l *Log[T]) Join() *Receiver[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.receivers++
	return &Receiver[T]{l, l.next}
}

// A Receiver is a position in a log. Only one goroutine at a time may use it.
type Receiver[T any] struct {
	log *Log[T]
	at  uint64 // number of its next message
}

// Next waits for the next message and returns it, with the number of messages that were lost before it. ok is false if ctx is
// done.
func (r *Receiver[T]) Next(ctx context.Context) (message T, lost uint64, ok bool) {
	for ctx.Err() == nil {
		message, lost, added := r.next()
		if added == nil {
			return message, lost, true
		}
		select {
		case <-added:
		case <-ctx.Done():
		}
	}
	return message, 0, false
}

// next returns the next message, or a channel that is closed when there is one.
func (r *Receiver[T]) next() (message T, lost uint64, added <-chan struct{}) {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.at == l.next {
		if l.added == nil {
			l.added = make(chan struct{})
		}
		return message, 0, l.added
	}
	if lacks := l.next - r.at; lacks > Length {
		lost = lacks - Length
		r.at += lost
	}
	message = l.slots[r.at%Length].message
	r.pass()
	return message, lost, nil
}

// pass moves the receiver to the next message, and drops the passed message if no other receiver needs it. log.mu must be held.
func (r *Receiver[T]) pass() {
	s := &r.log.slots[r.at%Length]
	if s.lacking--; s.lacking == 0 {
		*s = slot[T]{}
	}
	r.at++
}

// Leave ends the receiver. last is true if the log has no other receiver.
func (r *Receiver[T]) Leave() (last bool) {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	r.at = max(r.at, l.next-min(l.next, Length))
	for r.at < l.next {
		r.pass()
	}
	l.receivers--
	return l.receivers == 0
}
