package dunlin

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// WithTimeout returns a group whose routes are answered with 503 if their action has not returned after d. Zero removes
// the timeout. The time ends when the answer begins: a streamed response may take any time.
//
// The context of the request is cancelled at the timeout, so that the action can stop. Once the answer has begun the context
// has no deadline: a stream or a hijacked connection continues until the client disconnects.
func (g *Group) WithTimeout(d time.Duration) *Group {
	if d < 0 {
		panic(fmt.Sprintf("dunlin: WithTimeout(%v): it must not be negative (called at %s)", d, callerPlace()))
	}
	sub := g.derive()
	sub.timeout = min(d, longest)
	return sub
}

// Timeout sets the timeout of one route, see Group.WithTimeout. Call it before the first request of the route.
func (r *Route) Timeout(d time.Duration) *Route {
	if d < 0 {
		panic(fmt.Sprintf("dunlin: Timeout(%v): it must not be negative (called at %s)", d, callerPlace()))
	}
	r.shared.Timeout = min(d, longest)
	return r
}

// A limit bounds how many requests of a set of routes are served at once, in total or for each key.
type limit struct {
	app     *App
	most    int
	pattern string // pattern of the route, or prefix of the group, for the log
	refusal Response
	reason  admission.Reason

	running atomic.Int64 // number of running requests, for a limit without keys

	// These fields are for a limit for each client: by key, or by address if key is nil or returns "".
	key       func(*Request) string
	keys      *admission.Keys
	addresses *admission.Addresses // nil for a limit without keys
}

// A slot is a request that counts towards a limit.
type slot struct {
	limit *limit
	key   string
	ip    netip.Addr // address of the client, if key is ""
}

// Limit limits how many requests of the route are served at once, on all connections. Further requests are answered with
// 503 and Retry-After, before any middleware runs. A request counts until its action has returned, even if a timeout
// has answered it. A stream counts until it has ended. Call Limit before the first request of the route.
func (r *Route) Limit(n int) *Route {
	r.guard(r.app.newLimit("Limit", n, r.shared.Pattern))
	return r
}

// LimitBy limits how many requests of the route are served at once for each client. Further requests are answered with
// 429 and Retry-After. key returns a key of the client. If key is nil, or returns "", clients are distinguished by their
// address, see Request.Remote, or by the first 64 bits of an IPv6 address. key runs before any middleware and must check
// its input, because a client with many keys gets the limit many times. Otherwise LimitBy is like Limit.
func (r *Route) LimitBy(key func(*Request) string, n int) *Route {
	r.guard(r.app.newLimitBy("LimitBy", key, n, r.shared.Pattern))
	return r
}

// WithLimit returns a group whose routes together serve at most n requests at once, see
// Route.Limit.
func (g *Group) WithLimit(n int) *Group {
	return g.limited(g.app.newLimit("WithLimit", n, g.prefix))
}

// WithLimitBy returns a group whose routes together serve at most n requests at once
// for each key, see Route.LimitBy.
func (g *Group) WithLimitBy(key func(*Request) string, n int) *Group {
	return g.limited(g.app.newLimitBy("WithLimitBy", key, n, g.prefix))
}

func (g *Group) limited(l *limit) *Group {
	sub := g.derive()
	sub.limits = append(slices.Clip(sub.limits), l)
	return sub
}

func (a *App) newLimit(what string, n int, pattern string) *limit {
	if n < 1 {
		panic(fmt.Sprintf("dunlin: %s(%d): it must be positive (called at %s)", what, n, callerPlace()))
	}
	return &limit{
		app: a, most: n, pattern: pattern, reason: admission.RouteLimit,
		refusal: notNow(http.StatusServiceUnavailable, fmt.Sprintf("too many concurrent requests for this resource: the limit is %d", n)),
	}
}

func (a *App) newLimitBy(what string, key func(*Request) string, n int, pattern string) *limit {
	l := a.newLimit(what, n, pattern)
	l.reason, l.key = admission.KeyLimit, key
	l.refusal = notNow(http.StatusTooManyRequests, fmt.Sprintf("too many concurrent requests from this client: the limit is %d", n))
	l.addresses = admission.NewAddresses(n)
	if key != nil {
		l.keys = admission.NewKeys(n)
	}
	return l
}

// guard adds limits to the endpoint.
func (e *endpoint) guard(limits ...*limit) {
	if len(e.limits) == 0 && len(limits) > 0 {
		act := e.action
		e.action = func(r *Request) Response { return e.guarded(act, r) }
	}
	e.limits = append(e.limits, limits...)
}

// guarded runs the action if all limits have room for the request.
func (e *endpoint) guarded(act Action, r *Request) (resp Response) {
	defer func() {
		if resp.a.Kind() != exchange.Later { // settle releases the slots then; after a panic this is the zero Response
			r.releaseLimits()
		}
	}()
	for _, l := range e.limits {
		if !l.acquire(r) {
			r.source = exchange.FromLimit
			return l.refusal
		}
	}
	return act(r)
}

// acquire counts the request towards the limit. It returns false if the limit is reached.
func (l *limit) acquire(r *Request) bool {
	s := slot{limit: l}
	if l.key != nil {
		s.key = l.key(r)
	}
	taken := true
	switch {
	case s.key != "":
		taken = l.keys.Take(s.key)
	case l.addresses != nil:
		s.ip = r.Remote().Addr()
		taken = l.addresses.Take(s.ip)
	default:
		if taken = l.running.Add(1) <= int64(l.most); !taken {
			l.running.Add(-1)
		}
	}
	if taken {
		u := r.more()
		u.slots = append(u.slots, s)
		return true
	}
	if n, due := l.app.shed.Note(l.reason); due {
		l.app.asyncLog.Warn("requests refused by a limit", "reason", l.reason.String(), "limit", l.most, "route", l.pattern, "count", n)
	}
	return false
}

// releaseLimits releases the slots of the request.
func (r *Request) releaseLimits() {
	u := r.uncommon
	if u == nil || len(u.slots) == 0 {
		return
	}
	for _, s := range u.slots {
		switch l := s.limit; {
		case s.key != "":
			l.keys.Release(s.key)
		case l.addresses != nil:
			l.addresses.Release(s.ip)
		default:
			l.running.Add(-1)
		}
	}
	clear(u.slots)
	u.slots = u.slots[:0]
}

// Critical exempts the route's requests from refusals in an overload, and serves them before other requests that wait
// for a goroutine. Use it for health checks and diagnostics. Limits of the route still apply. Call it before the first
// request of the route.
func (r *Route) Critical() *Route {
	r.shared.Critical = true
	return r
}

// notNow returns an answer with Retry-After: 1 that refuses a request. It may be sent any number of times.
func notNow(status int, detail string) Response {
	p := &ProblemDetails{Status: status, Detail: detail}
	body, _ := p.append(nil) // only extensions can fail
	headers := NewHeaderBlock("Content-Type", "application/problem+json", "Cache-Control", "no-store", "Retry-After", "1")
	resp := plain(status, headers, string(body))
	resp.a.SetProblem(p)
	return resp
}
