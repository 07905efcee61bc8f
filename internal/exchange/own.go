package exchange

import (
	"sync"
	"sync/atomic"
)

// An Own holds what an Answer's few words cannot: headers of its own, the buffer
// its body was encoded into, the cause of a failure. It is pooled, and yet
// the answer keeps the semantics of a value. How, seen from an action:
//
//	r1 := dunlin.JSON(v)        // x generation 4, 0 fields   r1 has version 4|0
//	r2 := r1.Header("A", "1")   // x generation 4, 1 field    r2 has version 4|1, same x
//	r3 := r1.Header("B", "2")   // r1 sees 4|1, not 4|0: r3 gets a copy of x with B alone
//
// The fields are an append-only list. The answer that has seen all of it may
// add to it, and claims the next slot by compare-and-swap; any other copies
// what it has seen. Sending an answer claims the whole by moving to the
// next generation: whoever holds an older one has kept an answer that is
// gone, and is told so instead of reading another request's bytes.
type Own struct {
	anchor
	state  atomic.Uint64 // a version: the generation and the number of fields claimed
	fields []Field       // len is fixed while this is in use
	length int64         // of the body that an answer to HEAD leaves out, or NoLength
	used   int           // fields to clear on release, while an adapter owns Buf
	number Number        // that the block has a place for

	inline [inlineFields]Field // where fields are, mostly

	Buf   []byte // what the body was encoded into
	Err   error  // the cause of a failure, for the log
	Make  any    // the pipeline's function that makes a Later answer when it is sent
	Lasts bool   // ... which takes as long as the client likes

	problem any // see Answer.Problem
}

// A Field is one of an answer's own header fields, or a whole block of them.
type Field struct {
	Name, Value string
	Block       *Block // non-nil: a block, and Name and Value are empty
	Replace     bool   // earlier fields of the same names are dropped

	names  nameMask // of Name or the Block; set by who appends it
	number Number   // that the Block has a place for
}

// version is a generation and, in its low byte, a number of fields.
type version uint64

const generationStep = 1 << 8

func (v version) fields() int               { return int(v & (generationStep - 1)) }
func (v version) sameAs(other version) bool { return v/generationStep == other/generationStep }
func (v version) next() version             { return (v/generationStep + 1) * generationStep & versionMask }

const (
	// inlineFields is how many fields a pooled Own has room for: an answer
	// with more of its own copies them into a larger one, once.
	inlineFields = 12
	maxFields    = generationStep - 1

	// keptBuffer is the largest body buffer, in bytes, that the pool keeps; the
	// 100 KB answers of ordinary lists fit, a rare giant does not stay for good.
	keptBuffer = 1 << 20
)

var owns = sync.Pool{New: func() any {
	x := new(Own)
	x.x, x.fields = x, x.inline[:]
	return x
}}

// NewOwn returns one from the pool that goes with a block, which may be nil.
func NewOwn(block *Block) *Own {
	x := owns.Get().(*Own)
	if x.block.Load() != block { // a store costs a fence, and most extras do the same work again
		x.block.Store(block)
	}
	return x
}

func (x *Own) version() version { return version(x.state.Load()) }

// release gives x back to the pool: one that was claimed, of which n fields were used,
// or one that no answer has seen yet.
func (x *Own) release(n int) {
	if len(x.fields) > inlineFields {
		x.fields = x.inline[:]
	} else {
		for i := range n {
			f := &x.fields[i] // names and how they replace are set with the next
			f.Name, f.Value, f.Block = "", "", nil
		}
	}
	if cap(x.Buf) > keptBuffer {
		x.Buf = nil
	}
	if x.text != "" {
		x.text = ""
	}
	x.Err, x.Make, x.Lasts, x.problem = nil, nil, false, nil
	owns.Put(x)
}

// Free gives x back to the pool, which no answer has seen yet.
func (x *Own) Free() { x.release(0) }

// Release gives x back when the body in Buf has been sent, see Answer.Lend.
func (x *Own) Release() { x.release(x.used) }
