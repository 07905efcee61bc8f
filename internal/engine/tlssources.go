//go:build linux

package engine

import (
	"container/list"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/overload"
)

// A handshakeLine is the line of handshakes of one kind that wait to begin. Addresses take turns, so an address that opens many
// connections delays only its own connections. A connection from a trusted proxy, or without an address, has turns of its own.
type handshakeLine struct {
	kind    handshakeKind
	all     list.List // of *handshakeJob, the oldest first
	sources list.List // of *handshakeSource with jobs in this line; in the order of their turns
	control overload.Queue
	begun   int // handshakes of this kind that have begun and are not over
}

// A handshakeSource is an address with handshakes that have begun or are in line.
type handshakeSource struct {
	key   admission.AddressKey
	known bool // the source is in handshakes.sources
	begun int  // handshakes that have begun and are not over, without those that were given up
	lines [handshakeKinds]struct {
		jobs    list.List     // of *handshakeJob, the oldest first
		element *list.Element // in handshakeLine.sources; nil if there are no jobs
	}
}

// A handshakeJob is a connection in line.
type handshakeJob struct {
	c        *Conn
	since    int64
	source   *handshakeSource
	all, own *list.Element
}

// source returns the source of c, a new one if there is none yet. s.mu is held.
func (s *handshakes) source(c *Conn) *handshakeSource {
	ip := s.e.source(c.peer.addr())
	if !ip.IsValid() {
		return new(handshakeSource)
	}
	key := admission.AddressKeyOf(ip)
	src := s.sources[key]
	if src == nil {
		src = &handshakeSource{key: key, known: true}
		if s.sources == nil {
			s.sources = make(map[admission.AddressKey]*handshakeSource)
		}
		s.sources[key] = src
	}
	return src
}

// forget removes a source without handshakes. s.mu is held.
func (s *handshakes) forget(src *handshakeSource) {
	if src.known && src.begun == 0 && src.lines[handshakeWhole].element == nil && src.lines[handshakeResume].element == nil {
		delete(s.sources, src.key)
	}
}

// push appends c to the line.
func (l *handshakeLine) push(c *Conn, src *handshakeSource, since int64) {
	j := &handshakeJob{c: c, since: since, source: src}
	own := &src.lines[l.kind]
	j.all, j.own = l.all.PushBack(j), own.jobs.PushBack(j)
	if own.element == nil {
		own.element = l.sources.PushBack(src)
	}
}

// next returns the source whose turn it is: the source that has waited longest for its turn, or if newest is set, the last
// source.
func (l *handshakeLine) next(newest bool) *handshakeSource {
	if newest {
		return l.sources.Back().Value.(*handshakeSource)
	}
	return l.sources.Front().Value.(*handshakeSource)
}

// pass ends the turn of a source: all other sources have their turn before it.
func (l *handshakeLine) pass(src *handshakeSource, newest bool) {
	if element := src.lines[l.kind].element; element == nil {
	} else if newest {
		l.sources.MoveToFront(element)
	} else {
		l.sources.MoveToBack(element)
	}
}

// pop removes and returns the next job of the line: the oldest job of the next source, or its newest job if newest is set.
func (l *handshakeLine) pop(newest bool) *handshakeJob {
	src := l.next(newest)
	e := src.lines[l.kind].jobs.Front()
	if newest {
		e = src.lines[l.kind].jobs.Back()
	}
	j := e.Value.(*handshakeJob)
	l.remove(j)
	l.pass(src, newest)
	return j
}

func (l *handshakeLine) remove(j *handshakeJob) {
	l.all.Remove(j.all)
	own := &j.source.lines[l.kind]
	if own.jobs.Remove(j.own); own.jobs.Len() == 0 {
		l.sources.Remove(own.element)
		own.element = nil
	}
}

// oldest returns how long the oldest job in line has waited.
func (l *handshakeLine) oldest(now int64) time.Duration {
	if l.all.Len() == 0 {
		return 0
	}
	return time.Duration(now - l.all.Front().Value.(*handshakeJob).since)
}
