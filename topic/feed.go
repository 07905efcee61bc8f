package topic

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/ws"
)

// A feed has the subscriptions of one connection. It implements exchange.Feed. A subscription is a position in a log; no message is
// queued for a subscriber. A feed sends the messages of several topics in the order of their offsets. So the ID of the last message
// is the position in all topics.
type feed struct {
	hub    *Hub
	client client
	as     encoding
	held   atomic.Bool // the client accepts no output; the feed continues when it accepts output again
	cut    atomic.Bool // the connection must be closed

	mu     sync.Mutex // acquired before that of the hub
	closed bool
	say    announcement // to be sent next
	from   int32        // number of bytes of part that the client has
	part   *entry       // message of which the client has a part; pinned; nil for none
	subs   []*sub
	holds  []hold
	sent   *sending // the messages of the last Append, until Unsent
}

// A client wakes the connection of a feed. exchange.Peer implements it.
type client interface {
	Loop() exchange.Loop
	Wake()
	WakeHere()
}

// A sub is a subscription.
type sub struct {
	feed     *feed
	log      *log
	audience *audience
	index    int           // in audience.subs
	at       atomic.Uint64 // offset of the latest message sent. feed.mu guards changes
	since    atomic.Uint64 // in a keyed topic: the subscriber does not need deletions up to this offset. feed.mu guards changes
}

// missed reports whether the log has dropped a message that the subscriber lacks. log.mu is held.
func (s *sub) missed() bool { return max(s.at.Load(), s.since.Load()) < s.log.floor }

// restart moves the subscriber to the position of a new subscriber. feed.mu and log.mu are held.
func (s *sub) restart() {
	at, since := s.log.begin(s.log.hub.visible.Load())
	s.at.Store(at)
	s.since.Store(since)
}

// An announcement tells a client its position, without a message.
type announcement uint8

const (
	sayNothing  announcement = iota
	sayPosition              // the ID from which the client can resume before its first message
	sayResync                // the client has missed messages
)

// sending has the messages of one call of Append.
type sending struct {
	pieces []piece
}

type piece struct {
	entry  *entry
	sub    *sub   // nil for an announcement, and for the rest of a message
	before uint64 // sub.at before the piece; the announcement if entry is one
	since  uint64 // sub.since before the piece
	from   int32  // index of the first byte in the encoded message
	n      int32  // length in bytes
}

var sendings = sync.Pool{New: func() any { return new(sending) }}

// maxAppended is the number of bytes after which Append adds no further message.
const maxAppended = 16 << 10

// Rest implements exchange.Feed.
func (f *feed) Rest(out []byte) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.part == nil {
		return out
	}
	out = append(out, f.part.as[f.as][f.from:]...)
	f.part.unpin()
	f.part = nil
	return out
}

// Append implements exchange.Feed.
func (f *feed) Append(out []byte) (_ []byte, more bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held.Store(false)
	f.accept()
	if len(f.subs) == 0 && f.part == nil {
		return out, false
	}
	f.sent = sendings.Get().(*sending)
	most := len(out) + maxAppended
	if p := f.part; p != nil {
		out = f.add(out, p, piece{entry: p, from: f.from})
		f.part = nil
	}
	visible := f.hub.visible.Load()
	for {
		if f.say != sayNothing {
			out = f.announce(out, visible)
		}
		s, e := f.next(visible)
		switch {
		case f.cut.Load():
			return out, true
		case f.say != sayNothing:
			continue
		case e == nil:
			return out, false
		case len(out) >= most:
			return out, true
		}
		out = f.add(out, e, piece{entry: e, sub: s, before: s.at.Load(), since: s.since.Load()})
		s.at.Store(e.offset)
	}
}

// add appends the bytes of a message from p.from on, and records p.
func (f *feed) add(out []byte, e *entry, p piece) []byte {
	b := e.as[f.as][p.from:]
	p.n = int32(len(b))
	f.sent.pieces = append(f.sent.pieces, p)
	return append(out, b...)
}

// next returns the next message, nil if there is none. It applies the policy to each subscriber that has missed messages. The
// client gets one announcement for all of them.
func (f *feed) next(visible uint64) (first *sub, message *entry) {
	missed := false
	for _, s := range f.subs {
		l := s.log
		if l.newest.Load() <= s.at.Load() {
			continue
		}
		l.mu.Lock()
		if s.missed() && !f.missed(s) {
			l.mu.Unlock()
			missed = true
			continue
		}
		e := l.after(s.at.Load(), s.since.Load())
		if e != nil && e.offset <= visible && (message == nil || e.offset < message.offset) {
			e.encoded(f.as)
			first, message = s, e
		}
		l.mu.Unlock()
	}
	if missed {
		return nil, nil
	}
	return first, message
}

// missed applies the policy to a subscriber that has missed messages, and reports whether next may continue with the subscriber.
// s.log.mu is held.
func (f *feed) missed(s *sub) bool {
	switch {
	case s.log.set.Slow == Cut:
		f.cut.Store(true)
	case s.log.set.Slow == Skip && !s.log.set.Keyed:
		f.hub.skipped.Add(1)
		s.at.Store(s.log.floor)
		return true
	default:
		f.hub.resyncs.Add(1)
		f.say = sayResync
		s.restart()
	}
	return false
}

// begin returns the position of a new subscriber: before all messages in a keyed log, else now. l.mu is held.
func (l *log) begin(now uint64) (at, since uint64) {
	if !l.set.Keyed {
		return now, 0
	}
	at = now
	if e := l.after(0, now); e != nil {
		at = e.offset - 1
	}
	return at, now
}

// announce appends the announcement f.say, with the position from which the client has all messages.
func (f *feed) announce(out []byte, visible uint64) []byte {
	at := visible
	for _, s := range f.subs {
		if s.log.newest.Load() > s.at.Load() {
			at = min(at, s.at.Load())
		}
	}
	e := new(entry)
	id := f.hub.ids.Append(make([]byte, 0, 32), at)
	switch {
	case f.as == asEvent && f.say == sayResync:
		e.as[asEvent] = []byte("id: " + string(id) + "\nevent: " + resyncName + "\ndata:\n\n")
	case f.as == asEvent:
		e.as[asEvent] = []byte("id: " + string(id) + "\n\n")
	default:
		word := "!at "
		if f.say == sayResync {
			word = "!" + resyncName + " "
		}
		e.as[f.as] = ws.TextFrame([]byte(word), id)
	}
	out = f.add(out, e, piece{entry: e, before: uint64(f.say)})
	f.say = sayNothing
	return out
}

// resyncName is the type of the event that tells a client that it has missed messages.
const resyncName = "resync"

// Unsent implements exchange.Feed.
func (f *feed) Unsent(n int) (takenBack int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sent == nil {
		return 0
	}
	pieces := f.sent.pieces
	for i := len(pieces) - 1; i >= 0 && n > 0; i-- {
		p := pieces[i]
		back := min(n, int(p.n))
		takenBack += back
		n -= back
		switch {
		case p.from+p.n-int32(back) > 0: // the client has a part
			f.part, f.from = p.entry, p.from+p.n-int32(back)
			p.entry.pin()
		case p.sub != nil:
			p.sub.at.Store(p.before)
			p.sub.since.Store(p.since)
		default:
			f.say = max(f.say, announcement(p.before))
		}
	}
	if takenBack > 0 {
		f.held.Store(true)
	}
	f.accept()
	return takenBack
}

// accept ends the last Append: its messages can no longer be taken back. f.mu is held.
func (f *feed) accept() {
	if f.sent == nil {
		return
	}
	pieces := f.sent.pieces
	if len(pieces) > 0 && pieces[0].from > 0 {
		pieces[0].entry.unpin() // it was pinned as the rest of a message
	}
	clear(pieces)
	f.sent.pieces = pieces[:0]
	sendings.Put(f.sent)
	f.sent = nil
}

// Hold and Cut implement exchange.Feed.
func (f *feed) Hold()     { f.held.Store(true) }
func (f *feed) Cut() bool { return f.cut.Load() }

// Close implements exchange.Feed.
func (f *feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.cut.Load() {
		f.hub.cuts.Add(1)
	}
	f.accept()
	if f.part != nil {
		f.part.unpin()
		f.part = nil
	}
	for _, s := range f.subs {
		s.leave()
	}
	f.subs = nil
	for _, h := range f.holds {
		h.leave()
	}
	f.holds = nil
}

// subscribe adds subscriptions. last is the ID of the last message that the client has, "" for a new client. A client that has
// missed later messages is treated as a new client, and gets the announcement sayResync.
func (f *feed) subscribe(last string, names []string) error {
	if err := f.hub.checkNames(names); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return errClosed
	case len(f.subs)+len(names) > maxSubscriptions:
		return ErrTooMany
	}
	if err := f.enter(last, names); err != nil {
		return err
	}
	f.held.Store(false)
	f.client.Wake()
	return nil
}

// enter implements subscribe. f.mu is held.
func (f *feed) enter(last string, names []string) error {
	h := f.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	logs := make([]*log, 0, len(names))
	from, fresh := h.visible.Load(), last == ""
	say := sayPosition
	if !fresh {
		offset, ok := h.ids.Offset(last)
		if !ok || offset < h.resumable || offset > from {
			say = sayResync
		}
		from = offset
	}
	bare := true
	for _, name := range names {
		if f.indexOf(name) >= 0 {
			continue
		}
		l, err := h.open(name)
		if err != nil {
			return err
		}
		if l.missedSince(from) && !fresh {
			say = sayResync
		}
		bare = bare && l.set.Bare
		logs = append(logs, l)
	}
	if say == sayResync {
		h.resyncs.Add(1)
		fresh = true
	}
	for _, l := range logs {
		if f.indexOf(l.name) < 0 {
			f.subs = append(f.subs, l.enter(f, from, fresh))
		}
	}
	if !bare || f.as == asEvent {
		f.say = max(f.say, say)
	}
	return nil
}

// indexOf returns the index of a subscription, -1 if there is none. f.mu is held.
func (f *feed) indexOf(name string) int {
	return slices.IndexFunc(f.subs, func(s *sub) bool { return s.log.name == name })
}

// unsubscribe ends subscriptions.
func (f *feed) unsubscribe(names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		if i := f.indexOf(name); i >= 0 {
			f.subs[i].leave()
			f.subs = slices.Delete(f.subs, i, i+1)
		}
	}
}
