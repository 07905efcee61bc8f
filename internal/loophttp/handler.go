//go:build linux

package loophttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/clientaddr"
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/looph2"
)

// A handler gives the engine's connections their meaning: it speaks
// HTTP/1.1 on them. One for an app.
//
// A connection is between two requests (its Proto is nil), or has an
// *unfinished request: a head or a small body of which more must come. All
// else is in the driver's wire and lasts as long as one call.
type handler struct {
	server  *exchange.Server
	proxies *clientaddr.Source // that of server, so that it lies here
	limits  http1.Limits
	context context.Context // what those of requests derive from
	late    exchange.Answer // for a request that waited too long

	h2  *looph2.Handler // nil: HTTP/2 is another server's
	h2c bool            // also in clear text

	upgrades bool // and from HTTP/1.1, see upgrade.go

	early     atomic.Int32 // actions that have begun without the whole of a small body
	mostEarly int32

	bodies     admission.FreeList[[]byte] // smallBody bytes each, see unfinished
	keptBodies int                        // of them at most
}

// newHandler returns the handler of a server. Contexts say, as those of
// net/http do, that a server runs the request: httputil.ReverseProxy cuts half an
// answer off only then.
func newHandler(s *exchange.Server, maxConcurrent int) *handler {
	h := &handler{server: s, proxies: s.Proxies, limits: http1.DefaultLimits()}
	h.limits.MaxHead = s.MaxHead
	h.limits.MaxFields = s.MaxHeaders
	h.limits.MaxTarget = s.MaxHead
	h.mostEarly = int32(max(maxConcurrent/earlyShare, 1))
	h.keptBodies = int(min(s.Budget.Bound()/bodyShare/smallBody, mostBodies))
	h.late = s.Pipeline.NotNow(fmt.Sprintf("the server is overloaded: requests waited longer than %v", s.QueueTarget))
	h.context = context.WithValue(context.Background(), http.ServerContextKey, &http.Server{Handler: s.Handler})
	h.h2c, h.upgrades = s.H2C, s.H2CUpgrade
	h.h2 = looph2.NewHandler(s, h.context)
	return h
}

// letGo leaves the kept bodies to the collector and returns how many bytes that is.
func (h *handler) letGo() int64 { return smallBody * int64(len(h.bodies.TakeAll())) }

const (
	// readBuffer is how much a driver reads from a connection at once, in
	// bytes.
	readBuffer = 64 << 10
	// smallBody is the largest body, in bytes, that is gathered for its action, see
	// gather.go. A larger one is read by the action, which then has a goroutine of
	// its own.
	smallBody = 64 << 10
	// maxTurnOutput is how many bytes of answers a driver gathers from pipelined
	// requests before it sends them.
	maxTurnOutput = 64 << 10
	// ownedBody is the length from which a body is sent from where it lies
	// instead of being copied behind its head.
	ownedBody = 8 << 10
)

// NewScratch makes the wire of a driver.
func (h *handler) NewScratch() any {
	x := &wire{handler: h}
	x.count.on = h.server.Counting.Load()
	x.call = h.server.Pipeline.NewCall(x)
	x.s = x.call.State()
	x.s.Numbers = true
	return x
}

// Data answers every complete request in in, in order.
func (h *handler) Data(d *engine.Driver, c *engine.Conn, in []byte) (consumed int) {
	x := d.Scratch.(*wire)
	if c.Notes&engine.Begun == 0 {
		if wait := h.find(x, d, c, in); wait {
			return 0
		}
	}
	if c.Notes&engine.Parts != 0 {
		return x.serveParts(d, c, in)
	}
	if invariants.Enabled {
		x = x.renewed(d)
	}
	x.use(d, c)
	x.given, x.moved = len(in), false
	x.count.since = d.Arrived()
	consumed = h.serve(x, in)
	d.Scratch.(*wire).flushCount()
	return consumed
}

// renewed gives each request a wire of its own, in builds with the race detector,
// so that one that is used after its end is known as such.
func (x *wire) renewed(d *engine.Driver) *wire {
	if !x.call.Ended() {
		return x
	}
	y := x.handler.NewScratch().(*wire)
	y.given, y.moved, y.count, y.wary = x.given, x.moved, x.count, x.wary
	if x.c != nil {
		y.use(d, x.c)
	}
	d.Scratch = y
	return y
}

// serve is Data without what comes before and after.
func (h *handler) serve(x *wire, in []byte) (consumed int) {
	d, c := x.d, x.c
	visit := beginVisit(&x.wary)
	for {
		n, next := x.serveNext(in[consumed:])
		consumed += n
		switch next {
		case moreRequests:
			if x.target != 0 {
				x.answered()
			}
			if consumed == len(in) {
				c.SetDeadline(h.server.IdleTimeout)
				return consumed
			}
			if x.moved || d.Gathered() >= maxTurnOutput || visit.due() && d.Inline() && visit.look(d.Clock(), d.VisitTime(), &x.wary) {
				d.Again()
				return consumed
			}
			if invariants.Enabled {
				x = x.renewed(d)
			}
		case needInput, connectionOver, changedProtocol:
			return consumed
		case needRoom:
			d.AwaitRoom()
			return consumed
		case goesToBackground:
			d.Background()
			return consumed
		case needWorker:
			if x.s.Route.Critical {
				d.HandOffFirst()
			} else {
				d.HandOff()
			}
			return consumed
		}
	}
}

// progress says what follows after one step of a connection.
type progress uint8

const (
	moreRequests     progress = iota // a request was answered
	needInput                        // an unfinished request waits for bytes
	needRoom                         // the next request will hold more than there is room for
	needWorker                       // the next request is for a route known to block
	goesToBackground                 // a request is being answered by Background
	connectionOver                   // it closes once its output is sent, or is not ours any more
	changedProtocol                  // it speaks HTTP/2 now
)

// EOF ends a connection whose client has said all it will. What it asked in
// full has been answered.
func (h *handler) EOF(d *engine.Driver, c *engine.Conn, in []byte) {
	if c.Notes&engine.Parts != 0 {
		return // who sends no more cannot open windows: Closed ends what goes on
	}
	if u, ok := c.Proto.(*unfinished); ok && u.complete {
		x := d.Scratch.(*wire)
		x.use(d, c)
		x.count.since = d.Now()
		x.knowHead(u)
		x.refuse(http.StatusBadRequest, "the connection was closed in the middle of the request body")
	}
}

// Timeout tells a client that is too slow with a head or a small body. Of an idle connection it says nothing: the
// engine closes one for which no other deadline is set.
func (h *handler) Timeout(d *engine.Driver, c *engine.Conn, in []byte) {
	if c.Notes&engine.Parts != 0 {
		h.h2.Timeout(d.Scratch.(*wire).parts(), d, c, in)
		return
	}
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
	x.count.since = d.Now()
	x.head.Method = u.head.Method
	x.knowHead(u)
	x.refuse(http.StatusRequestTimeout, what)
}

// Detached counts a request whose action blocks as in flight. Its route has shown that it
// does at once, not only when it comes back. A route whose streams leave the loop, be it in
// the middle, is one whose next begin elsewhere.
func (h *handler) Detached(scratch any) (waits bool) {
	x := scratch.(*wire)
	if x.inParts {
		return h.h2.Detached(x.h2)
	}
	if x.routing {
		x.countInFlightFor(&h.server.Unmatched.Counts) // its route is not known yet
		return true
	}
	x.countInFlight()
	x.c.ProbeBlocks()
	route, streams := x.s.Route, x.produces.Load()
	switch {
	case route.NoRoute:
	case x.early: // it may be its client that it waits for
	case streams:
		route.Streams.Waited(x.d.Clock())
	default:
		route.Counts.Takeovers.Add(1)
		route.Pace.Waited(x.d.Clock())
	}
	return !x.answering.Load()
}

// Refused tells a client that there is no memory for what it has sent, whether that is
// part of a request or waits for its turn.
func (h *handler) Refused(d *engine.Driver, c *engine.Conn, in []byte) {
	x := d.Scratch.(*wire)
	if c.Notes&engine.Begun == 0 && c.Secure() {
		h.find(x, d, c, in) // its first record has not come in whole
	}
	if c.Notes&engine.Parts != 0 {
		h.h2.Refused(x.parts(), d, c)
		return
	}
	x.use(d, c)
	x.count.since = d.Now()
	u, _ := c.Proto.(*unfinished)
	problem := h.server.Pipeline.NoMemory("the request", c.Met())
	x.keepHead(u, in)
	if u != nil {
		c.Proto = nil
		u.release()
	}
	if d.Inline() && x.call.Hooked() {
		// A loop that makes room cannot be taken over: code of others runs elsewhere.
		x.planned = &planned{refusal: problem}
		d.Background()
		return
	}
	x.refuseWith(problem, exchange.FromMemory)
}

// Abandoned answers for an action that ended its goroutine (runtime.Goexit)
// instead of returning. Panics of actions do not come here.
func (h *handler) Abandoned(d *engine.Driver, c *engine.Conn, cause any) {
	x := d.Scratch.(*wire)
	if x.inParts {
		h.h2.Abandoned(x.h2, d)
		return
	}
	x.use(d, c)
	x.closeStdBody()
	x.endInFlight()
	counted := exchange.Bare(0, exchange.Abort)
	if !x.begun && cause == nil {
		counted = exchange.Bare(http.StatusInternalServerError, exchange.Complete)
	}
	x.countAnswer(&counted)
	x.flushCount()
	if x.begun {
		x.cut()
		if x.s.Watched {
			x.observe(exchange.Bare(0, exchange.Abort))
		}
	} else if cause == nil {
		h.server.Log.Error("an action ended its goroutine instead of returning", "route", x.s.Route.Pattern)
		x.sendAlone(h.server.Pipeline.Answer(h.server.Pipeline.Problem(http.StatusInternalServerError, "", nil)), exchange.FromPanic)
	}
	x.abandon()
	d.Scratch = h.NewScratch() // the action may have left its request to others
}

// Closed lets go of what a connection still had.
func (h *handler) Closed(c *engine.Conn) {
	if c.Notes&engine.Parts != 0 {
		h.h2.Closed(c)
		return
	}
	if u, ok := c.Proto.(*unfinished); ok {
		c.Proto = nil
		u.release()
	}
}

// refuse answers a request that cannot be served with a problem and closes the
// connection after it. x.head.Method is that of the request, as far as it is known.
func (x *wire) refuse(status int, detail string) progress {
	return x.refuseWith(x.handler.server.Pipeline.Problem(status, detail, nil), exchange.FromProtocol)
}

func (x *wire) refuseWith(problem error, source exchange.Source) progress {
	x.handler.server.Refused.Add(1)
	resp := x.handler.server.Pipeline.Answer(problem)
	x.countAnswer(&resp)
	x.flushCount()
	x.sendAlone(resp, source)
	x.call.End() // what is known of it, such as its identifier, is not the next one's
	return connectionOver
}

// sendAlone sends a problem and closes the connection after it.
func (x *wire) sendAlone(resp exchange.Answer, source exchange.Source) {
	x.closing = true
	x.minor = 1
	x.answerAlone(resp, source)
	x.c.CloseLingering()
}

// refuseError is refuse for an error of the codec.
func (x *wire) refuseError(err error) progress {
	if e, ok := errors.AsType[http1.Error](err); ok {
		return x.refuse(e.Status(), e.Error())
	}
	return x.refuse(http.StatusBadRequest, err.Error())
}
