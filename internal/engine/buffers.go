//go:build linux

package engine

import (
	"sync"

	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// A buffer is a pooled piece of memory for what a connection has to keep:
// input not consumed yet, or output not sent yet. 0 ≤ len(b) ≤ cap(b).
type buffer struct{ b []byte }

// classSizes are the capacities of pooled buffers in bytes: most partial requests
// fit the first, the last is the usual read buffer and an output chunk.
var classSizes = [...]int{512, 4 << 10, 16 << 10, 64 << 10}

// classBytes bounds what a class keeps for later, so that a burst of slow
// clients does not pin its memory for ever.
const classBytes = 2 << 20

// bufferPool is a last-in, first-out list for every class. Buffers are needed only
// off the hot path, so one lock serves all loops.
type bufferPool struct {
	mu   sync.Mutex
	free [len(classSizes)][]*buffer
}

// get returns an empty buffer with room for n bytes, pooled if n is at most the
// largest class.
func (p *bufferPool) get(n int) *buffer {
	for i, size := range classSizes {
		if n > size {
			continue
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if last := len(p.free[i]) - 1; last >= 0 {
			b := p.free[i][last]
			p.free[i][last] = nil
			p.free[i] = p.free[i][:last]
			return b
		}
		return &buffer{b: make([]byte, 0, size)}
	}
	return &buffer{b: make([]byte, 0, n)}
}

// copyOf returns a buffer holding a copy of b.
func (p *bufferPool) copyOf(b []byte) *buffer {
	buf := p.get(len(b))
	buf.b = append(buf.b, b...)
	return buf
}

// put takes a buffer back. Nobody may use it or its bytes any more.
func (p *bufferPool) put(buf *buffer) {
	if buf == nil {
		return
	}
	invariants.EndLoan(buf.b[:cap(buf.b)])
	buf.b = buf.b[:0]
	for i, size := range classSizes {
		if cap(buf.b) != size {
			continue
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.free[i]) < classBytes/size {
			p.free[i] = append(p.free[i], buf)
		}
		return
	}
}
