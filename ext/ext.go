// Package ext is for authors of middleware and of other packages that extend Dunlin. It has functions that a service does
// not need: state and counts of an app, memory of the app's budget, header fields and the ID of a request, and responses that
// are encoded as they are sent. Dunlin's own middleware also uses it.
package ext

import (
	"io"
	"reflect"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// inside has the internal methods of package dunlin.
var inside = dunlin.Internal(exchange.Module{})

// AddStats adds the result of stats to the field Added of the app's statistics, under a name: the counts of a store, for example.
// stats is called for each snapshot, by any goroutine, and must not block. Its result is encoded as JSON. If stats panics, Added has
// a text that reports the panic. AddStats panics if the name is already used.
//
//	ext.AddStats(app, "store", func() any { return guarded.Stats() })
func AddStats(app *dunlin.App, name string, stats func() any) { inside.AddStats(app, name, stats) }

// CacheMemory is the part of an app's memory budget that a cache uses, see [CacheBudget]. It is safe for concurrent use.
type CacheMemory struct {
	kept interface {
		Reserve(n int64) bool
		Release(n int64)
	}
}

// CacheBudget returns a function that gives a cache a part of the app's memory budget (see dunlin.Limits.Memory). The cache can
// reserve memory while a quarter of the budget is free. When clients need memory, caches must release memory first: the app calls
// drop with the number of bytes needed. drop evicts about that many bytes, or the whole cache, and calls Release for them before it
// returns.
//
// drop must be safe for concurrent use. It may run on any goroutine, including that of an event loop. It must be quick, and must not
// block or call Reserve.
//
//	memory := ext.CacheBudget(app)(cache.shrink)
//	st := store.NewMemory(store.MemoryConfig{Budget: store.Within(ext.CacheBudget(app))})
func CacheBudget(app *dunlin.App) func(drop func(bytes int64)) *CacheMemory {
	return func(drop func(bytes int64)) *CacheMemory { return &CacheMemory{inside.CacheMemory(app, drop)} }
}

// Reserve reserves n bytes of the budget. Call it before the memory is filled. It returns false, and reserves nothing, if the budget
// has no room.
func (c *CacheMemory) Reserve(n int64) bool { return c.kept.Reserve(n) }

// Release returns n reserved bytes to the budget.
func (c *CacheMemory) Release(n int64) { c.kept.Release(n) }

// PerApp returns the value stored in the app under key. If there is no value, it calls make once and stores the result. A package can
// store its state for an app in this way. Like the key of a context value, key should have a type of the calling package. make must
// not use the app. PerApp panics if the value has another type. It is safe for concurrent use.
func PerApp[T any](app *dunlin.App, key any, make func() T) T {
	return inside.Extension(app, key, func() any { return make() }).(T)
}

// Describe stores about in the field About of the route's [dunlin.RouteInfo]: a description for a document of the routes, for
// example. Call it before the first request of the route.
func Describe(route *dunlin.Route, about any) { inside.Describe(route, about) }

// ProblemFormat returns the media type of a format of problems, and the type of the values that are sent as JSON. It is for packages
// that document routes.
func ProblemFormat(f *dunlin.ProblemFormat) (mediaType string, body reflect.Type) {
	return inside.ProblemFormat(f)
}

// HeaderBytes is [dunlin.Request.HeaderList] without a copy, for comparisons. The caller must not write to the slice. The slice is
// valid until the body is read, the action blocks, or the action returns.
func HeaderBytes(r *dunlin.Request, name string) []byte { return inside.HeaderBytes(r, name) }

// Now returns the time. On an event loop it returns the start of the loop's current turn, usually some microseconds ago, which saves
// a call of time.Now. After the action has blocked, and without a loop, it returns time.Now().
func Now(r *dunlin.Request) time.Time { return inside.Now(r) }

// SetID makes [dunlin.Request.ID] return id.
func SetID(r *dunlin.Request, id string) { inside.SetID(r, id) }

// An IDHeader is a response header with the ID of the request as its value. It avoids the string of an ID that is used only in this
// header. It is safe for concurrent use.
type IDHeader struct{ header *exchange.IDHeader }

// NewIDHeader returns an IDHeader for the named header. The IDHeader also sets the headers in pairs, alternating names and values as
// for [dunlin.NewHeaderBlock]. NewIDHeader panics if a name or a value is invalid.
func NewIDHeader(name string, pairs ...string) *IDHeader {
	header, err := exchange.NewIDHeader(name, pairs...)
	if err != nil {
		panic("ext: NewIDHeader: " + err.Error())
	}
	return &IDHeader{header}
}

// SetOn returns resp with the header set to [dunlin.Request.ID] of r, and with those pairs of NewIDHeader that resp lacks. It also
// sets the headers of block, unless block is nil.
func (h *IDHeader) SetOn(resp dunlin.Response, r *dunlin.Request, block *dunlin.HeaderBlock) dunlin.Response {
	return inside.SendID(h.header, resp, r, block)
}

// WithHeaders calls next with changed request headers, and returns its response: each header named in fields has only the given
// value, or is absent if the value is "". After next has returned, the request has the client's headers again, even while the
// response is sent.
func WithHeaders(r *dunlin.Request, fields map[string]string, next dunlin.Action) dunlin.Response {
	return inside.WithHeaders(r, fields, next)
}

// Lacks reports whether the response has none of the headers of block. A header with an empty value counts.
func Lacks(resp dunlin.Response, block *dunlin.HeaderBlock) bool { return inside.Lacks(resp, block) }

// DefaultHeaders returns resp with those headers of block that resp lacks, for middleware that must not override headers of the
// action. If resp reports a failure, DefaultHeaders does not add headers that describe the content (see [dunlin.Response.Status]).
// The result may own memory, see [dunlin.Response].
func DefaultHeaders(resp dunlin.Response, block *dunlin.HeaderBlock) dunlin.Response {
	return inside.DefaultHeaders(resp, block)
}

// A BodyEncoder encodes a body as it is sent, see [EncodeLater]. It writes the encoded bytes to the writer with which it was made.
// Flush writes everything that the receiver needs to decode the body so far. The methods are called by one goroutine at a time.
// Close is called once, also after an error and when the stream fails. After a failure, writes to the writer fail, too.
type BodyEncoder = exchange.Encoder

// EncodeLater is for middleware that encodes bodies. It applies to responses whose body does not exist yet, so that Len returns -1:
// streams, events, files, and long answers of standard handlers. It returns other responses unchanged.
//
// decide is called once, when the headers are final, and may use the request:
//
//   - If the body is complete at that time, decide gets the response with its body, see [dunlin.Response.Body], and changes the body
//     by WithBody.
//   - Otherwise decide gets the response without a body, and the size of the body in bytes, or -1 if the size is unknown. It returns
//     the response with changed headers, and a function that makes the encoder, or nil to send the body unchanged. This also applies
//     to a response to HEAD, for which no encoder is made. For the response of a standard handler to HEAD, EncodeLater calls decide
//     before it returns.
//
// If a response has several encoders, the encoder that was added last is applied last.
func EncodeLater(resp dunlin.Response, decide func(head dunlin.Response, size int64) (dunlin.Response, func(io.Writer) BodyEncoder)) dunlin.Response {
	return inside.EncodeLater(resp, decide)
}
