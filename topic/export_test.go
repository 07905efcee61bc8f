package topic

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
