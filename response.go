package dunlin

import (
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/textproto"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/semantics"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// A Response is the result of an action: status, headers and body. It is a value: each modifier returns a new Response and
// leaves its receiver unchanged:
//
//	return dunlin.JSON(user).Status(201).Header("Location", "/users/7")
//
// A Response that owns memory (from JSON or Problem, or after Header) may be returned from an action once. If it is
// returned again, the answer is a 500 whose cause is logged. A plain Response (Text, HTML, Empty, with Status, With and
// Cache) may be kept in a variable and returned any number of times, by any number of goroutines.
//
// The zero Response is empty and is answered with a 500, which middleware sees.
type Response struct {
	a exchange.Answer // four words, so that the compiler keeps it in registers
}

// plain returns a response that owns no memory.
func plain(status int, block *HeaderBlock, body string) Response {
	return Response{exchange.Plain(status, &block.block, body)}
}

// bare returns a response of the given kind without headers.
func bare(status int, kind exchange.Kind) Response { return Response{exchange.Bare(status, kind)} }

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

// HTML answers 200 with s as text/html in UTF-8. It does not escape s.
func HTML(s string) Response {
	return plain(http.StatusOK, blockHTML, s)
}

// Bytes answers 200 with b as contentType; "" means application/octet-stream. The response keeps b, which must not
// change until the response has been sent. b may be the result of [Request.Bytes].
func Bytes(contentType string, b []byte) Response {
	body := view.String(b)
	switch contentType {
	case "", "application/octet-stream":
		return plain(http.StatusOK, blockBinary, body)
	case "application/json":
		return plain(http.StatusOK, blockJSON, body)
	case "text/plain; charset=utf-8":
		return plain(http.StatusOK, blockText, body)
	case "text/plain":
		return plain(http.StatusOK, blockPlain, body)
	}
	r := bare(http.StatusOK, exchange.Complete)
	r.a.Body = body
	return r.Header("Content-Type", contentType)
}

// Empty answers 200 without a body (Content-Length: 0).
func Empty() Response { return bare(http.StatusOK, exchange.Complete) }

// NoContent answers 204.
func NoContent() Response { return bare(http.StatusNoContent, exchange.Complete) }

// Created answers 201 with location in the Location header, encoded as by [Redirect], and no body. For a body use
// JSON(v).Status(201).Header("Location", location).
func Created(location string) Response { return Redirect(location).Status(http.StatusCreated) }

// Redirect answers 303 See Other: the client fetches location with GET. Bytes that a URI cannot contain, such as spaces,
// are percent-encoded. Status selects another redirect: 301 and 308 are permanent, 307 and 308 keep the method.
func Redirect(location string) Response {
	return Empty().Status(http.StatusSeeOther).Header("Location", semantics.Reference(location))
}

// Status returns the response with another status code, 200 to 599. A response that reports a failure (see Err) keeps
// its 500, and ignores headers that describe the content (Content-Type, Cache-Control, Location and the like).
func (r Response) Status(code int) Response {
	if code < 200 || code > 599 {
		return r.fail(fmt.Errorf("response status %d is not between 200 and 599", code))
	}
	if r.a.Failed() {
		return r
	}
	if r.a.Kind() == exchange.Missing {
		r.a.SetKind(exchange.Complete)
	}
	r.a.SetStatus(code)
	return r
}

// Header returns the response with the named header set to value, which replaces earlier values. An invalid name or
// value (a control byte, an empty name, a header of the framing) makes the response a 500 whose cause is logged. Both
// strings are kept until the response has been sent.
func (r Response) Header(name, value string) Response {
	if !r.a.Failed() && exchange.PlainField(name, value) && r.a.ClaimSlot() {
		r.a.SetSlot(name, value, true)
		return r
	}
	return r.with(exchange.Field{Name: name, Value: value, Replace: true})
}

// AddHeader is Header, but keeps earlier values.
func (r Response) AddHeader(name, value string) Response {
	if !r.a.Failed() && exchange.PlainField(name, value) && r.a.ClaimSlot() {
		r.a.SetSlot(name, value, false)
		return r
	}
	return r.with(exchange.Field{Name: name, Value: value})
}

// With returns the response with the headers of block, which replace those of the same names.
func (r Response) With(block *HeaderBlock) Response {
	if block == nil || len(block.block.Fields) == 0 {
		return r
	}
	b := &block.block
	if r.a.Failed() {
		for i := range b.Fields {
			for n, v := range b.Fields[i].Values {
				r = r.with(exchange.Field{Name: b.Fields[i].Name, Value: v, Replace: n == 0})
			}
		}
		return r
	}
	if r.a.IsPlain() {
		r.a.SetBase(b.Over(r.a.Base())) // the response needs no memory of its own
		return r
	}
	return r.push(exchange.Field{Block: b, Replace: true})
}

// Cache returns the response with Cache-Control: private, max-age=d in seconds, for the client's cache only. For d of
// zero or less it sets no-store.
func (r Response) Cache(d time.Duration) Response { return r.With(cacheBlock("private", -1, d)) }

// CachePublic is Cache with public in place of private. Shared caches, such as that of package middleware, send the
// response to all clients, even for requests with credentials.
func (r Response) CachePublic(d time.Duration) Response { return r.With(cacheBlock("public", 1, d)) }

// Cookie returns the response with c added as Set-Cookie. An invalid cookie
// makes the response a 500 whose cause is logged.
func (r Response) Cookie(c *http.Cookie) Response {
	if err := c.Valid(); err != nil {
		return r.fail(fmt.Errorf("response cookie: %w", err))
	}
	return r.AddHeader("Set-Cookie", c.String())
}

// with checks a single field and appends it.
func (r Response) with(f exchange.Field) Response {
	if err := exchange.CheckField(f.Name, f.Value); err != nil {
		return r.fail(err)
	}
	// net/http writes names and values in this form, and every engine must send the same.
	f.Name, f.Value = textproto.CanonicalMIMEHeaderKey(f.Name), exchange.TrimBlanks(f.Value)
	if r.a.Failed() && exchange.AboutContent[f.Name] {
		return r
	}
	return r.push(f)
}

// StatusCode returns the status that the client receives: 500 for the zero Response.
func (r Response) StatusCode() int {
	if r.a.Kind() == exchange.Missing {
		return http.StatusInternalServerError
	}
	return r.a.Status()
}

// Len returns the length of the body in bytes, or -1 if it is unknown until the body is sent.
func (r Response) Len() int {
	if kind := r.a.Kind(); kind == exchange.Later || kind == exchange.Sent {
		return -1
	}
	return len(r.a.Body)
}

// Body returns the body, or nil for a streamed response. The slice is borrowed: it is valid until the action returns, and
// the caller must not write to it.
func (r Response) Body() []byte {
	if r.a.Body == "" || r.a.Kind() != exchange.Complete {
		return nil
	}
	return view.Bytes(r.a.Body)
}

// Get returns the first value of the named header, or "" if the response has none. It does not return headers that are
// added when the response is sent: Content-Length, the headers of the connection, and Date unless the action sets it.
func (r Response) Get(name string) string { return r.a.First(name) }

// Values returns every value of the named header.
func (r Response) Values(name string) []string { return r.a.All(name) }

// Headers yields the name and value of every header line that Get or Values can return.
func (r Response) Headers() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) { r.a.Headers(yield) }
}

// Err returns the cause of a failure: the error given to Error, or the reason why the response could not be built. It
// is meant for logs, never for the client.
func (r Response) Err() error {
	if x := r.a.Own(); x != nil {
		return x.Err
	}
	return nil
}

// String describes the response for logs and debuggers by status, media type and length: "200 application/json 27
// bytes".
func (r Response) String() string {
	return r.a.Describe(r.Err())
}

// WithBody returns the response with b as its body and the same status and headers. The response keeps b, which must
// not change until the response has been sent. WithBody is for middleware that encodes bodies: it returns a streamed
// response, and a response that reports a failure, unchanged.
func (r Response) WithBody(b []byte) Response {
	if r.a.Kind() != exchange.Complete || r.a.Failed() {
		return r
	}
	r.a.SetBody(view.String(b))
	return r
}

// push appends f to the response's own headers.
func (r Response) push(f exchange.Field) Response {
	a, err := r.a.Push(f)
	if err != nil {
		return Response{}.fail(err)
	}
	return Response{a}
}

// fail returns a response that reports err: a 500 whose cause is logged.
func (r Response) fail(err error) Response {
	if r.a.Failed() {
		return r // the first failure is kept, because it may be the cause of later ones
	}
	// Not Error: a problem within err is the cause of the failure, not the answer.
	failure := Problem(&ProblemDetails{Status: http.StatusInternalServerError, Cause: err})
	failure.a.MarkFailed()
	return failure
}

var errNoResponse = errors.New("action returned the zero Response")

// releaseMemory releases the memory of a claimed answer whose head has been sent.
func releaseMemory(a *exchange.Answer) {
	a.Release()
	a.DropOwn()
}
