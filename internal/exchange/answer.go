package exchange

import (
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/view"
)

// An Answer is what an action returned, as the pipeline hands it to an adapter: status,
// headers and body, complete before its first byte is sent. It is a value of four words
// in three fields: a larger one the compiler would pass through memory at every call,
// which took longer than finding the route.
type Answer struct {
	Body string  // may lie in the memory of Own
	on   *anchor // what the headers stand on; nil: there are none
	meta meta
}

// An anchor is what an Answer points to: the beginning of a Block, or of an
// Own that goes with one, or one that is there to go with a text.
type anchor struct {
	block atomic.Pointer[Block] // the constructor's headers: the media type, mostly
	x     *Own                  // what the plain fields cannot hold, or nil; constant
	text  string                // in the place that the block has for a Number, if that is not it
}

// Base returns the headers that were rendered before, which come first; nil for none.
func (r *Answer) Base() *Block {
	if r.on == nil {
		return nil
	}
	return r.on.block.Load()
}

// Own returns the answer's own memory, nil when it has none.
func (r *Answer) Own() *Own {
	if r.on == nil {
		return nil
	}
	return r.on.x
}

// Stands reports whether the answer owns nothing and says no text: it can stand on another block.
func (r *Answer) Stands() bool { return r.on == nil || r.on.x == nil && r.on.text == "" }

// Plain returns an answer that owns nothing.
func Plain(status int, block *Block, body string) Answer {
	return Answer{Body: body, on: &block.anchor, meta: metaOf(status, Complete)}
}

// Bare returns an answer of a kind without headers.
func Bare(status int, kind Kind) Answer { return Answer{meta: metaOf(status, kind)} }

// Stand puts the answer, which Stands, on another block.
func (r *Answer) Stand(block *Block) { r.on = &block.anchor }

// LetGo forgets the headers and the own memory, which has passed to somebody else.
func (r *Answer) LetGo() { r.on = nil }

// meta is what an Answer says in numbers, in one word:
//
//	version (49 bits) │ status (10) │ announces │ failed │ kind (3)
//
// The version is which part of the extra is this value's. A failed response is
// the report of a failure: its status stands. One that announces is the answer to
// HEAD, and its extra has the length of the body that it leaves out.
type meta uint64

const (
	metaKind      meta = 1<<3 - 1
	metaFailed    meta = 1 << 3
	metaAnnounces meta = 1 << 4
	statusAt           = 5
	metaStatus    meta = (1<<10 - 1) << statusAt
	versionAt          = 15
	versionMask        = 1<<(64-versionAt) - 1
)

func metaOf(status int, kind Kind) meta { return meta(status)<<statusAt | meta(kind) }

func (m meta) kind() Kind       { return Kind(m & metaKind) }
func (m meta) status() int      { return int(m & metaStatus >> statusAt) }
func (m meta) failed() bool     { return m&metaFailed != 0 }
func (m meta) version() version { return version(m >> versionAt) }

// fields returns how many of the extra's fields are this value's.
func (m meta) fields() int { return m.version().fields() }

func (m *meta) setKind(kind Kind)    { *m = *m&^metaKind | meta(kind) }
func (m *meta) setStatus(status int) { *m = *m&^metaStatus | meta(status)<<statusAt }
func (m *meta) setVersion(v version) { *m = *m&(1<<versionAt-1) | meta(v)<<versionAt }

// NoLength stands for a head without Content-Length that is not that of a
// chunked body either.
const NoLength = -2

// Announces reports whether the answer is one to HEAD that says how long the body is which it leaves out.
func (r *Answer) Announces() bool { return r.meta&metaAnnounces != 0 }

// Announced is the length that Content-Length says, NoLength for no such header.
func (r *Answer) Announced() int64 {
	if r.meta&metaAnnounces != 0 {
		return r.on.x.length
	}
	return int64(len(r.Body))
}

// Announce has the answer to HEAD say how long the body is that it leaves out,
// or NoLength.
func (r *Answer) Announce(length int64) {
	r.Take()
	r.on.x.length = length
	r.meta |= metaAnnounces
}

// A Kind says how an answer is sent.
type Kind uint8

const (
	Missing  Kind = iota // the zero Answer
	Complete             // status, headers and body are all here
	Later                // Own.Make makes it when it is sent
	Sent                 // somebody has answered already
	Abort                // no answer: the connection is dropped
	Gone                 // Complete, for a client that has gone: it counts as dropped
)

// Kind returns how the answer is sent.
func (r *Answer) Kind() Kind { return r.meta.kind() }

// SetKind changes it.
func (r *Answer) SetKind(kind Kind) { r.meta.setKind(kind) }

// Status returns the status code.
func (r *Answer) Status() int { return r.meta.status() }

// SetStatus changes it.
func (r *Answer) SetStatus(status int) { r.meta.setStatus(status) }

// Failed reports whether the answer is the report of a failure: its status stands.
func (r *Answer) Failed() bool { return r.meta.failed() }

// MarkFailed makes the answer such a report.
func (r *Answer) MarkFailed() { r.meta |= metaFailed }

// Problem returns the details of the problem that the body describes, as SetProblem got them, or nil.
func (r *Answer) Problem() any {
	x := r.Own()
	if x == nil {
		if r.on == nil {
			return nil
		}
		return r.Base().problem
	}
	details := x.problem
	if details == nil || !r.OwnsBody() || !x.version().sameAs(r.meta.version()) {
		return nil // also for an answer that was sent: what was read may be another's
	}
	return details
}

// SetProblem notes the details of the problem that the body describes. They hold until the answer gets another
// body. An answer without memory of its own must stand on a block of its own, and keep its body.
func (r *Answer) SetProblem(details any) {
	x := r.Own()
	if x == nil {
		r.Base().problem = details
		return
	}
	if x.problem = details; !r.OwnsBody() {
		x.Buf = append(x.Buf[:0], r.Body...)
		r.Body = view.String(x.Buf)
	}
}

// ForgetProblem drops the details of the problem, which hold memory beside the body.
func (x *Own) ForgetProblem() { x.problem = nil }

// SetBody gives the answer another body.
func (r *Answer) SetBody(body string) {
	r.Body = body
	r.meta &^= metaAnnounces
}

// IsBare reports whether the answer has no headers and nothing of its own.
func (r *Answer) IsBare() bool { return r.on == nil }

// SameOwner reports whether two answers stand on the same memory.
func (r *Answer) SameOwner(other *Answer) bool { return r.on == other.on }

// Release gives the memory of a claimed answer back, if it has any.
func (r *Answer) Release() {
	if x := r.Own(); x != nil {
		x.release(r.meta.fields())
	}
}

// Lend prepares the memory of a claimed answer, which has some, to be given back by its
// own method Release when the body has been sent, and returns it. body is the answer's
// with, where it lies in that memory, the capacity of the buffer.
func (r *Answer) Lend() (x *Own, body []byte) {
	x = r.on.x
	x.used = r.meta.fields()
	if r.OwnsBody() {
		return x, x.Buf[:len(r.Body)]
	}
	return x, view.Bytes(r.Body)
}

// Class returns the class of an answer's status, 0 for
// none because the connection is dropped, or its client has gone.
func (r *Answer) Class() uint8 {
	if r.meta.kind() >= Abort {
		return 0
	}
	return uint8(min(r.meta.status()/100, ServerError)) // standard handlers may go beyond
}

// ServerError is the class of 5xx.
const ServerError = 5
