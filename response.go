package dunlin

import (
	"fmt"
	"net/http"
	"net/textproto"
	"strings"
	"sync/atomic"
	"time"
)

// A Response is what an action returns: status, headers and body, complete
// before its first byte is sent. It is a value; each modifier returns a new
// one and leaves its receiver as it was:
//
//	return dunlin.JSON(user).Status(201).Header("Location", "/users/7")
//
// A Response that owns memory (from JSON or Problem, or after Header) may be
// returned from an action once; returning it again is answered with a 500 and
// a log line. Plain ones (Text, HTML, Empty, with Status, Headers and Cache)
// may be kept in a variable and returned any number of times, by any number of
// goroutines.
//
// The zero Response says nothing and is answered with a 500.
type Response struct {
	// Four words in three fields: a larger value the compiler would pass through
	// memory at every call, which took longer than finding the route.
	body string  // may view memory of the extra
	on   *anchor // what the headers stand on; nil: there are none
	meta meta
}

// An anchor is the beginning of what a Response points to: a HeaderBlock, or an
// extra that goes with one.
type anchor struct {
	block atomic.Pointer[HeaderBlock] // the constructor's headers: the media type, mostly
	x     *extra                      // what the plain fields cannot hold, or nil; constant
}

// base returns the constructor's headers, nil for none.
func (r *Response) base() *HeaderBlock {
	if r.on == nil {
		return nil
	}
	return r.on.block.Load()
}

// extra returns what the plain fields cannot hold, nil when there is nothing.
func (r *Response) extra() *extra {
	if r.on == nil {
		return nil
	}
	return r.on.x
}

// plain returns a response that owns nothing.
func plain(status int, block *HeaderBlock, body string) Response {
	return Response{body: body, on: &block.anchor, meta: metaOf(status, kindBody)}
}

// meta is what a Response says in numbers, in one word:
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

func metaOf(status int, kind responseKind) meta { return meta(status)<<statusAt | meta(kind) }

func (m meta) kind() responseKind { return responseKind(m & metaKind) }
func (m meta) status() int        { return int(m & metaStatus >> statusAt) }
func (m meta) failed() bool       { return m&metaFailed != 0 }
func (m meta) version() version   { return version(m >> versionAt) }

// fields returns how many of the extra's fields are this value's.
func (m meta) fields() int { return m.version().fields() }

func (m *meta) setKind(kind responseKind) { *m = *m&^metaKind | meta(kind) }
func (m *meta) setStatus(status int)      { *m = *m&^metaStatus | meta(status)<<statusAt }
func (m *meta) setVersion(v version)      { *m = *m&(1<<versionAt-1) | meta(v)<<versionAt }

// noLength stands for a head without Content-Length that is not that of a
// chunked body either.
const noLength = -2

// announced is the length that Content-Length says, noLength for no such header.
func (r *Response) announced() int64 {
	if r.meta&metaAnnounces != 0 {
		return r.on.x.length
	}
	return int64(len(r.body))
}

// announce has the response to HEAD say how long the body is that it leaves out,
// or noLength.
func (r *Response) announce(length int64) {
	r.own()
	r.on.x.length = length
	r.meta |= metaAnnounces
}

// responseKind says how a response is sent.
type responseKind uint8

const (
	kindMissing responseKind = iota // the zero Response
	kindBody                        // status, headers and body are all here
	kindStream                      // the extra's stream carries it out when it is sent
	kindSent                        // a standard handler has answered already
	kindAbort                       // no answer: the connection is dropped
)

// Media types of the constructors, computed once.
var (
	blockText    = NewHeaderBlock("Content-Type", "text/plain; charset=utf-8")
	blockHTML    = NewHeaderBlock("Content-Type", "text/html; charset=utf-8")
	blockJSON    = NewHeaderBlock("Content-Type", "application/json")
	blockProblem = NewHeaderBlock("Content-Type", "application/problem+json")
	blockPassing = NewHeaderBlock("Content-Type", "application/problem+json", "Retry-After", "1")
	blockBinary  = NewHeaderBlock("Content-Type", "application/octet-stream")
	blockPlain   = NewHeaderBlock("Content-Type", "text/plain")
)

// Text answers 200 with s as text/plain in UTF-8.
func Text(s string) Response {
	return plain(http.StatusOK, blockText, s)
}

// HTML answers 200 with s as text/html in UTF-8. It escapes nothing.
func HTML(s string) Response {
	return plain(http.StatusOK, blockHTML, s)
}

// Bytes answers 200 with b as contentType; "" stands for
// application/octet-stream. The response keeps b, which must not change until
// it has been sent. What [Request.Bytes] lends may be passed on.
func Bytes(contentType string, b []byte) Response {
	r := Response{body: viewString(b), meta: metaOf(http.StatusOK, kindBody)}
	switch contentType {
	case "", "application/octet-stream":
		r.on = &blockBinary.anchor
	case "application/json":
		r.on = &blockJSON.anchor
	case "text/plain; charset=utf-8":
		r.on = &blockText.anchor
	case "text/plain":
		r.on = &blockPlain.anchor
	default:
		return r.Header("Content-Type", contentType)
	}
	return r
}

// Empty answers 200 without a body (Content-Length: 0).
func Empty() Response { return Response{meta: metaOf(http.StatusOK, kindBody)} }

// NoContent answers 204.
func NoContent() Response { return Response{meta: metaOf(http.StatusNoContent, kindBody)} }

// Created answers 201 with the Location of what was made and no body. For a
// body, take JSON(v).Status(201).Header("Location", location).
func Created(location string) Response {
	return Empty().Status(http.StatusCreated).Header("Location", location)
}

// Redirect answers 303 See Other: the client fetches location with GET. Choose
// another kind with Status: 301 and 308 are permanent, 307 and 308 keep the
// method.
func Redirect(location string) Response {
	return Empty().Status(http.StatusSeeOther).Header("Location", location)
}

// Status returns the response with another status code, 200 to 599. One that
// reports a failure keeps its 500, and takes no headers over that speak of the
// content (Content-Type, Cache-Control, Location and the like).
func (r Response) Status(code int) Response {
	if code < 200 || code > 599 {
		return r.fail(fmt.Errorf("response status %d is not between 200 and 599", code))
	}
	if r.meta.failed() {
		return r
	}
	if r.meta.kind() == kindMissing {
		r.meta.setKind(kindBody)
	}
	r.meta.setStatus(code)
	return r
}

// Header returns the response with the named header set to value, in place of
// any value it had. A name or value that must not reach the wire (a control
// byte, an empty name, a header of the framing) makes the response a 500 whose
// cause is logged. Both strings are kept until the response has been sent.
func (r Response) Header(name, value string) Response {
	if !r.meta.failed() && plainField(name, value) && r.claimSlot() {
		r.setSlot(name, value, true)
		return r
	}
	return r.with(field{name: name, value: value, replace: true})
}

// AddHeader is Header, but keeps the values that the header already has.
func (r Response) AddHeader(name, value string) Response {
	if !r.meta.failed() && plainField(name, value) && r.claimSlot() {
		r.setSlot(name, value, false)
		return r
	}
	return r.with(field{name: name, value: value})
}

// Headers returns the response with the headers of block. They replace those of
// the same names.
func (r Response) Headers(block *HeaderBlock) Response {
	if block == nil || len(block.fields) == 0 {
		return r
	}
	if r.meta.failed() {
		for i := range block.fields {
			for n, v := range block.fields[i].values {
				r = r.with(field{name: block.fields[i].name, value: v, replace: n == 0})
			}
		}
		return r
	}
	if r.extra() == nil {
		r.on = &block.over(r.base()).anchor // no memory of the response's own is needed
		return r
	}
	return r.push(field{block: block, replace: true})
}

// Cache returns the response with Cache-Control: public, max-age=d in whole
// seconds; d of zero or less says no-store.
func (r Response) Cache(d time.Duration) Response { return r.Headers(cacheBlock(d)) }

// Cookie returns the response with c added as Set-Cookie. An invalid cookie
// makes the response a 500 whose cause is logged.
func (r Response) Cookie(c *http.Cookie) Response {
	if err := c.Valid(); err != nil {
		return r.fail(fmt.Errorf("response cookie: %w", err))
	}
	return r.AddHeader("Set-Cookie", c.String())
}

// with checks a single field and appends it.
func (r Response) with(f field) Response {
	if err := checkField(f.name, f.value); err != nil {
		return r.fail(err)
	}
	// As net/http spells and trims them, so that every engine sends the same.
	f.name, f.value = textproto.CanonicalMIMEHeaderKey(f.name), trimBlanks(f.value)
	if r.meta.failed() && aboutContent[f.name] {
		return r
	}
	return r.push(f)
}

// aboutContent holds the headers that say something about the content that a
// response was meant to have. A failure does not take them over: its problem
// must not be read as CSV, nor stay in a cache for as long as the answer may.
var aboutContent = map[string]bool{
	"Accept-Ranges": true, "Cache-Control": true, "Content-Disposition": true, "Content-Encoding": true,
	"Content-Language": true, "Content-Location": true, "Content-Range": true, "Content-Type": true,
	"Etag": true, "Expires": true, "Last-Modified": true, "Location": true,
}

// StatusCode returns the status the client will see: 500 for the zero Response.
func (r Response) StatusCode() int {
	if r.meta.kind() == kindMissing {
		return http.StatusInternalServerError
	}
	return r.meta.status()
}

// Len returns the length of the body in bytes, -1 when it is not known before
// it is sent.
func (r Response) Len() int {
	if kind := r.meta.kind(); kind == kindStream || kind == kindSent {
		return -1
	}
	return len(r.body)
}

// Body returns the body, nil when it is not known before it is sent. It is
// borrowed: valid until the action returns, and not to be written to.
func (r Response) Body() []byte {
	if r.body == "" || r.meta.kind() != kindBody {
		return nil
	}
	return viewBytes(r.body)
}

// Get returns the value the named header will have, the first one where it has
// several, "" when it has none. Content-Length, Date and the headers of the
// connection are written later and never seen here.
func (r Response) Get(name string) string {
	for n, v := range r.headers {
		if strings.EqualFold(n, name) {
			return v
		}
	}
	return ""
}

// Err returns the cause of a failure: what Error was given, or why the response
// could not be built. It is meant for logs, never for the client.
func (r Response) Err() error {
	if x := r.extra(); x != nil {
		return x.err
	}
	return nil
}

// String describes the response for logs and debuggers: status, media type and
// length, as in "200 application/json 27 bytes".
func (r Response) String() string {
	if r.meta.kind() == kindMissing {
		return "no response"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d", r.meta.status())
	if ct := r.Get("Content-Type"); ct != "" {
		b.WriteString(" " + ct)
	}
	switch r.meta.kind() {
	case kindStream:
		b.WriteString(" stream")
	case kindSent:
		b.WriteString(" sent")
	default:
		fmt.Fprintf(&b, " %d bytes", len(r.body))
	}
	if err := r.Err(); err != nil {
		fmt.Fprintf(&b, " (%v)", err)
	}
	return b.String()
}

// WithBody returns the response with b as its body; status and headers stay.
// The response keeps b, which must not change until it has been sent. It is for
// middleware that encodes bodies: a response without a complete body (a
// stream, a failure) stays as it was.
func (r Response) WithBody(b []byte) Response {
	if r.meta.kind() != kindBody || r.meta.failed() {
		return r
	}
	r.body = viewString(b)
	r.meta &^= metaAnnounces
	return r
}
