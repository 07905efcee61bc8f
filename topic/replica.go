package topic

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/dunlinhttp/dunlin/internal/peers"
)

// A change is a change of a key. It is zero for a message of a topic without keys.
type change = peers.Change

// A replica is the part of a share for keyed topics. All processes apply changes in the order of the channel, so that they have the
// same entries and members. The rest of this file is for processes that lack changes, and for members of ended processes:
//
//   - A process holds the keys of its connections. Only its own list (peers.Held) says which. All processes send their list to a new
//     process, and to one that has lost a packet.
//   - These two also ask one process after another for their entries (peers.Ask), until one lacks no change. Of two entries of a key,
//     the one with the greater Change.At is right. An entry that the other process does not have was deleted, if that process lacks no
//     change, and the entry is older than the question.
//   - A process sends the leaves of dead processes. A leave that another process has sent, too, has no effect.
//
// Hub.mu guards the fields.
type replica struct {
	asked     uint64            // offset at which the question of this process has come back
	confirmed map[*entry]bool   // entries that the asked process has; nil before the question has come back
	unsettled map[topicKey]bool // keys whose holding by this process has changed
}

// A topicKey is a key of a topic.
type topicKey struct{ topic, key string }

// retry repeats a question that has no answer, to the process whose packet comes next. Hub.mu is held.
func (s *share) retry() {
	s.Retry()
	s.confirmed = nil
}

// settle requests a flush of a key. Hub.mu is held.
func (s *share) settle(topic, key string) {
	s.unsettled[topicKey{topic, key}] = true
	s.request()
}

// request wakes tell.
func (s *share) request() {
	select {
	case s.wake <- struct{}{}:
	default: // a wake-up is pending
	}
}

// work sends the packets that are due.
func (h *Hub) work(ctx context.Context) {
	s := h.shared
	h.mu.Lock()
	due := s.Due
	s.Due = peers.Due{Leaves: due.Leaves}
	h.mu.Unlock()
	if due.Ask != 0 {
		_ = s.send(ctx, peers.Packet{Flags: peers.Ask | peers.Hello, State: peers.State{To: due.Ask}})
	}
	_ = h.flush(ctx) // after an error the keys remain unsettled
	if due.Offers != nil {
		_ = s.send(ctx, peers.Packet{Flags: peers.Values, State: peers.State{Changes: due.Offers}})
	}
	if due.Held {
		_ = s.Send(ctx, h.held) // after an error the others detect a loss
	}
	for _, other := range due.Values {
		h.sendValues(ctx, other)
	}
}

// flush sends the unsettled keys and the leaves of dead processes. After an error the keys remain unsettled.
func (h *Hub) flush(ctx context.Context) error {
	s := h.shared
	var keys map[topicKey]bool
	err := s.Send(ctx, func() *peers.Packet {
		h.mu.Lock()
		defer h.mu.Unlock()
		changes := s.Due.Leaves
		keys, s.Due.Leaves, s.unsettled = s.unsettled, nil, map[topicKey]bool{}
		for p := range keys {
			if l := h.logs[p.topic]; l != nil && l.members[p.key] != nil {
				m := l.members[p.key]
				c := change{Topic: p.topic, Key: p.key, Data: m.joined, Left: m.left, Member: true, Holder: s.Self}
				if m.local == 0 {
					c.Data, c.Gone = m.left, true
				}
				changes = append(changes, c)
			}
		}
		for i := range changes {
			changes[i].At = s.Time()
		}
		if len(changes) == 0 {
			return nil
		}
		return &peers.Packet{Flags: peers.Changes, State: peers.State{Changes: changes}}
	})
	if err == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.Copy(s.unsettled, keys)
	return fmt.Errorf("topic: join: %w", err)
}

// held returns the packet with the keys that this process holds.
func (h *Hub) held() *peers.Packet {
	p := &peers.Packet{Flags: peers.Held}
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.keyed {
		for key, m := range l.members {
			if m.local == 0 {
				continue
			}
			c := change{Topic: l.name, Key: key, Data: m.joined, Left: m.left, At: h.shared.Time()}
			if e := l.live(key); e != nil {
				c.Data, c.At = e.text(), e.at
			}
			p.State.Changes = append(p.State.Changes, c)
		}
	}
	return p
}

// sendValues sends all entries of keyed topics to a process.
func (h *Hub) sendValues(ctx context.Context, to peers.Sender) {
	var names []string
	h.mu.Lock()
	for l := range h.keyed {
		names = append(names, l.name)
	}
	h.mu.Unlock()
	p := peers.Packet{Flags: peers.Values | peers.Complete, State: peers.State{To: to}}
	for size := 0; p.Flags&peers.End == 0; {
		h.mu.Lock()
		if h.shared.Incomplete() {
			p.Flags &^= peers.Complete
		}
		for ; len(names) > 0 && size < 64<<10; names = names[1:] {
			if l := h.logs[names[0]]; l != nil {
				for _, e := range l.keys {
					size += len(e.text())
					p.State.Changes = append(p.State.Changes, l.change(e))
				}
			}
		}
		h.mu.Unlock()
		if len(names) == 0 {
			p.Flags |= peers.End
		}
		_ = h.shared.send(ctx, p)
		p.State.Changes, size = nil, 0
	}
}

// change returns an entry as a change. hub.mu is held.
func (l *log) change(e *entry) change {
	c := change{Topic: l.name, Key: e.key, Data: e.text(), At: e.at, Gone: e.gone}
	if m := l.members[e.key]; m != nil {
		c.Left, c.Holders = m.left, slices.Clone(m.holders)
	}
	return c
}

// keyed yields the logs with keys. h.mu is held.
func (h *Hub) keyed(yield func(*log) bool) {
	for _, l := range h.logs {
		if l.set.Keyed && !yield(l) {
			return
		}
	}
}

// receiveState applies the flags and the state of a packet. h.mu is held.
func (h *Hub) receiveState(p *peers.Packet) {
	s := h.shared
	asked, answer := s.Question(p)
	switch {
	case asked:
		s.asked, s.confirmed = h.visible.Load(), map[*entry]bool{}
	case answer && s.confirmed != nil, p.Flags&peers.Values != 0 && p.State.To == 0:
		for _, c := range p.State.Changes {
			h.compare(c)
		}
		if p.Flags&peers.End != 0 {
			h.compared(p.Flags&peers.Complete != 0)
		}
	case p.Flags&peers.Changes != 0:
		for i, c := range p.State.Changes {
			h.receiveChange(c, p.Sender, p.First+uint64(i))
		}
	case p.Flags&peers.Held != 0:
		h.receiveHeld(p)
	case p.Flags&peers.Tick != 0 && p.Sender == s.Self:
		h.bury()
	}
	if s.Due.Any() {
		s.request()
	}
}

// bury makes the members of dead processes leave. h.mu is held.
func (h *Hub) bury() {
	s := h.shared
	s.Tick()
	s.Due.Leaves = nil
	for l := range h.keyed {
		for key, m := range l.members {
			for _, id := range m.holders {
				if s.Dead(id) {
					s.Due.Leaves = append(s.Due.Leaves, change{Topic: l.name, Key: key, Data: m.left, Gone: true, Member: true, Holder: id})
				}
			}
		}
	}
}

// logOf returns the log of a change, nil if this process cannot have it. h.mu is held.
func (h *Hub) logOf(c change) *log {
	if h.check(c.Topic, c.Key, [][]byte{c.Data}) == nil {
		if l, err := h.open(c.Topic); err == nil {
			return l
		}
	}
	h.lose()
	return nil
}

// receiveChange applies a new change. h.mu is held.
func (h *Hub) receiveChange(c change, from peers.Sender, number uint64) {
	l := h.logOf(c)
	if l == nil {
		return
	}
	offset := h.visible.Load() + 1
	h.ids.Know(offset, from, number, 1)
	if !h.follow(l, c) {
		h.ids.Forget(offset, 1)
	}
	h.verify(l, c.Key)
}

// verify requests a flush of a key if the others do not know whether this process holds it. h.mu is held.
func (h *Hub) verify(l *log, key string) {
	if m := l.members[key]; m != nil && slices.Contains(m.holders, h.shared.Self) != (m.local > 0) {
		h.shared.settle(l.name, key)
	}
}

// receiveHeld replaces the list of the keys that a process holds. h.mu is held.
func (h *Hub) receiveHeld(p *peers.Packet) {
	listed := map[topicKey]bool{}
	for _, c := range p.State.Changes {
		l := h.logOf(c)
		if l == nil {
			continue
		}
		listed[topicKey{c.Topic, c.Key}] = true
		if l.live(c.Key) == nil {
			h.repair(l, c)
		}
		l.enroll(c.Key, p.Sender, c.Left)
	}
	for l := range h.keyed {
		for key, m := range l.members {
			if slices.Contains(m.holders, p.Sender) && !listed[topicKey{l.name, key}] {
				h.repair(l, change{Topic: l.name, Key: key, Data: m.left, Gone: true, Member: true, Holder: p.Sender})
			}
			if p.Sender == h.shared.Self {
				h.verify(l, key)
			}
		}
	}
	h.shared.SetListed(p.Sender)
}

// repair applies a change that this process has lost. A client with an earlier position cannot resume, since another process may have
// sent it the message. h.mu is held.
func (h *Hub) repair(l *log, c change) {
	if h.follow(l, c) {
		h.resumable = h.visible.Load()
	}
}

// compare compares an entry of another process with that of this process, and takes the later one. The others get a later entry of this
// process. h.mu is held.
func (h *Hub) compare(c change) {
	s, l := h.shared, h.logOf(c)
	if l == nil {
		return
	}
	e, m := l.keys[c.Key], l.members[c.Key]
	holders := slices.DeleteFunc(slices.Clone(c.Holders), s.Listed)
	order := 1
	if e != nil {
		order = cmp.Or(cmp.Compare(c.At, e.at), bytes.Compare(c.Data, e.text()))
	}
	switch {
	case len(c.Holders) > 0 && len(holders) == 0 && l.live(c.Key) == nil:
		return // the key is no longer held
	case order > 0 && c.Gone && m != nil && m.local > 0:
		s.settle(c.Topic, c.Key) // this process still holds the key
	case order > 0 && e != nil && e.gone == c.Gone && bytes.Equal(e.text(), c.Data):
		e.at = c.At
	case order > 0:
		h.repair(l, c)
		e = l.keys[c.Key]
	case order < 0 && s.confirmed != nil:
		s.Due.Offers = append(s.Due.Offers, l.change(e))
	}
	if s.confirmed != nil {
		s.confirmed[e] = true
	}
	for _, id := range holders {
		l.enroll(c.Key, id, c.Left)
	}
}

// compared ends the comparison. complete reports that the other process lacks no change. h.mu is held.
func (h *Hub) compared(complete bool) {
	s := h.shared
	for l := range h.keyed {
		deleted := false
		for key, e := range l.keys {
			m := l.members[key]
			switch {
			case e.offset > s.asked || s.confirmed[e]:
			case !complete:
				s.Due.Offers = append(s.Due.Offers, l.change(e))
			case !e.gone && (m == nil || m.local == 0):
				delete(l.members, key)
				l.discard(key)
				deleted = true
			}
		}
		if deleted { // the messages that delete the keys are not known
			h.skip(l)
			h.resumable = h.visible.Load()
		}
		for key := range l.members {
			h.verify(l, key)
		}
	}
	s.Answered(complete)
	s.confirmed = nil
}
