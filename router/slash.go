package router

import "strings"

// OtherSlash reports whether a path that was not found would match with its trailing slash removed or with a slash added.
// It considers the same routes as Lookup. It overwrites m.
func (r *Router[T]) OtherSlash(method, host, path string, m *Match[T]) bool {
	if path == "" || path == "/" {
		return false
	}
	other, had := strings.CutSuffix(path, "/")
	if !had {
		// The lookup uses the other buffers of memory for constraints and hosts.
		longer := &m.state.memory().path
		*longer = append(append((*longer)[:0], path...), '/')
		other = view(*longer)
	}
	return r.Lookup(method, host, other, m) != OutcomeNotFound
}
