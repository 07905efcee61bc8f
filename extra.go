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
//	r1 := dunlin.JSON(v)        // x generation 4, 0 fields   r1 has version 4|0
//	r2 := r1.Header("A", "1")   // x generation 4, 1 field    r2 has version 4|1, same x
//	r3 := r1.Header("B", "2")   // r1 sees 4|1, not 4|0: r3 gets a copy of x with B alone
//
// The fields are an append-only list. The response that has seen all of it may
// add to it, and claims the next slot by compare-and-swap; any other copies
// what it has seen. Sending a response claims the whole extra by moving to the
// next generation: whoever holds an older one has kept a response that is
// gone, and is told so instead of reading another request's bytes.
type extra struct {
	anchor
	state  atomic.Uint64 // a version: the generation and the number of fields claimed
	fields []field       // len is fixed while the extra is in use
	buf    []byte        // what the body was encoded into
	err    error
	stream producer // carries out a kindStream
	lasts  bool     // ... which takes as long as the client likes
	length int64    // of the body that an answer to HEAD leaves out, or noLength
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
func (v version) next() version             { return (v/generationStep + 1) * generationStep & versionMask }

const (
	// inlineFields is how many headers a pooled extra has room for: a response
	// with more of its own copies them into a larger one, once.
	inlineFields = 12
	maxFields    = generationStep - 1

	// keptBuffer is the largest body buffer, in bytes, that the pool keeps; the
	// 100 KB answers of ordinary lists fit, a rare giant does not stay for good.
	keptBuffer = 1 << 20
)

var extras = sync.Pool{New: func() any {
	x := &extra{fields: make([]field, inlineFields)}
	x.x = x
	return x
}}

// newExtra returns an extra that goes with a block, which may be nil.
func newExtra(block *HeaderBlock) *extra {
	x := extras.Get().(*extra)
	if x.block.Load() != block { // a store costs a fence, and most extras do the same work again
		x.block.Store(block)
	}
	return x
}

// response returns what is said with the extra so far.
func (x *extra) response(status int, body string) Response {
	r := Response{body: body, on: &x.anchor, meta: metaOf(status, kindBody)}
	r.meta.setVersion(x.version())
	return r
}

// own gives the response an extra, if it has none.
func (r *Response) own() *extra {
	if x := r.extra(); x != nil {
		return x
	}
	x := newExtra(r.base())
	r.on = &x.anchor
	r.meta.setVersion(x.version())
	return x
}

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
	x.err, x.stream, x.lasts = nil, nil, false
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
	x := r.extra()
	if x == nil {
		x = r.own()
		x.state.Store(uint64(r.meta.version()) + 1)
		return true
	}
	now := r.meta.version()
	return now.fields() < len(x.fields) && x.state.CompareAndSwap(uint64(now), uint64(now)+1)
}

// setSlot fills the slot that was claimed.
func (r *Response) setSlot(name, value string, replace bool) {
	f := &r.on.x.fields[r.meta.fields()]
	f.name, f.value, f.replace = name, value, replace
	r.meta += 1 << versionAt
}

// push appends f to the response's own fields, copying them first when they
// cannot be appended to.
func (r Response) push(f field) Response {
	if !r.claimSlot() {
		if r.meta.fields() == maxFields {
			return r.fail(errManyFields)
		}
		branch, ok := r.branch()
		if !ok {
			return Response{}.fail(errStale)
		}
		r = branch
		r.on.x.state.Store(uint64(r.meta.version()) + 1)
	}
	r.on.x.fields[r.meta.fields()] = f
	r.meta += 1 << versionAt
	return r
}

// branch returns the response on an extra of its own, with room for another
// field; false when the response is gone.
func (r Response) branch() (Response, bool) {
	from, n := r.on.x, r.meta.fields()
	if !from.version().sameAs(r.meta.version()) {
		return Response{}, false
	}
	x := newExtra(r.base())
	if n >= len(x.fields) {
		x.fields = make([]field, min(2*n, maxFields))
	}
	copy(x.fields, from.fields[:n])
	x.err, x.stream, x.lasts, x.length = from.err, from.stream, from.lasts, from.length
	if r.ownsBody() {
		x.buf = append(x.buf[:0], r.body...)
		r.body = viewString(x.buf)
	}
	if !from.version().sameAs(r.meta.version()) {
		return Response{}, false // it was sent while we copied
	}
	r.on = &x.anchor
	r.meta.setVersion(x.version() + version(n))
	return r, true
}

// ownsBody reports whether the body views the extra's buffer.
func (r Response) ownsBody() bool {
	x := r.extra()
	return x != nil && r.body != "" && len(x.buf) >= len(r.body) && &viewBytes(r.body)[0] == &x.buf[0]
}

// claim takes the response's extra for the sender, who must release it. It is
// false when the response was sent before.
func (r *Response) claim() bool {
	for {
		now := r.on.x.version()
		if !now.sameAs(r.meta.version()) {
			return false
		}
		if r.on.x.state.CompareAndSwap(uint64(now), uint64(now.next())) {
			return true
		}
	}
}

// fields returns the fields that this value has seen.
func (r *Response) fields() []field {
	if x := r.extra(); x != nil {
		return x.fields[:r.meta.fields()]
	}
	return nil
}

// replaced reports whether one of the fields after the first `from` replaces
// the named header.
func (r *Response) replaced(name string, from int) bool {
	own := r.fields()
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
	if !r.blockHeaders(r.base(), 0, yield) {
		return
	}
	for i, f := range r.fields() {
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
	if r.meta.failed() {
		return r // the first failure is the one to read
	}
	// Not Error: a problem within err is what went wrong, not what to answer.
	failure := Problem(ProblemDetails{Status: http.StatusInternalServerError, Cause: err})
	failure.meta |= metaFailed
	return failure
}
