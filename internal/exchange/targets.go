package exchange

import (
	"hash/maphash"
	"sync/atomic"
)

// Targets remembers which requests of a route had large answers: at their last request, clients left much output pending. It
// stores the most recent few, by path and query, and confuses two of them once in some ten million. The zero value is ready,
// and small. It is safe for concurrent use.
type Targets struct {
	marks atomic.Pointer[[mostTargets]atomic.Uint32]
}

// mostTargets is the maximum number of remembered targets of a route, a power of two.
const mostTargets = 64

// A Target identifies a path and query; 0 is none.
type Target uint32

var targetSeed = maphash.MakeSeed()

// Target returns the target of the request.
func (s *State) Target() Target {
	var h maphash.Hash
	h.SetSeed(targetSeed)
	h.WriteString(s.Path)
	h.WriteByte('?')
	h.WriteString(s.Query)
	return max(Target(h.Sum64()), 1)
}

// Large reports whether the target's latest answer was large, as far as remembered.
func (m *Targets) Large(t Target) bool {
	marks := m.marks.Load()
	return marks != nil && marks[t%mostTargets].Load() == uint32(t)
}

// Note records whether the target's latest answer was large.
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
