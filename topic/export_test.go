package topic

import "strings"

// CaughtUp reports whether the newest message of a topic was passed to the connections of all subscribers.
func CaughtUp(h *Hub, name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.logs[name]
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.audiences {
		for _, s := range g.subs {
			if s.at.Load() < l.newest.Load() {
				return false
			}
		}
	}
	return true
}

// Hold opens a connection without network that holds a key, and returns a function that closes it.
func Hold(t Topic, key, joined, left string) (leave func(), err error) {
	f := &feed{hub: t.hub, client: new(fakeClient), as: asFrame}
	return f.Close, f.join(t.name, key, []byte(joined), []byte(left))
}

// Follow subscribes a client without network. next returns the ID and the data of its next message, "at" for a position, and "resync"
// for a loss. ok is false if there is none.
func Follow(t Topic, last string) (next func() (id, data string, ok bool), _ error) {
	f := &feed{hub: t.hub, client: new(fakeClient), as: asFrame}
	var input []byte
	next = func() (id, data string, ok bool) {
		if len(input) == 0 {
			input, _ = f.Append(nil)
			f.Unsent(0)
		}
		if len(input) == 0 {
			return "", "", false
		}
		end := 2 + int(input[1]) // all frames are short
		head, data, isMessage := strings.Cut(string(input[2:end]), "\n")
		input = input[end:]
		first, second, _ := strings.Cut(head, " ")
		if isMessage {
			return first, data, true
		}
		return second, first[1:], true
	}
	return next, f.subscribe(last, []string{t.name})
}
