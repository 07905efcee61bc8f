package exchange

import (
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/view"
)

// An Answer is the result of an action, as the pipeline passes it to an adapter: status, headers and body, complete before its
// first byte is sent. It is a value of four words in three fields: the compiler would pass a larger value through memory at every
// call, which would take longer than finding the route.
type Answer struct {
	Body string  // may be stored in the memory of Own
	on   *anchor // the source of the headers; nil: there are none
	meta meta
}

// An anchor is the target of an Answer's pointer. It is the beginning of a Block, the beginning of an Own, or a separate anchor
// for a text.
type anchor struct {
	block atomic.Pointer[Block] // the constructor's headers, usually only the media type
	x     *Own                  // data beyond the plain fields, or nil; constant
	text  string                // replaces the Number in the block's place for it
}

// Base returns the prerendered headers, which are sent first, or nil.
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

// IsPlain reports whether the answer has no memory of its own and no text, so that SetBase can base it on another block.
func (r *Answer) IsPlain() bool { return r.on == nil || r.on.x == nil && r.on.text == "" }

// Plain returns an answer without an Own.
func Plain(status int, block *Block, body string) Answer {
	return Answer{Body: body, on: &block.anchor, meta: metaOf(status, Complete)}
}

// Bare returns an answer without headers.
func Bare(status int, kind Kind) Answer { return Answer{meta: metaOf(status, kind)} }

// SetBase bases the answer, for which IsPlain is true, on another block.
func (r *Answer) SetBase(block *Block) { r.on = &block.anchor }

// DropOwn drops the references to the headers and to the Own, which has another owner now.
func (r *Answer) DropOwn() { r.on = nil }

// meta holds the numeric properties of an Answer in one word:
//
//	version (49 bits) │ status (10) │ announces │ failed │ kind (3)
//
// The version tells which fields of the Own belong to this value. A failed answer reports a failure, and its status is final. An
// answer with announces set responds to HEAD, and its Own has the length of the omitted body.
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

// fields returns how many fields of the Own belong to this value.
func (m meta) fields() int { return m.version().fields() }

func (m *meta) setKind(kind Kind)    { *m = *m&^metaKind | meta(kind) }
func (m *meta) setStatus(status int) { *m = *m&^metaStatus | meta(status)<<statusAt }
func (m *meta) setVersion(v version) { *m = *m&(1<<versionAt-1) | meta(v)<<versionAt }

// NoLength is the length of an answer that has neither a Content-Length nor a chunked body.
const NoLength = -2

// Announces reports whether the answer responds to HEAD and has the length of the omitted body.
func (r *Answer) Announces() bool { return r.meta&metaAnnounces != 0 }

// Announced returns the value for Content-Length in bytes, or NoLength if the field is omitted.
func (r *Answer) Announced() int64 {
	if r.meta&metaAnnounces != 0 {
		return r.on.x.length
	}
	return int64(len(r.Body))
}

// Announce sets the length in bytes of the body that an answer to HEAD omits, or NoLength.
func (r *Answer) Announce(length int64) {
	r.EnsureOwn()
	r.on.x.length = length
	r.meta |= metaAnnounces
}

// A Kind is the way of sending an answer.
type Kind uint8

const (
	Missing  Kind = iota // the zero Answer
	Complete             // status, headers and body are final
	Later                // Own.Make produces the body while it is sent
	Sent                 // the answer was sent already
	Abort                // no answer: the connection is dropped
	Gone                 // Complete, but the client has gone: counted as dropped
)

// Kind returns the way of sending the answer.
func (r *Answer) Kind() Kind { return r.meta.kind() }

// SetKind sets the kind.
func (r *Answer) SetKind(kind Kind) { r.meta.setKind(kind) }

// Status returns the status code.
func (r *Answer) Status() int { return r.meta.status() }

// SetStatus sets the status code.
func (r *Answer) SetStatus(status int) { r.meta.setStatus(status) }

// Failed reports whether the answer reports a failure: its status is final.
func (r *Answer) Failed() bool { return r.meta.failed() }

// MarkFailed marks the answer as the report of a failure.
func (r *Answer) MarkFailed() { r.meta |= metaFailed }

// Problem returns the error that the body describes, as passed to SetProblem, or nil.
func (r *Answer) Problem() error {
	x := r.Own()
	if x == nil {
		if r.on == nil {
			return nil
		}
		return r.Base().problem
	}
	if r.Stale() || !r.OwnsBody() {
		return nil
	}
	return x.problem
}

// SetProblem records the error that the body describes. It applies until the answer gets another body. An answer without an Own
// must have a block that no other answer uses, and its body must not be replaced.
func (r *Answer) SetProblem(err error) {
	x := r.Own()
	if x == nil {
		r.Base().problem = err
		return
	}
	if x.problem = err; !r.OwnsBody() {
		x.Buf = append(x.Buf[:0], r.Body...)
		r.Body = view.String(x.Buf)
	}
}

// ForgetProblem drops the error that the body describes, which uses memory in addition to the body.
func (x *Own) ForgetProblem() { x.problem = nil }

// SetBody replaces the body.
func (r *Answer) SetBody(body string) {
	r.Body = body
	r.meta &^= metaAnnounces
}

// IsBare reports whether the answer has no headers and no Own.
func (r *Answer) IsBare() bool { return r.on == nil }

// SameOwner reports whether two answers have the same Own or the same base.
func (r *Answer) SameOwner(other *Answer) bool { return r.on == other.on }

// Release returns the Own of a claimed answer to the pool, if the answer has one.
func (r *Answer) Release() {
	if x := r.Own(); x != nil {
		x.release(r.meta.fields())
	}
}

// Lend is for a sender that keeps the body of a claimed answer. It returns the Own of the answer, whose method Release must be
// called when the body has been sent. If the body is stored in the Own, the returned body has the capacity of its buffer.
func (r *Answer) Lend() (x *Own, body []byte) {
	x = r.on.x
	x.used = r.meta.fields()
	if r.OwnsBody() {
		return x, x.Buf[:len(r.Body)]
	}
	return x, view.Bytes(r.Body)
}

// Class returns the first digit of the answer's status, 0 if the connection is dropped or the client has gone.
func (r *Answer) Class() uint8 {
	if r.meta.kind() >= Abort {
		return 0
	}
	return uint8(min(r.meta.status()/100, ServerError)) // standard handlers may use statuses from 600
}

// ServerError is the class of 5xx.
const ServerError = 5
