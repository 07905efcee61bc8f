//go:build linux

package loophttp

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/clientaddr"
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/looph2"
	"github.com/dunlinhttp/dunlin/internal/request"
)

// A handler implements HTTP/1.1 for the engine. Each app has one handler.
//
// Between two requests the Proto of a connection is nil. While a head or a small body is incomplete, Proto is an *unfinished.
// All other state is in the driver's wire and lasts for one call.
type handler struct {
	server  *exchange.Server
	proxies *clientaddr.Source // copy of the server's field, for locality
	limits  http1.Limits
	context context.Context // parent of the contexts of requests
	late    exchange.Answer // answer to a request that has waited too long

	h2  *looph2.Handler // nil if another server serves HTTP/2
	h2c bool            // serve HTTP/2 in clear text too

	upgrades bool // accept upgrades from HTTP/1.1, see upgrade.go

	early    atomic.Int32 // number of actions that began before a small body was complete
	maxEarly int32

	bodies     admission.FreeList[[]byte] // free buffers of smallBody bytes, see unfinished
	keptBodies int                        // maximum length of bodies
}

// newHandler returns the handler of a server. The parent of all contexts has the value http.ServerContextKey, as with net/http:
// httputil.ReverseProxy aborts a partial answer only if it is set.
func newHandler(s *exchange.Server, maxConcurrent int) *handler {
	h := &handler{server: s, proxies: s.Proxies, limits: http1.DefaultLimits()}
	h.limits.MaxHead = s.MaxHead
	h.limits.MaxFields = s.MaxHeaders
	h.limits.MaxTarget = s.MaxHead
	h.maxEarly = int32(max(maxConcurrent/earlyShare, 1))
	h.keptBodies = int(min(s.Budget.Bound()/bodyShare/smallBody, maxBodies))
	h.late = request.Overdue(s)
	h.context = context.WithValue(context.Background(), http.ServerContextKey, &http.Server{Handler: s.Handler})
	h.h2c, h.upgrades = s.H2C, s.H2CUpgrade
	h.h2 = looph2.NewHandler(s, h.context)
	return h
}

// dropFree leaves the free buffers to the garbage collector and returns their size in bytes.
func (h *handler) dropFree() int64 { return smallBody * int64(len(h.bodies.TakeAll())) }

const (
	// readBuffer is the size of a driver's read buffer, in bytes.
	readBuffer = 64 << 10
	// smallBody is the maximum size, in bytes, of a body that is gathered before its action runs, see gather.go. An action
	// reads a larger body itself, on a goroutine of its own.
	smallBody = 64 << 10
	// maxTurnOutput is the number of bytes of answers to pipelined requests that a driver gathers before it sends them.
	maxTurnOutput = 64 << 10
	// ownedBody is the minimum length, in bytes, of a body that is sent without copying it after its head.
	ownedBody = 8 << 10
)

// visitsAfterLong is the number of wary visits of a driver after a long one.
const visitsAfterLong = 64

// NewScratch returns a wire for a driver.
func (h *handler) NewScratch() engine.Scratch { return h.newWire() }

func (h *handler) newWire() *wire {
	x := &wire{handler: h}
	x.count.On = h.server.Counting.Load()
	x.Init(x, h.server.Pipeline)
	x.State.Numbers = true
	return x
}

// Data answers all complete requests in in, in order.
func (h *handler) Data(d *engine.Driver, c *engine.Conn, in []byte) (consumed int) {
	x := d.Scratch.(*wire)
	if c.Notes&engine.Begun == 0 {
		if p, wait := h.find(x, d, c, in); wait {
			return 0
		} else if p != nil {
			return d.SwitchAtOnce(c, p, in)
		}
	}
	if invariants.Enabled {
		x = x.renewed(d)
	}
	x.use(d, c)
	x.given, x.moved = int32(len(in)), false
	x.count.Since = d.Arrived()
	consumed = h.serve(x, in)
	d.Scratch.(*wire).count.Flush(d)
	return consumed
}

// renewed gives each request a new wire in builds with the race detector, so that a use of a wire after its request ended is
// detected.
func (x *wire) renewed(d *engine.Driver) *wire {
	if !x.Call.Ended() {
		return x
	}
	y := x.handler.newWire()
	y.given, y.moved, y.count, y.wary = x.given, x.moved, x.count, x.wary
	if x.Conn != nil {
		y.use(d, x.Conn)
	}
	d.Scratch = y
	return y
}

// serve is the HTTP/1.1 part of Data.
func (h *handler) serve(x *wire, in []byte) (consumed int) {
	d, c := x.d, x.Conn
	visit := request.BeginVisit(&x.wary)
	for {
		n, next := x.serveNext(in[consumed:])
		consumed += n
		switch next {
		case moreRequests:
			if consumed == len(in) {
				c.SetDeadline(h.server.IdleTimeout)
				return consumed
			}
			visit.Served++
			if visit.Due() && d.Inline() && visit.CheckTime(d.Clock(), d.VisitTime()) {
				x.wary = visitsAfterLong
			}
			if x.moved || d.Gathered() >= maxTurnOutput || visit.Over {
				d.Again()
				return consumed
			}
			if invariants.Enabled {
				x = x.renewed(d)
			}
		case needInput, connectionOver, changedProtocol:
			return consumed
		case goesToBackground:
			d.Background()
			return consumed
		case needWorker:
			if x.State.Route.Critical {
				d.HandOffFirst()
			} else {
				d.HandOff()
			}
			return consumed
		}
	}
}

// progress is the next step after one step of a connection.
type progress uint8

const (
	moreRequests     progress = iota // a request was answered
	needInput                        // an unfinished request waits for bytes
	needWorker                       // a worker must run the next request
	goesToBackground                 // Background completes the request
	connectionOver                   // the connection closes after its output is sent, or it was hijacked
	changedProtocol                  // the connection has switched to HTTP/2 or another protocol
)

// EOF ends a connection whose client has closed its sending side. All complete requests have been answered.
func (h *handler) EOF(d *engine.Driver, c *engine.Conn, in []byte) {
	if u, ok := c.Proto.(*unfinished); ok && u.complete {
		x := d.Scratch.(*wire)
		x.use(d, c)
		x.count.Since = d.Now()
		x.knowHead(u)
		x.refuse(http.StatusBadRequest, "the connection was closed during the request body")
	}
}

// Timeout answers 408 to a client that is too slow with a head or a small body. The engine closes idle connections silently.
func (h *handler) Timeout(d *engine.Driver, c *engine.Conn, in []byte) {
	u, ok := c.Proto.(*unfinished)
	if !ok {
		return
	}
	server := h.server
	reason, what := admission.SlowHead, server.SlowHead()
	if u.complete {
		if !d.Evicting() && !u.waitedLong(d, c, &server.Settings) {
			return
		}
		reason, what = admission.SlowBody, server.SlowBody()
	}
	server.NoteSlow(reason, c.RemoteAddr(), what)
	x := d.Scratch.(*wire)
	x.use(d, c)
	x.count.Since = d.Now()
	x.head.Method = u.head.Method
	x.knowHead(u)
	x.refuse(http.StatusRequestTimeout, what)
}

// Detached counts a request whose action blocks as in flight, and records the wait in the route's BlockingStat, before the action
// returns. The wait of a function that makes a streamed response is recorded separately: after such waits, later streamed responses
// of the route begin outside the loop.
func (x *wire) Detached(collected bool) (waits bool) {
	if x.Phase.Routing() {
		x.inFlight.Begin(x.count.On, &x.handler.server.Unmatched.Counts) // the request is not routed yet
		return true
	}
	x.inFlight.Begin(x.count.On, &x.State.Route.Counts)
	route, streams := x.State.Route, x.Phase.Producing()
	switch {
	case route.NoRoute:
	case x.body == startedEarly: // the action may be waiting for its client
	case streams:
		route.Streams.TakenOver(collected, x.d.Clock())
	default:
		route.Counts.Takeovers.Add(1)
		route.Blocking.TakenOver(collected, x.d.Clock())
	}
	return !x.Phase.Answering()
}

// Refused answers a client for whose input there is no memory. The input is a part of a request, or waits to be served.
func (h *handler) Refused(d *engine.Driver, c *engine.Conn, in []byte) {
	x := d.Scratch.(*wire)
	if c.Notes&engine.Begun == 0 && c.Secure() {
		if p, _ := h.find(x, d, c, in); p != nil { // the first TLS record is incomplete
			c.Switch(p)
			p.Evicted(d, c)
			return
		}
	}
	x.use(d, c)
	x.count.Since = d.Now()
	u, _ := c.Proto.(*unfinished)
	problem := h.server.Pipeline.NoMemory("the request", c.Met())
	x.keepHead(u, in)
	if u != nil {
		c.Proto = nil
		u.release()
	}
	if d.Inline() && x.Call.Hooked() {
		// While evicting, a loop cannot be taken over. User code runs in the background instead.
		x.planned = &planned{refusal: problem}
		d.Background()
		return
	}
	x.refuseWith(problem, exchange.FromMemory)
}

// Pended records the number of bytes of the answer that the client did not accept at once.
func (h *handler) Pended(d *engine.Driver, bytes int64) {
	d.Scratch.(*wire).State.Route.Pended(bytes)
}

// Abandoned answers for an action that ended its goroutine (runtime.Goexit) instead of returning. Panics of actions are handled
// elsewhere.
func (h *handler) Abandoned(d *engine.Driver, c *engine.Conn, cause any) {
	x := d.Scratch.(*wire)
	x.use(d, c)
	x.CloseBody()
	x.inFlight.End()
	counted := exchange.Bare(0, exchange.Abort)
	if x.sending == unbegun && cause == nil {
		counted = exchange.Bare(http.StatusInternalServerError, exchange.Complete)
	}
	x.countAnswer(&counted)
	x.count.Flush(x.d)
	if x.sending != unbegun {
		x.cut()
		if x.State.Watched {
			x.observe(exchange.Bare(0, exchange.Abort))
		}
	} else if cause == nil {
		h.server.Log.Error("an action ended its goroutine instead of returning", "route", x.State.Route.Pattern)
		x.sendAlone(h.server.Pipeline.Answer(h.server.Pipeline.Problem(http.StatusInternalServerError, "", nil)), exchange.FromPanic)
	}
	x.abandon()
	d.Scratch = h.NewScratch() // the action may have passed the request to other goroutines
}

// Closed releases the unfinished request of a closed connection.
func (h *handler) Closed(c *engine.Conn) {
	if u, ok := c.Proto.(*unfinished); ok {
		c.Proto = nil
		u.release()
	}
}

// refuse answers an invalid request with a problem and then closes the connection. x.head.Method is the method of the request,
// if known.
func (x *wire) refuse(status int, detail string) progress {
	return x.refuseWith(x.handler.server.Pipeline.Problem(status, detail, nil), exchange.FromProtocol)
}

func (x *wire) refuseWith(problem error, source exchange.Source) progress {
	x.handler.server.Refused.Add(1)
	resp := x.handler.server.Pipeline.Answer(problem)
	x.countAnswer(&resp)
	x.count.Flush(x.d)
	x.sendAlone(resp, source)
	x.Call.End() // the next request must not inherit its state, such as the identifier
	return connectionOver
}

// sendAlone sends a problem and then closes the connection.
func (x *wire) sendAlone(resp exchange.Answer, source exchange.Source) {
	x.closing = true
	x.minor = 1
	x.answerAlone(resp, source)
	x.Conn.CloseLingering()
}

// refuseError is refuse for an error of package http1.
func (x *wire) refuseError(err error) progress {
	if e, ok := errors.AsType[http1.Error](err); ok {
		return x.refuse(e.Status(), e.Error())
	}
	return x.refuse(http.StatusBadRequest, err.Error())
}
