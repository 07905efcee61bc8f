package topic

import (
	"bytes"
	"context"
	"slices"

	"github.com/dunlinhttp/dunlin/internal/peers"
	"github.com/dunlinhttp/dunlin/websocket"
)

// A member is a key of a keyed topic that connections hold. Hub.mu guards its fields.
type member struct {
	local        int            // number of connections of this process that hold the key
	joined, left []byte         // messages of the latest Join here; left also of one in another process
	holders      []peers.Sender // processes that hold the key: 0 in a hub that is not shared
}

// A hold is a key that a connection holds.
type hold struct {
	log    *log
	key    string
	member *member
}

// Join makes the connection hold a key of a keyed topic, such as the name of its user, and puts the message joined, as Put does.
// When the last connection that holds the key leaves or is closed for any reason, the key is deleted with the message left. So a
// subscriber of the topic first gets the present members, and then each change. The connection need not be a subscriber.
//
// The message of a member is not dropped. If the messages of members fill the log, the error is ErrFull. A connection has at most
// 64 memberships.
func (t Topic) Join(c *websocket.Conn, key string, joined, left []byte) error {
	f, err := t.hub.feedOf(c)
	if err != nil {
		return err
	}
	return f.join(t.name, key, joined, left)
}

// Leave ends the membership of the connection.
func (t Topic) Leave(c *websocket.Conn, key string) {
	if f, err := t.hub.feedOf(c); err == nil {
		f.leave(t.name, key)
	}
}

// Members returns the sorted keys that connections hold, in all processes that share the hub.
func (t Topic) Members() (keys []string) {
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	if l := t.hub.logs[t.name]; l != nil {
		for key, m := range l.members {
			if len(m.holders) > 0 {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

func (f *feed) join(name, key string, joined, left []byte) error {
	if key == "" {
		return errKeyed
	}
	if err := f.hub.check(name, key, [][]byte{joined, left}); err != nil {
		return err
	}
	added, err := f.hold(change{Topic: name, Key: key, Data: bytes.Clone(joined), Left: bytes.Clone(left), Member: true})
	if err == nil && f.hub.shared != nil {
		err = f.hub.flush(context.Background())
	}
	if err != nil && added {
		f.leave(name, key)
	}
	return err
}

// hold makes the connection hold a key, and reports whether it did not hold the key before. A shared hub sends the change with the next
// flush.
func (f *feed) hold(c change) (added bool, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.holding(c.Topic, c.Key)
	switch {
	case f.closed:
		return false, errClosed
	case i < 0 && len(f.holds) == maxSubscriptions:
		return false, ErrTooMany
	}
	h := f.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	l, err := h.open(c.Topic)
	switch {
	case err != nil:
		return false, err
	case h.shared == nil:
		if _, err := h.apply(l, c); err != nil {
			return false, err
		}
	case !l.fits(c, cost(c.Data)+int64(len(c.Key))):
		return false, ErrFull
	default:
		h.shared.settle(c.Topic, c.Key)
	}
	m := l.member(c.Key)
	m.joined, m.left = c.Data, c.Left
	if i >= 0 && f.holds[i].member != m { // Delete has ended the membership
		f.holds = slices.Delete(f.holds, i, i+1)
		i = -1
	}
	if i < 0 {
		m.local++
		f.holds = append(f.holds, hold{l, c.Key, m})
	}
	return i < 0, nil
}

// leave ends a membership of the connection, if there is one.
func (f *feed) leave(name, key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := f.holding(name, key); i >= 0 {
		f.holds[i].leave()
		f.holds = slices.Delete(f.holds, i, i+1)
	}
}

// holding returns the index of a hold, -1 if there is none. f.mu is held.
func (f *feed) holding(name, key string) int {
	return slices.IndexFunc(f.holds, func(h hold) bool { return h.log.name == name && h.key == key })
}

// leave ends a hold. feed.mu is held.
func (h hold) leave() {
	hub, l, m := h.log.hub, h.log, h.member
	hub.mu.Lock()
	defer hub.mu.Unlock()
	m.local--
	switch {
	case m.local > 0 || l.members[h.key] != m: // in the second case Delete has ended the membership
	case hub.shared != nil:
		hub.shared.settle(l.name, h.key)
	default:
		hub.follow(l, change{Topic: l.name, Key: h.key, Data: m.left, Gone: true, Member: true})
	}
}

// member returns the member of a key, which it adds if there is none. hub.mu is held.
func (l *log) member(key string) *member {
	m := l.members[key]
	if m == nil {
		m = new(member)
		if l.members == nil {
			l.members = map[string]*member{}
		}
		l.members[key] = m
	}
	return m
}

// enroll records that a process holds a key. hub.mu is held.
func (l *log) enroll(key string, holder peers.Sender, left []byte) {
	m := l.member(key)
	m.left = left
	if !slices.Contains(m.holders, holder) {
		m.holders = append(m.holders, holder)
	}
}

// release records that a process no longer holds a key, and reports whether it was the last one. hub.mu is held.
func (l *log) release(key string, holder peers.Sender) (last bool) {
	m := l.members[key]
	if m == nil {
		return false
	}
	i := slices.Index(m.holders, holder)
	if i >= 0 {
		m.holders = slices.Delete(m.holders, i, i+1)
	}
	if len(m.holders) == 0 && m.local == 0 {
		delete(l.members, key)
	}
	return i >= 0 && len(m.holders) == 0
}

// live returns the entry of a key, nil if there is none or the key is deleted. hub.mu is held.
func (l *log) live(key string) *entry {
	if e := l.keys[key]; e != nil && !e.gone {
		return e
	}
	return nil
}

// apply applies a change, and reports whether the subscribers get its message. hub.mu is held.
func (h *Hub) apply(l *log, c change) (added bool, err error) {
	switch {
	case c.Gone && c.Member && (!l.release(c.Key, c.Holder) || l.live(c.Key) == nil):
		return false, nil
	case c.Gone && !c.Member:
		delete(l.members, c.Key)
	}
	if err := h.append(l, c, [][]byte{c.Data}); err != nil {
		return false, err
	}
	switch m := l.members[c.Key]; {
	case c.Gone:
	case c.Member:
		l.enroll(c.Key, c.Holder, c.Left)
	case m != nil:
		m.joined = bytes.Clone(c.Data)
	}
	return true, nil
}

// follow applies a change that must not fail. If there is no memory for its message, the key is removed, and the subscribers have
// missed a message. hub.mu is held.
func (h *Hub) follow(l *log, c change) (added bool) {
	added, err := h.apply(l, c)
	if err != nil {
		l.discard(c.Key)
		h.skip(l)
	}
	return added
}

// skip records that all subscribers of a log have missed a message. hub.mu is held.
func (h *Hub) skip(l *log) {
	offset := h.visible.Load() + 1
	h.visible.Store(offset)
	l.lose(offset)
}

// discard removes a key without a message to the subscribers. hub.mu is held.
func (l *log) discard(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.keys[key]; e != nil {
		delete(l.keys, key)
		l.forget(e)
	}
}

// fits reports whether the log has room for a message of a cost in addition to the messages of its members. hub.mu is held.
func (l *log) fits(c change, cost int64) bool {
	if c.Gone || !c.Member && len(l.members) == 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	count := 1
	for key := range l.members {
		if e := l.keys[key]; e != nil && key != c.Key {
			cost += e.cost
			count++
		}
	}
	return count <= l.set.MaxMessages && cost <= int64(l.set.MaxBytes)
}
