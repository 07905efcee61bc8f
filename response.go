package dunlin

import (
	"fmt"
	"net/http"
	"net/textproto"
	"strings"
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
	body   string       // the body; may view memory that x owns
	x      *extra       // what the plain fields cannot hold, or nil
	ver    version      // which part of x is this value's
	base   *HeaderBlock // the constructor's headers: the media type, mostly
	status uint16
	kind   responseKind
	failed bool   // it is the report of a failure: its status stands
	length uint32 // 1 + the length that a HEAD answer announces for the body it leaves out; 0: that of body
}

// unannounced is the length of a HEAD answer that says nothing of the body.
const unannounced = ^uint32(0)

// noLength stands for a head without Content-Length that is not that of a
// chunked body either.
const noLength = -2

// headLength is what Response.length is for a HEAD answer that leaves out n
// bytes, if that is known; a length that does not fit is left out, too.
func headLength(n int64, known bool) uint32 {
	if !known || n+1 >= int64(unannounced) {
		return unannounced
	}
	return uint32(n) + 1
}

// announced is the length that Content-Length says, noLength for no such header.
func (r *Response) announced() int {
	if r.length == unannounced {
		return noLength
	}
	if r.length > 0 {
		return int(r.length) - 1
	}
	return len(r.body)
}

// responseKind says how a response is sent.
type responseKind uint8

const (
	kindMissing responseKind = iota // the zero Response
	kindBody                        // status, headers and body are all here
	kindStream                      // x.stream carries it out when it is sent
	kindSent                        // a standard handler has answered already
	kindAbort                       // no answer: the connection is dropped
)

// Media types of the constructors, computed once.
var (
	blockText    = NewHeaderBlock("Content-Type", "text/plain; charset=utf-8")
	blockHTML    = NewHeaderBlock("Content-Type", "text/html; charset=utf-8")
	blockJSON    = NewHeaderBlock("Content-Type", "application/json")
	blockProblem = NewHeaderBlock("Content-Type", "application/problem+json")
	blockBinary  = NewHeaderBlock("Content-Type", "application/octet-stream")
	blockPlain   = NewHeaderBlock("Content-Type", "text/plain")
)

// Text answers 200 with s as text/plain in UTF-8.
func Text(s string) Response {
	return Response{body: s, base: blockText, status: http.StatusOK, kind: kindBody}
}

// HTML answers 200 with s as text/html in UTF-8. It escapes nothing.
func HTML(s string) Response {
	return Response{body: s, base: blockHTML, status: http.StatusOK, kind: kindBody}
}

// Bytes answers 200 with b as contentType; "" stands for
// application/octet-stream. The response keeps b, which must not change until
// it has been sent. What [Request.Bytes] lends may be passed on.
func Bytes(contentType string, b []byte) Response {
	r := Response{body: viewString(b), status: http.StatusOK, kind: kindBody}
	switch contentType {
	case "", "application/octet-stream":
		r.base = blockBinary
	case "application/json":
		r.base = blockJSON
	case "text/plain; charset=utf-8":
		r.base = blockText
	case "text/plain":
		r.base = blockPlain
	default:
		return r.Header("Content-Type", contentType)
	}
	return r
}

// Empty answers 200 without a body (Content-Length: 0).
func Empty() Response { return Response{status: http.StatusOK, kind: kindBody} }

// NoContent answers 204.
func NoContent() Response { return Response{status: http.StatusNoContent, kind: kindBody} }

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
	if r.failed {
		return r
	}
	if r.kind == kindMissing {
		r.kind = kindBody
	}
	r.status = uint16(code)
	return r
}

// Header returns the response with the named header set to value, in place of
// any value it had. A name or value that must not reach the wire (a control
// byte, an empty name, a header of the framing) makes the response a 500 whose
// cause is logged. Both strings are kept until the response has been sent.
func (r Response) Header(name, value string) Response {
	if !r.failed && plainField(name, value) && r.claimSlot() {
		r.setSlot(name, value, true)
		return r
	}
	return r.with(field{name: name, value: value, replace: true})
}

// AddHeader is Header, but keeps the values that the header already has.
func (r Response) AddHeader(name, value string) Response {
	if !r.failed && plainField(name, value) && r.claimSlot() {
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
	if r.failed {
		for i := range block.fields {
			for n, v := range block.fields[i].values {
				r = r.with(field{name: block.fields[i].name, value: v, replace: n == 0})
			}
		}
		return r
	}
	if r.ver.fields() == 0 {
		r.base = block.on(r.base) // no memory of the response's own is needed
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
	if r.failed && aboutContent[f.name] {
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
	if r.kind == kindMissing {
		return http.StatusInternalServerError
	}
	return int(r.status)
}

// Len returns the length of the body in bytes, -1 when it is not known before
// it is sent.
func (r Response) Len() int {
	if r.kind == kindStream || r.kind == kindSent {
		return -1
	}
	return len(r.body)
}

// Body returns the body, nil when it is not known before it is sent. It is
// borrowed: valid until the action returns, and not to be written to.
func (r Response) Body() []byte {
	if r.body == "" || r.kind != kindBody {
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
	if r.x == nil {
		return nil
	}
	return r.x.err
}

// String describes the response for logs and debuggers: status, media type and
// length, as in "200 application/json 27 bytes".
func (r Response) String() string {
	if r.kind == kindMissing {
		return "no response"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d", r.status)
	if ct := r.Get("Content-Type"); ct != "" {
		b.WriteString(" " + ct)
	}
	switch r.kind {
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
	if r.kind != kindBody || r.failed {
		return r
	}
	r.body, r.length = viewString(b), 0
	return r
}
