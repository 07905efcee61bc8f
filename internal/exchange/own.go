package exchange

import (
	"sync"
	"sync/atomic"
)

// An Own has the parts of an Answer that do not fit into its few words: headers, the buffer with the encoded body, the cause of a
// failure. Owns are pooled, and yet an Answer has the semantics of a value. An example:
//
//	r1 := dunlin.JSON(v)        // x generation 4, 0 fields   r1 has version 4|0
//	r2 := r1.Header("A", "1")   // x generation 4, 1 field    r2 has version 4|1, same x
//	r3 := r1.Header("B", "2")   // x has version 4|1, but r1 has 4|0: r3 gets a copy of x with only B
//
// The fields are an append-only list. An answer that has seen all fields may append one: it claims the next slot by
// compare-and-swap. Any other answer copies the fields it has seen. To send an answer, the sender claims the Own by advancing its
// generation. A later use of an older answer then fails instead of reading the bytes of another request.
type Own struct {
	anchor
	state  atomic.Uint64 // a version: the generation and the number of fields claimed
	fields []Field       // the length is fixed during use
	length int64         // the length in bytes of the body that an answer to HEAD omits, or NoLength
	used   int           // number of fields to clear on release, while an adapter owns Buf
	number Number        // the identifier for the place in the block

	inline [inlineFields]Field // the usual storage of fields

	Buf   []byte   // the buffer of the encoded body
	Err   error    // the cause of a failure, for the log
	Make  Producer // of a Later answer
	Lasts bool     // Make may run as long as the client stays connected

	problem error // see Answer.Problem
}

// A Producer produces a Later answer while it is sent: after the action has returned, on the goroutine of the action or on
// another one.
type Producer interface {
	// Produce sends planned, which is claimed, and returns an answer of the kind Sent. Or it returns the answer to send instead
	// of planned.
	Produce(c Call, planned *Answer) Answer
}

// A Field is one of an answer's own header fields, or an entire block.
type Field struct {
	Name, Value string
	Block       *Block // if set, Name and Value are empty
	Replace     bool   // it replaces earlier fields of the same names

	names  nameMask // of Name or Block; set when appended
	number Number   // the identifier for the place in Block
}

// version is a generation and, in its low byte, a number of fields.
type version uint64

const generationStep = 1 << 8

func (v version) fields() int               { return int(v & (generationStep - 1)) }
func (v version) sameAs(other version) bool { return v/generationStep == other/generationStep }
func (v version) next() version             { return (v/generationStep + 1) * generationStep & versionMask }

const (
	// inlineFields is the number of fields for which a pooled Own has room. For an answer with more fields, they are copied once
	// into a larger slice.
	inlineFields = 12
	maxFields    = generationStep - 1

	// keptBuffer is the capacity, in bytes, of the largest body buffer that the pool keeps. The 100 KB answers of ordinary
	// lists fit; rare larger ones are left to the garbage collector.
	keptBuffer = 1 << 20
)

var owns = sync.Pool{New: func() any {
	x := new(Own)
	x.x, x.fields = x, x.inline[:]
	return x
}}

// NewOwn returns an Own from the pool, based on block, which may be nil.
func NewOwn(block *Block) *Own {
	x := owns.Get().(*Own)
	if x.block.Load() != block { // avoids a store, which is slow, since most Owns are reused with the same block
		x.block.Store(block)
	}
	return x
}

func (x *Own) version() version { return version(x.state.Load()) }

// release returns x to the pool. x must be claimed, or no answer may have used it yet. n is the number of used fields.
func (x *Own) release(n int) {
	if len(x.fields) > inlineFields {
		x.fields = x.inline[:]
	} else {
		for i := range n {
			f := &x.fields[i] // names and Replace are overwritten at the next use
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

// Free returns an unused x to the pool.
func (x *Own) Free() { x.release(0) }

// Release returns x to the pool after the body in Buf was sent, see Answer.Lend.
func (x *Own) Release() { x.release(x.used) }
