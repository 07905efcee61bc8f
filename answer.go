package dunlin

import (
	"cmp"
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/jsonwire"
	"github.com/dunlinhttp/dunlin/internal/logqueue"
	"github.com/dunlinhttp/dunlin/internal/problem"
	"github.com/dunlinhttp/dunlin/internal/view"
	"github.com/dunlinhttp/dunlin/observe"
)

// All answers to requests pass through this file, regardless of their origin: an action, the app if no route matches, a
// timeout, a limit, an overload, or the engine for a malformed request. Features add headers to them, and observers
// learn the result.
//
// There are two exceptions. net/http's own server answers malformed requests (400, 431, 505 and the like)
// without a call of this file. Connections that are refused before a byte is read are only counted, in Stats.

// An AnswerInfo describes an answer and its request. It is valid until the function that received
// it returns. Unknown facts are empty: for a request that could not be read, only the address of
// the peer is known.
type AnswerInfo struct {
	r        *Request
	source   exchange.Source
	status   int
	bytes    int64
	duration time.Duration
	dropped  bool
	err      error
}

// Source returns the origin of the answer.
func (i *AnswerInfo) Source() observe.Source {
	if i.source == exchange.FromAction && i.r.s.Route.NoRoute {
		return observe.SourceApp
	}
	return observe.Source(i.source)
}

// Status returns the status code, or 0 for a dropped connection.
func (i *AnswerInfo) Status() int { return i.status }

// Bytes returns the length of the body in bytes. It returns -1 for an answer that is streamed, and
// in [Hooks].Headers.
func (i *AnswerInfo) Bytes() int64 { return i.bytes }

// Duration returns the time from the end of reading the request to the answer. On net/http the
// time starts when routing begins or, if no feature observes the answer, at the call of
// [Request.OnAnswer]. It includes the sending of a streamed answer. In [Hooks].Headers it is 0.
func (i *AnswerInfo) Duration() time.Duration { return i.duration }

// Dropped reports whether the client received no answer or only a part of it, because the client
// disconnected or the connection was cut. A disconnection is known only if the context or a write
// reported it to the action. An answer that is not streamed counts as received when it has been made.
func (i *AnswerInfo) Dropped() bool { return i.dropped }

// Err returns the cause of a failure, see Response.Err.
func (i *AnswerInfo) Err() error { return i.err }

// Method returns the method of the request, as sent.
func (i *AnswerInfo) Method() string { return i.r.s.Method }

// Path returns the path of the request, see Request.Path.
func (i *AnswerInfo) Path() string { return i.r.Path() }

// SentPath returns the path that the client sent, see Request.SentPath.
func (i *AnswerInfo) SentPath() string { return i.r.SentPath() }

// Route returns the pattern of the matched route, or "" if no route matched.
func (i *AnswerInfo) Route() string { return i.r.s.Route.Pattern }

// Host returns the host of the request, with the port if the client sent one.
func (i *AnswerInfo) Host() string {
	if i.r.unread {
		return ""
	}
	return i.r.wire.Host()
}

// Header returns the first value of the named request header, or "" if there is none.
func (i *AnswerInfo) Header(name string) string {
	if i.r.unread {
		return ""
	}
	s, _ := i.r.wire.Header(name)
	return s
}

// ID returns the identifier of the request, see Request.ID.
func (i *AnswerInfo) ID() string { return i.r.identity() }

// Remote returns the address of the client, see Request.Remote.
func (i *AnswerInfo) Remote() netip.AddrPort { return i.r.client() }

// Secure reports whether the client used TLS, see Request.Secure.
func (i *AnswerInfo) Secure() bool { return i.r.secure() }

// Context returns the values given to [Request.SetContext], such as those of a trace. It is never
// cancelled.
func (i *AnswerInfo) Context() context.Context { return i.r.logContext() }

// OnAnswer calls f once with the answer to this request, like [Hooks].Observe. So middleware learns of a timeout or a broken
// stream, which the Response that it sees does not show. After a timeout f may run on another goroutine while the action is still
// running. f must not use the request.
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

// watch holds the state of a request for features, observers and SetContext.
type watch struct {
	info      AnswerInfo
	observers []func(*AnswerInfo)
	since     time.Time // start of the request, on net/http

	values  context.Context // the values given to SetContext
	context *valuedContext  // the request's context with these values; made on first use
}

// watched returns the watch of the request and allocates it on first use.
func (r *Request) watched() *watch {
	if r.watch == nil {
		w := new(watch)
		r.shared.Lock()
		r.watch = w
		r.shared.Unlock()
	}
	return r.watch
}

// setValues publishes the values of ctx to observers, including those of the requests outside
// standard middleware.
func (r *Request) setValues(ctx context.Context) {
	w := r.watched()
	r.shared.Lock()
	w.values = ctx
	r.shared.Unlock()
	if rest := r.rest(); rest != nil {
		rest.outside(func(o *Request) { o.setValues(ctx) })
	}
}

// setID sets the ID. On a route with a timeout, an answer made while the action is running reads the ID of the outermost
// request. So setID holds the lock, and also sets the ID of the requests outside of standard middleware.
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

// identity returns the ID of the request and generates one on first use.
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

// takeWatch moves the ID and the observers of from to r. r is the request of an answer that is made
// while the action of from is still running.
func (r *Request) takeWatch(from *Request) {
	r.s.Follow(&from.s)
	from.shared.Lock()
	defer from.shared.Unlock()
	from.id.Number(&r.s.Strings) // generates an ID if there is none
	r.id = from.id
	r.within(from.features())
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

// apply lets features add headers to an answer that the sender has not claimed yet, and formats a problem. Features come first,
// because they may set the ID of the request. featuresApplied is the result of Request.featuresApplied for the answer of the
// action, and false for other answers.
func (a *App) apply(r *Request, resp *Response, featuresApplied bool) {
	if !a.amending {
		return
	}
	var details error
	if a.config.Problems != nil {
		details = resp.a.Problem()
	}
	if r.rest() == nil {
		if !featuresApplied || a.amendsAll {
			a.addHeaders(r, resp, featuresApplied)
		}
		if a.secure != nil && a.secure.hsts != nil && r.secure() {
			*resp = resp.defaultHeaders(a.secure.hsts)
		}
	}
	if details != nil {
		*resp = a.formatted(r, *resp, details)
	}
}

// featuresApplied reports whether all features wrap the action of the request. If so, the features of package middleware have added
// their headers to the answer of the action.
func (r *Request) featuresApplied() bool {
	return r.source != exchange.FromLimit && r.features().Count() == r.app.routes.features.Count()
}

// addHeaders lets features add headers to an unclaimed answer, the innermost feature first. If featuresApplied is set, it
// skips fusible features, which have already added their headers.
func (a *App) addHeaders(r *Request, resp *Response, featuresApplied bool) {
	var info *AnswerInfo
	for _, some := range [][]installed{r.features().OfGroups(), a.routes.features.OfApp()} {
		for _, f := range slices.Backward(some) {
			if f.Headers == nil || featuresApplied && f.fusible != nil {
				continue
			}
			if info == nil {
				info = &r.watched().info
				*info = AnswerInfo{r: r, source: r.source, status: resp.a.Status(), bytes: -1, err: resp.Err()}
			}
			changed := *resp
			a.callHeaders(f.Headers, info, &changed)
			if changed.a.Failed() && !resp.a.Failed() {
				a.log.Error("feature added an invalid header field", "error", logqueue.Error(changed.Err()))
			} else if changed.a.Kind() != resp.a.Kind() || changed.a.Status() != resp.a.Status() || changed.a.Body != resp.a.Body {
				a.log.Error("feature changed more than headers", "from", resp.String(), "to", changed.String())
			} else {
				*resp = changed
			}
		}
	}
}

// callHeaders leaves the answer unchanged if f panics.
func (a *App) callHeaders(f func(*AnswerInfo, Response) Response, info *AnswerInfo, resp *Response) {
	defer a.contain("panic in the Headers of a feature")
	*resp = f(info, *resp)
}

// applyLate is apply for a deferred answer, which was claimed before it is complete. It does nothing if
// the head has been sent.
func (a *App) applyLate(r *Request, planned *exchange.Answer) {
	if kind := planned.Kind(); !a.amending || r.rest() != nil || kind == exchange.Sent || kind == exchange.Abort {
		return
	}
	if planned.Own() != nil {
		planned.Reopen()
	}
	resp := Response{*planned}
	a.apply(r, &resp, false)
	if *planned = resp.a; planned.Own() != nil {
		planned.Claim()
	}
}

// observe calls the observers with an answer whose headers are final. If took is negative, the duration is the time since
// watch.since.
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
		w.info.err, own.Err = own.Err, nil // see settle
	}
	for _, some := range [][]installed{a.routes.features.OfApp(), r.features().OfGroups()} {
		for _, f := range some {
			if f.Observe != nil {
				a.callObserver(f.Observe, &w.info)
			}
		}
	}
	for _, f := range w.observers {
		a.callObserver(f, &w.info)
	}
	w.forget()
}

// forget clears the observers and the info of the request.
func (w *watch) forget() {
	clear(w.observers)
	w.observers, w.since, w.info = w.observers[:0], time.Time{}, AnswerInfo{}
}

func (a *App) callObserver(f func(*AnswerInfo), info *AnswerInfo) {
	defer a.contain("panic in an observer")
	f(info)
}

// sentBytes returns the length of the body in bytes, or -1 if it is unknown.
func sentBytes(r *Request, resp *exchange.Answer) int64 {
	switch {
	case resp.Kind() == exchange.Sent || resp.Kind() == exchange.Abort:
		return -1
	case r.s.Method == http.MethodHead || !exchange.BodyAllowed(resp.Status()):
		return 0
	}
	return int64(len(resp.Body))
}

// A detailed error makes its own answer, which is a problem.
type detailed interface {
	error
	ProblemDetails() *ProblemDetails
}

// A ProblemFormat is a format of all problems of an app, see [FormatProblems].
type ProblemFormat struct {
	media  string
	body   reflect.Type
	append func(b []byte, info *AnswerInfo, p *ProblemDetails) ([]byte, error)
}

// FormatProblems returns a format for [Config].Problems. Each problem is sent as the JSON of the value that body
// returns, with the given media type, such as "application/json" or "application/vnd.api+json". The status and the
// headers of the answer do not change. Nil slices and maps are written as [] and {}, as by package typed.
//
// The answer to a problem with a Type also has a Link field with that type, `Link: <email-taken>; rel="type"` (RFC 6903
// section 6), because the value of body may lack the type. Package typed recognizes a fault by this field.
//
// The fields Status and Title of the problem are filled in. errors.As on the problem finds the error that an action
// returned. body must not change the problem and info, which are valid until body returns. body must be safe for
// concurrent use. Its result must not contain the Cause, because the client receives it.
func FormatProblems[T any](mediaType string, body func(info *AnswerInfo, p *ProblemDetails) T) *ProblemFormat {
	if _, _, err := mime.ParseMediaType(mediaType); err != nil || exchange.CheckField("Content-Type", mediaType) != nil || body == nil {
		panic(fmt.Sprintf("dunlin: FormatProblems(%q): invalid media type, or nil function (called at %s)", mediaType, callerPlace()))
	}
	return &ProblemFormat{mediaType, reflect.TypeFor[T](), func(b []byte, info *AnswerInfo, p *ProblemDetails) ([]byte, error) {
		v := body(info, p)
		return jsonwire.Append(b, &v, jsonwire.Options{NilAsEmpty: true, View: jsonwire.Answers})
	}}
}

// ProblemFormat implements ext.ProblemFormat.
func (*inside) ProblemFormat(f *ProblemFormat) (mediaType string, body reflect.Type) {
	return f.media, f.body
}

// formatted returns an answer that describes a problem in the format of Config.Problems. If the function of the format fails,
// formatted returns resp unchanged and logs the failure, once for each request.
func (a *App) formatted(r *Request, resp Response, details error) (made Response) {
	if r.uncommon != nil && r.uncommon.unformatted {
		return resp
	}
	made = resp
	returned := false
	defer func() {
		if !returned {
			r.more().unformatted = true
		}
	}()
	defer a.contain("panic in the format of problems")
	p, ok := details.(*ProblemDetails)
	if !ok {
		p = details.(detailed).ProblemDetails()
	}
	q := *p
	q.Status, q.Title = resp.a.Status(), cmp.Or(p.Title, problem.Title(resp.a.Status()))
	info := &AnswerInfo{r: r, source: r.source, status: q.Status, bytes: -1, err: resp.Err()}
	body, err := a.config.Problems.append(nil, info, &q)
	if returned = err == nil; !returned {
		a.log.Error("the format of problems returned an invalid value", "error", logqueue.Error(err))
		return resp
	}
	typed := resp.push(exchange.Field{Name: "Content-Type", Value: a.config.Problems.media, Replace: true})
	if isURI(q.Type) {
		typed = typed.push(exchange.Field{Name: "Link", Value: "<" + q.Type + `>; rel="type"`})
	}
	if typed.a.Failed() && !resp.a.Failed() {
		return resp
	}
	typed.a.SetBody(view.String(body))
	return typed
}

// isURI reports whether s is not empty and has only characters of a URI reference (RFC 3986 section 2).
func isURI(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune("\"<>\\^`{|}", c) })
}

// Formatted returns resp, an answer of package middleware that describes p, in the format of Config.Problems.
func (*inside) Formatted(r *Request, resp Response, p *ProblemDetails) Response {
	if r.app.config.Problems == nil {
		return resp
	}
	return r.app.formatted(r, resp, p)
}

// SetID implements ext.SetID.
func (*inside) SetID(r *Request, id string) {
	r.alive()
	r.setID(exchange.Named(id))
}
