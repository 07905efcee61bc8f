package topic

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/sse"
	"github.com/dunlinhttp/dunlin/internal/ws"
)

// A log has the latest messages of a topic, and its subscribers.
//
//	entries  e4 e7 e9     in the order of offsets, which are those of the hub: other topics have 5, 6 and 8
//	floor    2            the newest offset that was dropped: a subscriber before it has missed a message
//	newest   9            a subscriber there is up to date
//
// In a keyed log an entry is stale when its key has a newer entry. Readers skip it, and replace removes the stale entries when they
// are half of the log. The entry of a deleted key tells the present subscribers of the deletion. Such entries are dropped first.
type log struct {
	hub    *Hub
	name   string
	set    *Settings
	newest atomic.Uint64
	last   atomic.Int64 // time of the last message or subscription, Unix seconds

	mu        sync.Mutex // acquired last
	entries   []*entry
	keys      map[string]*entry  // changed while hub.mu is held, too
	members   map[string]*member // by key; entries of members are not dropped; guarded by hub.mu
	stale     int
	deleted   int   // number of entries, not stale, of deleted keys
	bytes     int64 // cost of entries that are not stale
	floor     uint64
	audiences []*audience
}

// An entry is a message. Each encoding is made once, when the first subscriber needs it.
type entry struct {
	offset uint64
	cost   int64
	name   string // of the topic
	key    string
	at     uint64 // see change.At
	data   []byte
	log    *log // nil for an announcement to one subscriber
	as     [encodings][]byte
	gone   bool  // the message deletes its key
	stale  bool  // the entry is superseded or dropped
	free   bool  // the entry is not charged
	pins   int32 // number of clients that have a part of the message
}

// An encoding is the form of messages for a kind of subscriber.
type encoding uint8

const (
	asFrame    encoding = iota // a text message of a WebSocket
	asEvent                    // an event of an event stream
	asDeflated                 // a compressed message of a WebSocket; asFrame if compression does not make it shorter
	encodings
)

const (
	// entryCost and logCost are the bytes charged for a message and a topic, in addition to data and names.
	entryCost = 224
	logCost   = 640
)

// cost returns the charge of a message. An entry has at most two of data, frame and event at a time, since encoded drops the data
// when both others exist. A compressed frame is charged when it is made.
func cost(data []byte) int64 { return 2*int64(len(data)) + entryCost }

// append adds messages of a topic. They are visible when the caller has advanced Hub.visible. hub.mu is held.
func (l *log) append(name string, c change, messages [][]byte) error {
	h := l.hub
	var total int64
	for _, m := range messages {
		total += cost(m) + int64(len(c.Key))
	}
	reserved := h.reserve(total, l)
	if !l.fits(c, total) {
		if reserved {
			h.memory.Release(total)
		}
		return ErrFull
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for !reserved {
		if !l.dropOldest() {
			return ErrMemory
		}
		reserved = h.memory.Reserve(total)
	}
	if old := l.keys[c.Key]; old != nil {
		c.At = max(c.At, old.at+1)
	}
	offset := h.visible.Load()
	for _, m := range messages {
		offset++
		e := &entry{offset: offset, cost: cost(m) + int64(len(c.Key)), name: name, key: c.Key, at: c.At, gone: c.Gone, data: append([]byte(nil), m...), log: l}
		l.entries = append(l.entries, e)
		l.bytes += e.cost
		if c.Key != "" {
			l.replace(c.Key, e)
		}
	}
	for (len(l.entries)-l.stale > l.set.MaxMessages || l.bytes > int64(l.set.MaxBytes)) && l.dropOldest() {
	}
	if name == l.name {
		l.last.Store(time.Now().Unix()) // not in the log of a wildcard, which is idle without subscribers
	}
	l.newest.Store(offset)
	return nil
}

// lose records that the log lacks the message of an offset: all subscribers have missed messages. hub.mu is held.
func (l *log) lose(offset uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.floor = offset
	l.newest.Store(offset)
	l.mark()
}

// wake wakes the subscribers, which then read the new messages.
func (l *log) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mark()
}

// mark implements wake. l.mu is held.
func (l *log) mark() {
	for _, g := range l.audiences {
		g.mark()
	}
}

// replace makes e the latest entry of a key. l.mu is held.
func (l *log) replace(key string, e *entry) {
	if l.keys == nil {
		l.keys = map[string]*entry{}
	}
	if old := l.keys[key]; old != nil {
		l.forget(old)
	}
	l.keys[key] = e
	if e.gone {
		l.deleted++
	}
	if l.stale <= len(l.entries)/2 {
		return
	}
	kept := l.entries[:0]
	for _, e := range l.entries {
		if !e.stale {
			kept = append(kept, e)
		}
	}
	clear(l.entries[len(kept):])
	l.entries, l.stale = kept, 0
}

// forget marks an entry as stale and ends its charge. l.mu is held.
func (l *log) forget(e *entry) {
	l.bytes -= e.cost
	l.stale++
	if e.gone {
		l.deleted--
	}
	e.stale = true
	e.uncharge()
}

// uncharge ends the charge of a stale entry that no client has a part of. e.log.mu is held.
func (e *entry) uncharge() {
	if e.stale && e.pins == 0 && !e.free {
		e.free = true
		e.log.hub.memory.Release(e.cost)
	}
}

// dropOldest drops the entry that oldest returns, and reports whether there was one. l.mu is held.
func (l *log) dropOldest() bool {
	e := l.oldest()
	if e == nil {
		return false
	}
	if e.key != "" {
		delete(l.keys, e.key)
	}
	l.floor = max(l.floor, e.offset)
	l.forget(e)
	l.hub.dropped.Add(1)
	for len(l.entries) > 0 && l.entries[0].stale {
		l.entries[0] = nil
		l.entries = l.entries[1:]
		l.stale--
	}
	if len(l.entries) == 0 {
		l.entries = nil
	}
	return true
}

// oldest returns the entry to drop next, nil for none. Entries of deleted keys come first; entries of members are never dropped.
// l.mu is held.
func (l *log) oldest() *entry {
	for _, e := range l.entries {
		if !e.stale && (l.deleted == 0 || e.gone) && (e.gone || l.members[e.key] == nil) {
			return e
		}
	}
	return nil
}

// shrink drops messages of n bytes in all, or every message, and returns the number of bytes dropped.
func (l *log) shrink(n int64) (dropped int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.bytes
	for before-l.bytes < n && l.dropOldest() {
	}
	return before - l.bytes
}

// after returns the first message after an offset, nil if there is none. It skips deletions up to the offset known. l.mu is held.
func (l *log) after(offset, known uint64) *entry {
	low, high := 0, len(l.entries)
	if high > 1 && l.entries[high-2].offset <= offset {
		low = high - 1 // most subscribers lack the newest message only
	}
	for low < high {
		if mid := int(uint(low+high) >> 1); l.entries[mid].offset <= offset {
			low = mid + 1
		} else {
			high = mid
		}
	}
	for ; low < len(l.entries); low++ {
		if e := l.entries[low]; !e.stale && e.offset > offset && !(e.gone && e.offset <= known) {
			return e
		}
	}
	return nil
}

// encoded returns a message in an encoding. l.mu is held.
func (e *entry) encoded(as encoding) []byte {
	if b := e.as[as]; b != nil {
		return b
	}
	var b []byte
	switch as {
	case asFrame:
		b = e.frame()
	case asDeflated:
		b = e.deflated()
	case asEvent:
		b = e.log.hub.ids.Append(append(make([]byte, 0, len(e.data)+64+len(e.name)), "id: "...), e.offset)
		b = append(append(append(b, "\nevent: "...), e.name...), '\n')
		b = append(sse.AppendLines(b, "data: ", string(e.data)), '\n')
	}
	e.as[as] = b
	if e.as[asFrame] != nil && e.as[asEvent] != nil {
		e.data = nil
	}
	return b
}

// deflated returns a compressed frame, or the frame of asFrame if that is shorter or memory for another is lacking. e.log.mu is held.
func (e *entry) deflated() []byte {
	plain := e.as[asFrame]
	if plain == nil {
		plain = e.frame()
	}
	if packed := ws.DeflatedFrame(plain); packed != nil && e.log.hub.memory.Reserve(int64(len(packed))) {
		e.cost += int64(len(packed))
		e.log.bytes += int64(len(packed))
		return packed
	}
	if e.as[asFrame] == nil { // otherwise other feeds may be reading it, without the lock
		e.as[asFrame] = plain
	}
	return plain
}

// frame returns the message as a frame of a WebSocket.
func (e *entry) frame() []byte {
	if e.log.set.Bare {
		return ws.TextFrame(nil, e.data)
	}
	head := e.log.hub.ids.Append(make([]byte, 0, 64), e.offset)
	return ws.TextFrame(append(append(append(head, ' '), e.name...), '\n'), e.data)
}

// text returns the published data. It must not be changed.
func (e *entry) text() []byte {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	if e.data != nil {
		return e.data
	}
	text := ws.Payload(e.as[asFrame])
	if !e.log.set.Bare {
		text = text[bytes.IndexByte(text, '\n')+1:]
	}
	return text
}

// pin keeps a message charged while a client has a part of it, even when the log drops the message.
func (e *entry) pin() {
	if e.log == nil {
		return
	}
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	e.pins++
	if e.free && e.log.hub.memory.Reserve(e.cost) { // the log has just dropped the entry
		e.free = false
	}
}

func (e *entry) unpin() {
	if e.log == nil {
		return
	}
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	e.pins--
	e.uncharge()
}
