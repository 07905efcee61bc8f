package caller

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Results remembers what calls have returned that do nothing but return something, such as a group with a limit: who
// leaves that lie has called in vain. It is safe for concurrent use.
type Results struct {
	mu  sync.Mutex
	all []*Result
}

// A Result is what such a call has returned. It is safe for concurrent use; nil is one that is not remembered.
type Result struct {
	call  string
	place Place
	used  atomic.Bool
}

// New remembers the result of a call, which its function makes.
func (r *Results) New(call string) *Result {
	result := &Result{call: call}
	result.place.n = runtime.Callers(3, result.place.pcs[:])
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, result)
	return result
}

// Use notes that something was done with the result.
func (r *Result) Use() {
	if r != nil {
		r.used.Store(true)
	}
}

// Unused tells of the results with which nothing was done, and forgets them all.
func (r *Results) Unused(tell func(call string, at *Place)) {
	r.mu.Lock()
	all := r.all
	r.all = nil
	r.mu.Unlock()
	for _, result := range all {
		if !result.used.Load() {
			tell(result.call, &result.place)
		}
	}
}
