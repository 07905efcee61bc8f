package dunlin

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/logqueue"
)

// Every answer to a request passes this place, whoever made it: an action, the app
// where no route matches, a timeout, a limit, an overloaded server, or the
// engine for what it could not read. Policies add headers to it, and observers learn
// what the client got. Two kinds of answers do not come here: those of net/http's own
// server to what it cannot read (400, 431, 505 and the like), which it sends without
// telling anybody, and those to connections that are refused before anything was
// read from them, which Stats counts.

// An AnswerInfo describes an answer and the request it is for. It is valid until the
// function that it was given to returns. What is not known of the request is empty: of
// one that could not be read at all, everything but the peer's address.
type AnswerInfo struct {
	r        *Request
	source   AnswerSource
	status   int
	bytes    int64
	duration time.Duration
	dropped  bool
	err      error
}

// AnswerSource says what made an answer.
type AnswerSource uint8

const (
	FromAction   AnswerSource = iota // the action of a route, or its middleware
	FromApp                          // what answers where no route matches: 404, 405, 406, OPTIONS, redirects
	FromPanic                        // a panic of either: the function given to Recover
	FromTimeout                      // Group.Timeout: the action goes on
	FromLimit                        // Route.Limit or LimitBy
	FromOverload                     // the request waited longer than Config.QueueTarget
	FromMemory                       // there was no memory to go on with the request
	FromProtocol                     // it was malformed, too large or came too slowly
)

// String returns the name: action, app, panic and so on.
func (s AnswerSource) String() string {
	names := [...]string{"action", "app", "panic", "timeout", "limit", "overload", "memory", "protocol"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("AnswerSource(%d)", uint8(s))
}

// Source returns what made the answer.
func (i *AnswerInfo) Source() AnswerSource {
	if i.source == FromAction && i.r.s.Route.NoRoute {
		return FromApp
	}
	return i.source
}

// Status returns the status code; 0 for a connection that was dropped instead.
func (i *AnswerInfo) Status() int { return i.status }

// Bytes returns the length of the body in bytes, -1 when that is not known: for an answer that is sent piece
// by piece. For a policy it is always -1.
func (i *AnswerInfo) Bytes() int64 { return i.bytes }

// Duration returns how long the answer took since the request had been read, see Latency; on net/http since
// routing began or, without observers of the app, since [Request.OnAnswer]. Of an answer that is sent piece
// by piece, sending is included. For a policy it is 0.
func (i *AnswerInfo) Duration() time.Duration { return i.duration }

// Dropped reports whether the client got no answer or only a part: it had hung up, as the action noticed by
// its context or by writing, or the connection was cut. A complete answer counts as given once it is made.
func (i *AnswerInfo) Dropped() bool { return i.dropped }

// Err returns the cause of a failure, see Response.Err.
func (i *AnswerInfo) Err() error { return i.err }

// Method returns the method of the request, as sent.
func (i *AnswerInfo) Method() string { return i.r.s.Method }

// Path returns the path of the request, see Request.Path.
func (i *AnswerInfo) Path() string { return i.r.Path() }

// SentPath returns the path that the client sent, see Request.SentPath.
func (i *AnswerInfo) SentPath() string { return i.r.SentPath() }

// Route returns the pattern of the route that was matched, "" when none was.
func (i *AnswerInfo) Route() string { return i.r.s.Route.Pattern }

// Host returns the host the request is for, with its port if the client sent one.
func (i *AnswerInfo) Host() string {
	if i.r.unread {
		return ""
	}
	return i.r.wire.Host()
}

// Header returns the first value of the named request header, "" when there is none.
func (i *AnswerInfo) Header(name string) string {
	if i.r.unread {
		return ""
	}
	s, _ := i.r.wire.Header(name)
	return s
}

// ID returns the identifier of the request, see Request.ID.
func (i *AnswerInfo) ID() string { return i.r.identity() }

// SetID makes ID return id, unless the request has an ID already.
func (i *AnswerInfo) SetID(id string) {
	i.r.shared.Lock()
	defer i.r.shared.Unlock()
	if i.r.id.IsZero() {
		i.r.id = exchange.Named(id)
	}
}

// Remote returns the address of the client, see Request.Remote.
func (i *AnswerInfo) Remote() netip.AddrPort { return i.r.client() }

// Secure reports whether the client used TLS, see Request.Secure.
func (i *AnswerInfo) Secure() bool { return i.r.secure() }

// Context returns the values that Request.SetContext has given the request, such as those of
// a trace. It never ends.
func (i *AnswerInfo) Context() context.Context { return i.r.lasting() }

// A Policy adds headers to an answer, such as those for cross-origin requests or
// security. It returns resp with them; status and body are not its to change. It
// runs on the goroutine that answers, which may be an event loop's: one that takes long
// is taken over like an action.
type Policy func(info *AnswerInfo, resp Response) Response

// Policy adds a policy for every answer of the app, also those that no action made: see
// [AnswerSource]. Policies come after all middleware, in the order in which they were
// added, before the head of the answer is sent. What a policy does wrong, such as a
// panic, is logged, and the answer goes without its headers. Policies belong before the
// first request.
func (a *App) Policy(p Policy) {
	if p == nil {
		panic("dunlin: Policy: nil function (called at " + callerPlace() + ")")
	}
	a.policies = append(a.policies, p)
}

// OnAnswer adds an observer, which is called once for each answer of the app when
// everything about it is known: for one that is sent piece by piece after the last
// piece, for others before they are sent. It is called on the goroutine that answers,
// which may be an event loop's: one that takes long is taken over like an action, and
// holds up its client alone. Observers may be called on several goroutines at once.
// They belong before the first request.
func (a *App) OnAnswer(f func(*AnswerInfo)) {
	if f == nil {
		panic("dunlin: OnAnswer: nil function (called at " + callerPlace() + ")")
	}
	a.observers = append(a.observers, f)
}

// OnAnswer has f called with what the client got, as [App.OnAnswer] does for every
// request: it is for middleware, which sees what the action returned, but not that it
// was late or that its stream broke. f may be called on another goroutine than
// the action's, while that runs on after a timeout, and must not use the request.
func (r *Request) OnAnswer(f func(*AnswerInfo)) {
	r.alive()
	if rest := r.rest(); rest != nil {
		rest.outside(func(o *Request) { o.OnAnswer(f) })
		return
	}
	r.s.Watched = true
	n := r.watched()
	r.shared.Lock()
	defer r.shared.Unlock()
	if n.since.IsZero() {
		n.since = time.Now()
	}
	n.observers = append(n.observers, f)
}

// watch is what a request has for its policies and observers, and other things that few have.
type watch struct {
	info      AnswerInfo
	observers []func(*AnswerInfo)
	since     time.Time // when it began, on net/http

	values  context.Context // of SetContext
	context *valuedContext  // ... with the request's own; made when it is first asked for
}

// watched returns the request's watch, which is made when it is first needed.
func (r *Request) watched() *watch {
	if r.watch == nil {
		w := new(watch)
		r.shared.Lock()
		r.watch = w
		r.shared.Unlock()
	}
	return r.watch
}

// setValues has observers know the values, those of requests in front of standard middleware, too.
func (r *Request) setValues(ctx context.Context) {
	w := r.watched()
	r.shared.Lock()
	w.values = ctx
	r.shared.Unlock()
	if rest := r.rest(); rest != nil {
		rest.outside(func(o *Request) { o.setValues(ctx) })
	}
}

// setID sets the identifier. An answer given while the action runs, of a route with a timeout, reads it, too, that of the outermost request.
func (r *Request) setID(id exchange.Identity) {
	if r.s.Route.Timeout > 0 {
		r.shared.Lock()
		r.id = id
		r.shared.Unlock()
		if rest := r.rest(); rest != nil {
			rest.outside(func(o *Request) { o.setID(id) })
		}
		return
	}
	r.id = id
}

// identity returns the identifier, and gives the request one if it has none.
func (r *Request) identity() string {
	if r.s.Route.Timeout > 0 {
		r.shared.Lock()
		defer r.shared.Unlock()
		if rest := r.rest(); rest != nil && r.id.IsZero() {
			rest.outside(func(o *Request) { r.id = exchange.Named(o.identity()) })
		}
	}
	return r.id.Text(&r.s.Strings)
}

// takeWatch gives r, the request of an answer that is made while another action still
// has from, the identity and the observers of that.
func (r *Request) takeWatch(from *Request) {
	r.s.Follow(&from.s)
	from.shared.Lock()
	defer from.shared.Unlock()
	from.id.Number(&r.s.Strings) // it has one from here on
	r.id = from.id
	if from.watch == nil || len(from.watch.observers) == 0 && from.watch.since.IsZero() && from.watch.values == nil {
		return
	}
	w := r.watched()
	w.values = from.watch.values
	w.observers = append(w.observers[:0], from.watch.observers...)
	w.since = from.watch.since
	from.watch.observers = from.watch.observers[:0]
	r.s.Watched = r.s.Watched || len(w.observers) > 0
}

// amends reports whether headers are added to all answers.
func (a *App) amends() bool { return len(a.policies) > 0 || a.secure != nil && a.secure.hsts != nil }

// apply has the policies add headers to an answer that has not been claimed.
func (a *App) apply(r *Request, resp *Response) {
	if !a.amends() || r.rest() != nil {
		return
	}
	if len(a.policies) > 0 {
		a.applyPolicies(r, resp)
	}
	if a.secure != nil && a.secure.hsts != nil && r.secure() {
		*resp = resp.DefaultHeaders(a.secure.hsts)
	}
}

func (a *App) applyPolicies(r *Request, resp *Response) {
	info := &r.watched().info
	*info = AnswerInfo{r: r, source: r.source, status: resp.a.Status(), bytes: -1, err: resp.Err()}
	for _, p := range a.policies {
		changed := *resp
		a.callPolicy(p, info, &changed)
		if changed.a.Failed() && !resp.a.Failed() {
			a.log.Error("a policy adds what may not be sent", "error", logqueue.Error(changed.Err()))
		} else if changed.a.Kind() != resp.a.Kind() || changed.a.Status() != resp.a.Status() || changed.a.Body != resp.a.Body {
			a.log.Error("a policy changed more than headers", "from", resp.String(), "to", changed.String())
		} else {
			*resp = changed
		}
	}
}

// callPolicy leaves the answer as it was when the policy panics.
func (a *App) callPolicy(p Policy, info *AnswerInfo, resp *Response) {
	defer func() {
		if v := recover(); v != nil {
			a.log.Error("panic in a policy", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	*resp = p(info, *resp)
}

// applyLate is apply for an answer that is made when it is sent, and has been claimed. One whose head has gone out has had it.
func (a *App) applyLate(r *Request, resp *Response) {
	if kind := resp.a.Kind(); !a.amends() || r.rest() != nil || kind == exchange.Sent || kind == exchange.Abort {
		return
	}
	if resp.a.Own() == nil {
		a.apply(r, resp)
	} else {
		resp.a.Reopen()
		a.apply(r, resp)
	}
	if resp.a.Own() != nil {
		resp.a.Claim()
	}
}

// observe tells the observers about an answer whose headers are settled. took is below 0
// where the watch has the time.
func (a *App) observe(r *Request, resp *exchange.Answer, took time.Duration) {
	w := r.watched()
	if took < 0 {
		took = time.Since(w.since)
	}
	w.info = AnswerInfo{r: r, source: r.source, status: resp.Status(), bytes: sentBytes(r, resp), duration: took, dropped: resp.Class() == 0}
	if resp.Kind() == exchange.Abort {
		w.info.status = 0
	}
	if own := resp.Own(); own != nil {
		w.info.err = own.Err
	}
	for _, f := range a.observers {
		a.callObserver(f, &w.info)
	}
	for _, f := range w.observers {
		a.callObserver(f, &w.info)
	}
	w.forget()
}

// forget ends what the watch has of its request.
func (w *watch) forget() {
	clear(w.observers)
	w.observers, w.since, w.info = w.observers[:0], time.Time{}, AnswerInfo{}
}

func (a *App) callObserver(f func(*AnswerInfo), info *AnswerInfo) {
	defer func() {
		if v := recover(); v != nil {
			a.log.Error("panic in an observer", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	f(info)
}

// sentBytes returns how many bytes of body the client gets, -1 when that is not known.
func sentBytes(r *Request, resp *exchange.Answer) int64 {
	switch {
	case resp.Kind() == exchange.Sent || resp.Kind() == exchange.Abort:
		return -1
	case r.s.Method == http.MethodHead || !exchange.BodyAllowed(resp.Status()):
		return 0
	}
	return int64(len(resp.Body))
}
