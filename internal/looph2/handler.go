//go:build linux

package looph2

import (
	"context"
	"fmt"
	"hash/maphash"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http2"
	"github.com/dunlinhttp/dunlin/internal/request"
)

// A Handler serves HTTP/2 on connections on which another handler of the engine has recognized it. It serves one app. Its
// methods are called like those of engine.Handler.
type Handler struct {
	server *exchange.Server
	limits http2.Limits
	base   context.Context // parent of the contexts of requests
	late   exchange.Answer // for a request that waited too long
	tick   int64           // ns between checks of slow clients
	local  atomic.Pointer[net.TCPAddr]

	offenders offenders
}

// firstShare bounds the initial window of a stream: it is at most the budget divided by firstShare, but at least 16 KiB. A body that
// waits for room occupies that much.
const firstShare = 1024

// NewHandler returns the handler of a server. base is the parent of the contexts of requests.
func NewHandler(s *exchange.Server, base context.Context) *Handler {
	h := &Handler{server: s, limits: http2.DefaultLimits(), base: base}
	h.offenders.seed = maphash.MakeSeed()
	h.limits.Fields.MaxList = s.MaxHead
	h.limits.Fields.MaxFields = s.MaxHeaders
	h.limits.Fields.MaxWork = max(h.limits.Fields.MaxWork, 4*s.MaxHead)
	h.limits.MaxBlock = max(h.limits.MaxBlock, 2*s.MaxHead)
	h.limits.MaxTarget = s.MaxHead
	h.limits.MaxStreams = s.MaxStreamsPerConnection
	h.limits.ConnectProtocol = s.Pipeline.Takes(http.MethodConnect) // else browsers would use it for WebSockets that need HTTP/1.1
	if most := s.Budget.MostBody(); most > 0 {                      // so a client that keeps to the windows keeps to the limits of memory
		h.limits.ConnWindow = int(min(max(most/2, 64<<10), int64(h.limits.ConnWindow)))
		h.limits.MaxStreamWindow = min(h.limits.MaxStreamWindow, h.limits.ConnWindow)
	}
	if bound := s.Budget.Bound(); bound > 0 {
		h.limits.StreamWindow = int(min(max(bound/firstShare, 16<<10), int64(h.limits.StreamWindow)))
	}
	h.late = s.Pipeline.NotNow(fmt.Sprintf("the server is overloaded: requests waited longer than %v", s.QueueTarget))
	h.tick = int64(min(max(min(s.BodyTimeout, s.WriteTimeout)/8, 50*time.Millisecond), 5*time.Second))
	return h
}

// localOf returns an address of the server's side. Many connections share one.
func (h *Handler) localOf(at netip.AddrPort) net.Addr {
	if !at.IsValid() {
		return &net.UnixAddr{Net: "unix"}
	}
	if last := h.local.Load(); last != nil && last.AddrPort() == at {
		return last
	}
	addr := net.TCPAddrFromAddrPort(at)
	h.local.Store(addr)
	return addr
}

// A Scratch is the memory that a driver reuses for this package. The zero value is ready.
type Scratch struct {
	wire  *Wire      // allocated on first use; replaced when it moves to the background
	pool  http2.Pool // its request is the present one's: it stays with an action that loses its loop
	count request.Counter
	date  string
	dated int64 // the second that date shows
}

// wireOf returns the wire for the next request.
func (h *Handler) wireOf(sc *Scratch) *Wire {
	if x := sc.wire; x != nil && !x.call.Ended() {
		return x
	}
	sc.wire = h.newWire()
	return sc.wire
}

// wireOfWorker is wireOf for a worker.
func (h *Handler) wireOfWorker(d *engine.Driver) *Wire {
	x, _ := d.PartScratch.(*Wire)
	if x == nil {
		x = h.newWire()
		d.PartScratch = x
	}
	return x
}

// Data reads input, answers requests, and sends as much as windows allow.
func (h *Handler) Data(sc *Scratch, d *engine.Driver, c *engine.Conn, in []byte) (consumed int) {
	s, _ := c.Proto.(*session)
	if s == nil {
		s = h.open(sc, d, c)
	} else {
		s.beginTurn(sc, d)
	}
	consumed, mine := s.work(in)
	if !mine {
		sc.count.Flush(d)
		return 0
	}
	switch more := s.endTurn(consumed, len(in)); {
	case more && s.visit.yields:
		d.Later()
	case more:
		d.More()
	}
	return consumed
}

// Timeout does the work whose time has arrived.
func (h *Handler) Timeout(sc *Scratch, d *engine.Driver, c *engine.Conn, in []byte) {
	s, _ := c.Proto.(*session)
	if s == nil {
		return
	}
	s.beginTurn(sc, d)
	s.expire()
	if s.endTurn(0, len(in)) {
		c.Wake()
	}
}

// Refused ends a connection that holds too much, also before its first request.
func (h *Handler) Refused(sc *Scratch, d *engine.Driver, c *engine.Conn) {
	s, _ := c.Proto.(*session)
	if s == nil {
		s = h.open(sc, d, c)
	} else {
		s.beginTurn(sc, d)
	}
	s.h2.GoAway(true)
	s.h2.DropBlock()
	s.end() // frees the streams' memory before the connection has lingered
	d.Out, s.h2.Out = s.h2.Out, nil
}

// Detached is called when another driver takes the loop from an action, or the action gives it up.
func (h *Handler) Detached(sc *Scratch, collected bool) (waits bool) {
	return sc.wire.detached(collected)
}

// Abandoned answers for an action that ended by runtime.Goexit, or by a panic of code that surrounds it. The connection may
// belong to another driver.
func (h *Handler) Abandoned(sc *Scratch, d *engine.Driver) {
	sc.count.Flush(d)
	x := sc.wire
	x.d, x.job = nil, true // it has no loop to lose any more
	if !d.Inline() || !x.call.Hooked() {
		x.giveUpOn()
		return
	}
	// A loop cannot be taken over here, so user code runs on another goroutine.
	go func() {
		defer x.h.recovered()
		x.giveUpOn()
	}()
}

// recovered logs a panic of user code that surrounds an action, on a goroutine without a driver.
func (h *Handler) recovered() {
	if cause := recover(); cause != nil {
		h.server.Log.Error("panic while an answer was made", "panic", cause, "stack", string(debug.Stack()))
	}
}

// Closed is called when the connection is over.
func (h *Handler) Closed(c *engine.Conn) {
	if s, ok := c.Proto.(*session); ok {
		s.end()
	}
}

// reasonOf returns the reason under which a client that sent too much is counted.
func reasonOf(r http2.Reason) admission.Reason {
	return admission.H2Resets + admission.Reason(r-http2.Resets)
}
