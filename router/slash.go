package router

import "strings"

// OtherSlash reports whether a path that was not found would match with its trailing slash removed, or with one added. It
// considers the same routes as Lookup. m is overwritten.
func (r *Router[T]) OtherSlash(method, host, path string, m *Match[T]) bool {
	if path == "" || path == "/" {
		return false
	}
	other, had := strings.CutSuffix(path, "/")
	if !had {
		// Constraints use the other buffers during the lookup.
		longer := &m.state.memory().path
		*longer = append(append((*longer)[:0], path...), '/')
		other = view(*longer)
	}
	return r.Lookup(method, host, other, m) != OutcomeNotFound
}
