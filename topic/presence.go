package topic

import (
	"maps"
	"slices"

	"github.com/dunlinhttp/dunlin/websocket"
)

// A member is a key of a keyed topic that at least one connection holds.
type member struct {
	holders int
	left    []byte // the message that deletes the key
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

// Members returns the sorted keys that connections hold.
func (t Topic) Members() []string {
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	l := t.hub.logs[t.name]
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.members))
}

func (f *feed) join(name, key string, joined, left []byte) error {
	c := change{key: key}
	if key == "" {
		return errKeyed
	}
	if err := f.hub.check(name, c, [][]byte{joined, left}); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.holding(name, key)
	switch {
	case f.closed:
		return errClosed
	case i < 0 && len(f.holds) == maxSubscriptions:
		return ErrTooMany
	}
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	l, err := f.hub.open(name)
	if err != nil {
		return err
	}
	if err := f.hub.append(l, change{key: key, member: true}, [][]byte{joined}); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.members[key]
	m.left = append([]byte(nil), left...)
	if i < 0 {
		m.holders++
		f.holds = append(f.holds, hold{l, key, m})
	}
	return nil
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
	hub, l := h.log.hub, h.log
	hub.mu.Lock()
	defer hub.mu.Unlock()
	if !l.release(h) {
		return
	}
	if hub.append(l, change{key: h.key, gone: true}, [][]byte{h.member.left}) != nil {
		l.discard(h.key)
		offset := hub.visible.Load() + 1
		hub.visible.Store(offset)
		l.lose(offset)
	}
}

// release removes a hold. It reports whether this was the last hold of the key, and the key was not deleted before. hub.mu is held.
func (l *log) release(h hold) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.member.holders--; h.member.holders > 0 || l.members[h.key] != h.member {
		return false
	}
	delete(l.members, h.key)
	return true
}

// discard removes a key without a message to the subscribers.
func (l *log) discard(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.keys[key]; e != nil {
		delete(l.keys, key)
		l.forget(e)
	}
}

// fits reports whether the log has room for a message of a cost in addition to the messages of its members. l.mu is held.
func (l *log) fits(c change, cost int64) bool {
	if c.gone || !c.member && len(l.members) == 0 {
		return true
	}
	count := 1
	for key := range l.members {
		if key != c.key {
			cost += l.keys[key].cost
			count++
		}
	}
	return count <= l.set.MaxMessages && cost <= int64(l.set.MaxBytes)
}

// enroll applies a change to the members: it adds or removes the key. l.mu is held.
func (l *log) enroll(c change) {
	switch {
	case c.gone:
		delete(l.members, c.key)
	case c.member && l.members[c.key] == nil:
		if l.members == nil {
			l.members = map[string]*member{}
		}
		l.members[c.key] = new(member)
	}
}
