package dunlin

import (
	"context"
	"crypto/tls"
	"iter"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/rewrite"
	"github.com/dunlinhttp/dunlin/internal/view"
	"github.com/dunlinhttp/dunlin/router"
)

// An Action answers a request by returning the response. It runs on whatever
// goroutine the engine chooses and may block.
type Action func(*Request) Response

// A Middleware wraps an action: it may look at the request before, at the
// response after, or answer itself. It runs once for each registration, when
// the route is registered, not for each request.
type Middleware func(Action) Action

// A Request is what an action answers. It belongs to the action: it must not be
// used, by any goroutine, after the action has returned, or after the function has
// that sends its response piece by piece ([Stream], [SSE], [JSONSeq]). Strings taken
// from it stay valid for ever; byte slices are borrowed, see the package comment.
// In builds with the race detector, late use of a Request panics.
type Request struct {
	app   *App
	wire  exchange.Wire
	match router.Match[*endpoint]
	route *endpoint // nil when no route matched
	act   Action    // that answers it
	s     exchange.State

	ended  invariants.Flag // the action has returned, and its response has been sent
	depth  int32           // calls of App.run under way
	source AnswerSource    // of its answer
	unread bool            // nothing is known of it
	told   bool            // of the failure of its answer: OnError has been called
	// options has the route's middleware lead to answerOptions.
	options bool
	shared  sync.Mutex // guards id and watch while an answer is given without the action
	watch   *watch     // made when it is first needed

	uncommon *uncommon // made when it is first needed

	id      exchange.Identity
	values  []keyed
	scratch []byte             // for unescaping queries
	account *admission.Account // charged with what is held for it; nil for nothing
	bodyErr error              // why the body could not be read
}

// uncommon is what few requests have.
type uncommon struct {
	suspended *suspension        // a standard handler whose answer has not been sent
	rest      *restOfChain       // which it is the request of, behind standard middleware
	location  string             // where to, when no route takes this path but one like it
	slots     []slot             // places it has under limits
	encoding  *exchange.Encoding // of the answer that is being carried out
	decoded   bool               // the body is not in a content coding any more
	rewrite   rewrite.Match      // of the path, where there are rules for that
}

// more returns what the request has that few have.
func (r *Request) more() *uncommon {
	if r.uncommon == nil {
		r.uncommon = new(uncommon)
	}
	return r.uncommon
}

// rest returns what leads on to the action from standard middleware, nil where none does.
func (r *Request) rest() *restOfChain {
	if r.uncommon == nil {
		return nil
	}
	return r.uncommon.rest
}

// begin makes the request ready for the message in r.s.
func (r *Request) begin() {
	r.s.Route, r.s.Viewed, r.s.Watched = &r.app.server.Unmatched, false, len(r.app.observers) > 0
	r.route, r.depth, r.source, r.unread, r.told, r.options = nil, 0, FromAction, false, false, false
	r.ended.Set(false)
}

// matched makes e the route of the request.
func (r *Request) matched(e *endpoint) {
	r.route, r.s.Route = e, &e.shared
}

// alive panics, in builds with the race detector, when the request is used after its
// action has returned: in others it may be another request by then.
func (r *Request) alive() {
	if r.ended.IsSet() {
		panic("dunlin: a Request is used after its action has returned: it is another request by now. Copy what is needed before.")
	}
}

// end drops what the request held for its message. The loans of byte slices end here.
func (r *Request) end() {
	r.ended.Set(true)
	r.id = exchange.Identity{}
	if r.uncommon != nil {
		r.uncommon.rest, r.uncommon.decoded = nil, false
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

// Path returns the path that was matched, percent-decoded except for %2F and
// %25, so that an escaped slash is not taken for a separator.
func (r *Request) Path() string {
	r.alive()
	return r.own(r.s.Path)
}

// SentPath returns the path that the client sent, in the form of Path. It differs from Path where a rule of
// [App.Rewrite] has replaced the path.
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

// own returns a safe string of one that may be lent by the engine.
func (r *Request) own(s string) string {
	if !r.s.Lent || s == "" {
		return s
	}
	return r.s.Strings.Copy(view.Bytes(s))
}

// Host returns the host the request is for, with its port if the client sent one.
func (r *Request) Host() string {
	r.alive()
	return r.wire.Host()
}

// Route returns the pattern of the route that was matched, "" when none was.
func (r *Request) Route() string {
	r.alive()
	if r.route == nil {
		return ""
	}
	return r.route.shared.Pattern
}

// Param returns the named path parameter, unescaped; "" when the route has none of that name.
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
	// The path itself may be in scratch: what is appended must not touch it.
	var plain [128]byte
	return r.s.Strings.Copy(router.AppendValue(plain[:0], value))
}

// Header returns the first value of the named request header, "" when there is
// none. Names compare without regard to case.
func (r *Request) Header(name string) string {
	r.alive()
	if r.decoded() && exchange.AboutCoding(name) {
		return ""
	}
	s, _ := r.wire.Header(name)
	return s
}

// HeaderList returns all values of the named request header as one: where it was sent in several lines, they
// are joined by a comma and a space, those of Cookie by a semicolon and a space (RFC 9110 section 5.3, RFC
// 9113 section 8.2.3). It returns "" when there is none.
func (r *Request) HeaderList(name string) string {
	r.alive()
	if r.decoded() && exchange.AboutCoding(name) {
		return ""
	}
	return r.own(r.wire.List(name))
}

// HeaderBytes is HeaderList without a copy, for comparing. The slice must not be written to. It is valid
// until the body is read, the action blocks, or it returns.
func (r *Request) HeaderBytes(name string) []byte {
	r.alive()
	if r.decoded() && exchange.AboutCoding(name) {
		return nil
	}
	return view.Bytes(r.wire.List(name))
}

// Headers yields every request header, a name as often as it was sent.
func (r *Request) Headers() iter.Seq2[string, string] {
	r.alive()
	if r.decoded() {
		return func(yield func(name, value string) bool) {
			r.wire.Headers(func(name, value string) bool { return r.decoded() && exchange.AboutCoding(name) || yield(name, value) })
		}
	}
	return r.wire.Headers
}

// overlaid returns the names of the fields that WithHeaders has set, also in front of standard middleware.
func (r *Request) overlaid() (names []string) {
	if rest := r.rest(); rest != nil {
		names = rest.names
	}
	return append(names[:len(names):len(names)], exchange.Overlaid(r.wire)...)
}

// WithHeaders returns the answer of next to the request with other headers: for each of fields, the header of
// that name has the given value alone, or is absent if the value is "". It is for middleware. Once next has
// returned, the request has the client's headers again, also for the code that sends the response.
func (r *Request) WithHeaders(fields map[string]string, next Action) Response {
	r.alive()
	sent := r.wire
	r.wire = exchange.Overlay(sent, fields)
	defer func() { r.wire = sent }()
	return next(r)
}

// TLS returns what was agreed in the handshake of the connection, nil in clear text. It is shared
// by the requests of the connection and must not be changed. Behind a proxy it is the proxy's.
func (r *Request) TLS() *tls.ConnectionState {
	r.alive()
	return r.wire.TLS()
}

// Context returns the request's context: cancelled when the client hangs up,
// when the server is told to stop at once, when the timeout of the route has passed,
// and when the action has returned and its response, which may stream, has been sent. While
// events are sent ([SSE]) it is that of [Events.Context]. SetContext adds values to it.
func (r *Request) Context() context.Context {
	r.alive()
	return r.context()
}

// Std returns the request as net/http knows it, for libraries that want one. It
// is made when first asked for and valid until the action returns. Its body is
// that of the request, or what Bytes has read of it before.
func (r *Request) Std() *http.Request {
	r.alive()
	return r.stdRequest()
}

// Now returns the time. On an event loop it is when the loop's present turn began, mostly some microseconds
// ago, which spares a look at the clock. Once the action has blocked, and where there is no loop, it is
// time.Now.
func (r *Request) Now() time.Time {
	r.alive()
	return r.wire.Now()
}

// ID returns an identifier of this request, 26 characters that are unique but no secret, unless a
// middleware has set one with SetID.
func (r *Request) ID() string {
	r.alive()
	return r.identity()
}

// SetID makes ID return id.
func (r *Request) SetID(id string) {
	r.alive()
	r.setID(exchange.Named(id))
}
