package topic

import "strings"

// isWild reports whether a name is a wildcard.
func isWild(name string) bool { return name == "*" || strings.HasSuffix(name, "/*") }

// openWild makes a new log the log of a wildcard: it has no keys, and no message published before. h.mu is held.
func (h *Hub) openWild(l *log) {
	set := *l.set
	set.Keyed = false
	l.set, l.floor = &set, h.visible.Load()
	h.wild++
}

// matching returns the logs of the wildcards that match a topic. It drops idle ones. h.mu is held.
func (h *Hub) matching(name string) (logs []*log) {
	if h.wild == 0 {
		return nil
	}
	for end := 0; end >= 0; {
		if l := h.logs[name[:end]+"*"]; l != nil {
			if h.closeIdle(l); h.logs[l.name] == l {
				logs = append(logs, l)
			}
		}
		next := strings.IndexByte(name[end:], '/')
		if next < 0 {
			break
		}
		end += next + 1
	}
	return logs
}
