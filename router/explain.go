package router

import "fmt"

// Explain tells in words how the router comes to its answer, one step a line.
func (r *Router[T]) Explain(method, host, path, accept string) string {
	var m Match[T]
	outcome := r.LookupAccept(method, host, path, accept, &m)
	return fmt.Sprintf("%s %s%s: %s\n", method, host, path, outcome)
}
