package dunlin

import (
	"context"
	"crypto/tls"
	"iter"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/feature"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/rewrite"
	"github.com/dunlinhttp/dunlin/internal/view"
	"github.com/dunlinhttp/dunlin/router"
)

// An Action answers a request by returning the response. It runs on a goroutine chosen by the engine and may block.
type Action func(*Request) Response

// A Middleware wraps an action. It may look at the request before the action, at the response after it, or answer
// itself. It is called once for each registration of a route, not for each request.
type Middleware func(Action) Action

// A Feature extends all answers of an app or a group, see [Group.Install]. The features of package middleware are RequestID, CORS,
// SecureHeaders, RateLimit and AccessLog. For your own feature use [Hooks], or a type that embeds Hooks.
type Feature interface {
	// Middleware returns the feature as middleware for a group or a single route. The middleware does not
	// change answers that are made without it, such as the 503 at a timeout.
	Middleware() Middleware

	hooks() Hooks
}

// Hooks is a [Feature] of up to three functions, which must be safe for concurrent use. A nil function
// does nothing.
type Hooks struct {
	// Wrap wraps actions, around all middleware that Use adds.
	Wrap Middleware

	// Headers returns resp with headers added. It is called for each answer, after Wrap, and also for answers
	// that no action made, see [observe.Source]. It must not change the status or the body. A panic or an
	// invalid change is logged, and the answer is sent without these headers.
	Headers func(info *AnswerInfo, resp Response) Response

	// Observe is called once for each answer: for a streamed answer after its last byte, for another
	// answer before it is sent.
	Observe func(info *AnswerInfo)
}

func (h Hooks) hooks() Hooks { return h }

// Middleware implements [Feature]: it applies Wrap and Observe.
func (h Hooks) Middleware() Middleware {
	return func(next Action) Action {
		if h.Wrap != nil {
			next = h.Wrap(next)
		}
		if h.Observe == nil || next == nil {
			return next
		}
		return func(r *Request) Response {
			r.OnAnswer(h.Observe)
			return next(r)
		}
	}
}

// A fusible feature is a feature of package middleware that can be combined with an adjacent one. Its Wrap
// does not panic and runs no user code except the wrapped action. Wrap adds all headers that Headers would add.
type fusible interface {
	Feature

	// Fuse returns one feature that does the work of this one and of inner, or nil if there is none.
	Fuse(inner Feature) Feature
}

// An installed feature belongs to an app or a group.
type installed struct {
	Feature
	Hooks
	fusible fusible // nil for other features
}

type features = feature.Set[installed]

func install(f Feature) installed {
	kind, _ := f.(fusible)
	return installed{f, f.hooks(), kind}
}

// A Request is the request that an action answers. It belongs to the action: no goroutine may use it after the action
// has returned or, for a streamed response ([Stream], [SSE], [JSONSeq]), after the function that produces the body has
// returned. Strings from a Request stay valid forever; byte slices are borrowed, see the package comment. In builds with
// the race detector, later use of a Request panics.
type Request struct {
	app   *App
	wire  exchange.Wire
	match router.Match[*endpoint]
	route *endpoint // nil if no route matched
	act   Action    // action of the request
	s     exchange.State

	ended   invariants.Flag // set when the action has returned and its response has been sent
	depth   int32           // running calls of App.run
	source  exchange.Source // origin of the answer
	unread  bool            // set if the request could not be read
	told    bool            // OnError has been called for the answer
	options bool            // the request is OPTIONS without a route of its own: answerOptions replaces the action
	shared  sync.Mutex      // guards id and watch while an answer is made without the action
	watch   *watch          // made on first use

	uncommon *uncommon // made on first use

	id       exchange.Identity
	values   []keyed
	account  *memory.Account // account that is charged for the memory of the request; nil for none
	bodyHeld int64           // bytes charged to account for the body
	bodyErr  error           // error of reading the body
}

// A call is a Request as its adapter sees it, see pipeline.go.
type call Request

func (c *call) request() *Request { return (*Request)(c) }

// uncommon holds rarely used fields; it is allocated on demand.
type uncommon struct {
	suspended *suspension        // standard handler whose answer has not been sent
	rest      *restOfChain       // rest of the chain, inside standard middleware
	location  string             // target of a redirect to a similar path that matches a route
	slots     []slot             // slots of limits
	encoding  *exchange.Encoding // encoding of the answer that is being sent
	decoded   bool               // DecodeBody has removed the content coding of the body
	rewrite   rewrite.Match      // rewritten path, if there are rules

	features *features // around the action, if no route matched

	unformatted bool // Config.Problems has failed for a problem of this request
}

// more returns the rarely used fields, and allocates them on first use.
func (r *Request) more() *uncommon {
	if r.uncommon == nil {
		r.uncommon = new(uncommon)
	}
	return r.uncommon
}

// rest returns the chain of standard middleware that leads to the request, or nil.
func (r *Request) rest() *restOfChain {
	if r.uncommon == nil {
		return nil
	}
	return r.uncommon.rest
}

// within records the features around an action that belongs to no route.
func (r *Request) within(f *features) {
	if f != nil || r.uncommon != nil {
		r.more().features = f
		r.s.Watched = r.s.Watched || f.Observed()
	}
}

// features returns the features around the action of the request.
func (r *Request) features() *features {
	switch {
	case r.route != nil:
		return r.route.features
	case r.uncommon != nil:
		return r.uncommon.features
	}
	return nil
}

// begin prepares the request for the message in r.s.
func (r *Request) begin() {
	r.s.Route, r.s.Viewed, r.s.Watched = &r.app.server.Unmatched, false, r.app.observed
	r.route, r.depth, r.source, r.unread, r.told, r.options = nil, 0, exchange.FromAction, false, false, false
	r.ended.Set(false)
}

// matched sets e as the route of the request.
func (r *Request) matched(e *endpoint) {
	r.route, r.s.Route = e, &e.shared
	if e.features.Observed() {
		r.s.Watched = true
	}
}

// alive panics, in builds with the race detector, if the request is used after its action has returned. By then the
// memory of the Request may serve another request.
func (r *Request) alive() {
	if r.ended.IsSet() {
		panic("dunlin: a Request is used after its action has returned: it is another request by now. Copy what is needed before.")
	}
}

// end releases the memory that the request held for its message. Borrowed byte slices become invalid.
func (r *Request) end() {
	r.ended.Set(true)
	r.id = exchange.Identity{}
	if r.uncommon != nil {
		r.uncommon.rest, r.uncommon.features, r.uncommon.decoded, r.uncommon.unformatted = nil, nil, false, false
	}
	if len(r.values) > 0 {
		clear(r.values)
		r.values = r.values[:0]
	}
	if r.watch != nil {
		r.watch.forget()
		r.watch.values, r.watch.context = nil, nil
	}
	if r.s.Loaded || r.bodyErr != nil || r.account != nil {
		r.endBody()
	}
}

// Method returns the method, as sent.
func (r *Request) Method() string {
	r.alive()
	return r.s.Method
}

// Path returns the matched path. It is percent-decoded except for %2F and %25, so that an escaped slash differs from a
// separator.
func (r *Request) Path() string {
	r.alive()
	return r.own(r.s.Path)
}

// SentPath returns the path that the client sent, in the form of Path. It differs from Path if a rule of [App.Rewrite]
// has replaced the path.
func (r *Request) SentPath() string {
	if r.s.Sent == "" {
		return r.Path()
	}
	return r.s.Sent
}

// RawQuery returns the query as sent, without the question mark.
func (r *Request) RawQuery() string {
	r.alive()
	return r.own(r.s.Query)
}

// own returns a safe string for s, which may be borrowed from the engine.
func (r *Request) own(s string) string {
	if !r.s.Lent || s == "" {
		return s
	}
	return r.s.Strings.Copy(view.Bytes(s))
}

// Host returns the host of the request, with its port if the client sent one.
func (r *Request) Host() string {
	r.alive()
	return r.wire.Host()
}

// Route returns the pattern of the matched route, or "" if no route matched.
func (r *Request) Route() string {
	r.alive()
	if r.route == nil {
		return ""
	}
	return r.route.shared.Pattern
}

// Param returns the named path parameter, unescaped, or "" if the route has none of that name.
func (r *Request) Param(name string) string {
	s, _ := r.param(name)
	return s
}

func (r *Request) param(name string) (string, bool) {
	r.alive()
	i := r.match.Index(name)
	if i < 0 {
		return "", false
	}
	return r.paramAt(i), true
}

// Params yields the names and values of all path parameters, in the order of the pattern.
func (r *Request) Params() iter.Seq2[string, string] {
	r.alive()
	return func(yield func(string, string) bool) {
		for i := range r.match.Len() {
			if !yield(r.match.Name(i), r.paramAt(i)) {
				return
			}
		}
	}
}

func (r *Request) paramAt(i int) string {
	if r.match.InHost(i) {
		return r.match.Span(i).Of(r.wire.Host())
	}
	value := r.match.Span(i).Of(r.s.Path)
	if strings.IndexByte(value, '%') < 0 {
		return r.own(value)
	}
	var plain [128]byte // not the buffer of r.s.Strings, which may contain the path
	return r.s.Strings.Copy(router.AppendValue(plain[:0], value))
}

// Header returns the first value of the named request header, or "" if there is none. Names are case-insensitive.
func (r *Request) Header(name string) string {
	r.alive()
	if r.decoded() && exchange.AboutCoding(name) {
		return ""
	}
	s, _ := r.wire.Header(name)
	return s
}

// HeaderList returns all values of the named request header in one string. Values of several lines are joined by a comma
// and a space, those of Cookie by a semicolon and a space (RFC 9110 section 5.3, RFC 9113 section 8.2.3). It returns ""
// if there is no such header.
func (r *Request) HeaderList(name string) string {
	r.alive()
	if r.decoded() && exchange.AboutCoding(name) {
		return ""
	}
	return r.own(r.wire.List(name))
}

// Headers yields the name and value of every request header line.
func (r *Request) Headers() iter.Seq2[string, string] {
	r.alive()
	if r.decoded() {
		return func(yield func(name, value string) bool) {
			r.wire.Headers(func(name, value string) bool { return r.decoded() && exchange.AboutCoding(name) || yield(name, value) })
		}
	}
	return r.wire.Headers
}

// overlaid returns the names of the fields set by WithHeaders, including calls outside standard middleware.
func (r *Request) overlaid() (names []string) {
	if rest := r.rest(); rest != nil {
		names = rest.names
	}
	return append(names[:len(names):len(names)], exchange.Overlaid(r.wire)...)
}

// TLS returns the TLS state of the connection, or nil in clear text. All requests of the connection share the state, so it
// must not be changed. Behind a proxy this is the state of the proxy's connection.
func (r *Request) TLS() *tls.ConnectionState {
	r.alive()
	return r.wire.TLS()
}

// Context returns the request's context. It is cancelled when the client disconnects, when a shutdown reaches its
// deadline, when the timeout of the route has passed, and when the action has returned and its response, including a
// stream, has been sent. While events are sent ([SSE]) it is that of [Events.Context]. SetContext adds values to it.
func (r *Request) Context() context.Context {
	r.alive()
	return r.context()
}

// Std returns the request as a net/http request, for libraries that need one. It is made on first use and valid until
// the action returns. Its body is the body of the request, or the bytes that Bytes has read.
func (r *Request) Std() *http.Request {
	r.alive()
	return r.stdRequest()
}

// ID returns the identifier of the request: 26 characters that are unique but not secret, or the ID that middleware has
// set with ext.SetID.
func (r *Request) ID() string {
	r.alive()
	return r.identity()
}

// HeaderBytes implements ext.HeaderBytes.
func (*inside) HeaderBytes(r *Request, name string) []byte {
	r.alive()
	if r.decoded() && exchange.AboutCoding(name) {
		return nil
	}
	return view.Bytes(r.wire.List(name))
}

// Now implements ext.Now.
func (*inside) Now(r *Request) time.Time {
	r.alive()
	return r.wire.Now()
}

// WithHeaders implements ext.WithHeaders.
func (*inside) WithHeaders(r *Request, fields map[string]string, next Action) Response {
	r.alive()
	sent := r.wire
	r.wire = exchange.Overlay(sent, fields)
	defer func() { r.wire = sent }()
	return next(r)
}
