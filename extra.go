package dunlin

import (
	"errors"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// An extra holds what a Response value cannot: headers of its own, the buffer
// its body was encoded into, the cause of a failure. It is pooled, and yet
// Response keeps the semantics of a value. How:
//
//	r1 := dunlin.JSON(v)        // x generation 4, 0 fields   r1.ver = 4|0
//	r2 := r1.Header("A", "1")   // x generation 4, 1 field    r2.ver = 4|1, same x
//	r3 := r1.Header("B", "2")   // r1 sees 4|1, not 4|0: r3 gets a copy of x with B alone
//
// The fields are an append-only list. The response that has seen all of it may
// add to it, and claims the next slot by compare-and-swap; any other copies
// what it has seen. Sending a response claims the whole extra by moving to the
// next generation: whoever holds an older one has kept a response that is
// gone, and is told so instead of reading another request's bytes.
type extra struct {
	state  atomic.Uint64 // a version: the generation and the number of fields claimed
	fields []field       // len is fixed while the extra is in use
	buf    []byte        // what the body was encoded into
	err    error
	stream producer // carries out a kindStream
	used   int      // fields to clear on release, while the engine owns buf
}

// field is one entry of an extra: a single header or a whole block.
type field struct {
	name, value string
	block       *HeaderBlock // non-nil: a block, and name and value are empty
	replace     bool         // earlier headers of the same names are dropped
}

// version is a generation and, in its low byte, a number of fields.
type version uint64

const generationStep = 1 << 8

func (v version) fields() int               { return int(v & (generationStep - 1)) }
func (v version) sameAs(other version) bool { return v/generationStep == other/generationStep }
func (v version) next() version             { return (v/generationStep + 1) * generationStep }

const (
	// inlineFields is how many headers a pooled extra has room for: a response
	// with more of its own copies them into a larger one, once.
	inlineFields = 12
	maxFields    = generationStep - 1

	// keptBuffer is the largest body buffer, in bytes, that the pool keeps; the
	// 100 KB answers of ordinary lists fit, a rare giant does not stay for good.
	keptBuffer = 1 << 20
)

var extras = sync.Pool{New: func() any { return &extra{fields: make([]field, inlineFields)} }}

func newExtra() *extra { return extras.Get().(*extra) }

func (x *extra) version() version { return version(x.state.Load()) }

// release gives an extra back to the pool: one that was claimed, of which n
// fields were used, or one that no Response has seen yet.
func (x *extra) release(n int) {
	if len(x.fields) > inlineFields {
		x.fields = make([]field, inlineFields)
	} else {
		clear(x.fields[:n])
	}
	if cap(x.buf) > keptBuffer {
		x.buf = nil
	}
	x.err, x.stream = nil, nil
	extras.Put(x)
}

var (
	errStale      = errors.New("response used again after it was sent: one that owns memory (JSON, Problem, own headers) can be returned only once")
	errManyFields = errors.New("response with more than " + strconv.Itoa(maxFields) + " headers of its own")
	errNoResponse = errors.New("action returned the zero Response, which says nothing")
)

// claimSlot makes room for one more of the response's own fields, for setSlot;
// false when the fields must be copied first, because another value has gone on
// from the same point or there is no more room.
func (r *Response) claimSlot() bool {
	if r.x == nil {
		r.x = newExtra()
		r.ver = r.x.version()
		r.x.state.Store(uint64(r.ver) + 1)
		return true
	}
	return r.ver.fields() < len(r.x.fields) && r.x.state.CompareAndSwap(uint64(r.ver), uint64(r.ver)+1)
}

// setSlot fills the slot that was claimed.
func (r *Response) setSlot(name, value string, replace bool) {
	f := &r.x.fields[r.ver.fields()]
	f.name, f.value, f.replace = name, value, replace
	r.ver++
}

// push appends f to the response's own fields, copying them first when they
// cannot be appended to.
func (r Response) push(f field) Response {
	if !r.claimSlot() {
		if r.ver.fields() == maxFields {
			return r.fail(errManyFields)
		}
		branch, ok := r.branch()
		if !ok {
			return Response{}.fail(errStale)
		}
		r = branch
		r.x.state.Store(uint64(r.ver) + 1)
	}
	r.x.fields[r.ver.fields()] = f
	r.ver++
	return r
}

// branch returns the response on an extra of its own, with room for another
// field; false when the response is gone.
func (r Response) branch() (Response, bool) {
	n := r.ver.fields()
	if !r.x.version().sameAs(r.ver) {
		return Response{}, false
	}
	x := newExtra()
	if n >= len(x.fields) {
		x.fields = make([]field, min(2*n, maxFields))
	}
	copy(x.fields, r.x.fields[:n])
	x.err, x.stream = r.x.err, r.x.stream
	if r.ownsBody() {
		x.buf = append(x.buf[:0], r.body...)
		r.body = viewString(x.buf)
	}
	if !r.x.version().sameAs(r.ver) {
		return Response{}, false // it was sent while we copied
	}
	r.x, r.ver = x, x.version()+version(n)
	return r, true
}

// ownsBody reports whether the body views the extra's buffer.
func (r Response) ownsBody() bool {
	return r.x != nil && r.body != "" && len(r.x.buf) >= len(r.body) && &viewBytes(r.body)[0] == &r.x.buf[0]
}

// claim takes the response's extra for the sender, who must release it. It is
// false when the response was sent before.
func (r *Response) claim() bool {
	for {
		now := r.x.version()
		if !now.sameAs(r.ver) {
			return false
		}
		if r.x.state.CompareAndSwap(uint64(now), uint64(now.next())) {
			return true
		}
	}
}

// own returns the fields that this value has seen.
func (r *Response) own() []field {
	if r.x == nil {
		return nil
	}
	return r.x.fields[:r.ver.fields()]
}

// replaced reports whether one of the fields after the first `from` replaces
// the named header.
func (r *Response) replaced(name string, from int) bool {
	own := r.own()
	for i := from; i < len(own); i++ {
		f := &own[i]
		switch {
		case f.block != nil:
			if f.block.has(name) {
				return true
			}
		case f.replace && strings.EqualFold(f.name, name):
			return true
		}
	}
	return false
}

// headers calls yield with each header that will be sent, in order, one value
// at a time; names are canonical.
func (r *Response) headers(yield func(name, value string) bool) {
	if !r.blockHeaders(r.base, 0, yield) {
		return
	}
	for i, f := range r.own() {
		if f.block != nil {
			if !r.blockHeaders(f.block, i+1, yield) {
				return
			}
		} else if !r.replaced(f.name, i+1) && !yield(f.name, f.value) {
			return
		}
	}
}

// blockHeaders yields what of a block is not replaced by the fields from `from`
// on.
func (r *Response) blockHeaders(b *HeaderBlock, from int, yield func(name, value string) bool) bool {
	if b == nil {
		return true
	}
	for i := range b.fields {
		f := &b.fields[i]
		if r.replaced(f.name, from) {
			continue
		}
		for _, v := range f.values {
			if !yield(f.name, v) {
				return false
			}
		}
	}
	return true
}

// headerValues yields the values that the named header will have.
func (r Response) headerValues(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for n, v := range r.headers {
			if strings.EqualFold(n, name) && !yield(v) {
				return
			}
		}
	}
}

// Values returns every value the named header will have.
func (r Response) Values(name string) []string {
	var all []string
	for v := range r.headerValues(name) {
		all = append(all, v)
	}
	return all
}

// fail returns the response that reports err: a 500 whose cause is logged.
func (r Response) fail(err error) Response {
	if r.failed {
		return r // the first failure is the one to read
	}
	// Not Error: a problem within err is what went wrong, not what to answer.
	failure := Problem(ProblemDetails{Status: http.StatusInternalServerError, Cause: err})
	failure.failed = true
	return failure
}
