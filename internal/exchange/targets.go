package exchange

import (
	"hash/maphash"
	"sync/atomic"
)

// Targets remembers which requests of a route had large answers: the clients left much of them, when they were asked for
// last. It knows the last few, by their paths and queries, and takes one in some ten millions for another. The zero
// value is ready, and small. It is safe for concurrent use.
type Targets struct {
	marks atomic.Pointer[[mostTargets]atomic.Uint32]
}

// mostTargets is how many a route remembers at the most, a power of two.
const mostTargets = 64

// A Target is a path and query; 0 is none.
type Target uint32

var targetSeed = maphash.MakeSeed()

// Target returns that of the request.
func (s *State) Target() Target {
	var h maphash.Hash
	h.SetSeed(targetSeed)
	h.WriteString(s.Path)
	h.WriteByte('?')
	h.WriteString(s.Query)
	return max(Target(h.Sum64()), 1)
}

// Large reports whether the target's latest answer is remembered to have been large.
func (m *Targets) Large(t Target) bool {
	marks := m.marks.Load()
	return marks != nil && marks[t%mostTargets].Load() == uint32(t)
}

// Note notes whether the target's latest answer was large.
func (m *Targets) Note(t Target, large bool) {
	marks := m.marks.Load()
	switch {
	case large && marks == nil:
		m.marks.CompareAndSwap(nil, new([mostTargets]atomic.Uint32))
		m.marks.Load()[t%mostTargets].Store(uint32(t))
	case large:
		marks[t%mostTargets].Store(uint32(t))
	case marks != nil:
		marks[t%mostTargets].CompareAndSwap(uint32(t), 0)
	}
}
