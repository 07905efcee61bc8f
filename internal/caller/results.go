package caller

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Results records the results of calls that have no other effect, such as a group with a limit. An unused result is a mistake of
// the caller. Safe for concurrent use.
type Results struct {
	mu  sync.Mutex
	all []*Result
}

// A Result is the record of one call. It is safe for concurrent use. The methods of a nil Result do nothing.
type Result struct {
	call  string
	place Place
	used  atomic.Bool
}

// New records the result of a call. call is the name of the called function.
func (r *Results) New(call string) *Result {
	result := &Result{call: call}
	result.place.n = runtime.Callers(3, result.place.pcs[:])
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, result)
	return result
}

// Use marks the result as used.
func (r *Result) Use() {
	if r != nil {
		r.used.Store(true)
	}
}

// Unused calls report for each unused result and removes all records.
func (r *Results) Unused(report func(call string, at *Place)) {
	r.mu.Lock()
	all := r.all
	r.all = nil
	r.mu.Unlock()
	for _, result := range all {
		if !result.used.Load() {
			report(result.call, &result.place)
		}
	}
}
