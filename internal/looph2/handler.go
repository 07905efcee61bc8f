//go:build linux

package looph2

import (
	"context"
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

// A Handler serves HTTP/2 for one app, on connections on which the engine's handler has recognized it.
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
	h.late = request.Overdue(s)
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

// A scratch is the memory that a driver carries for this package from call to call: engine.Driver.PartScratch. On a worker it has
// only a wire.
type scratch struct {
	wire  *Wire      // allocated on first use; replaced when it moves to the background
	pool  http2.Pool // its request is the present one's: it stays with an action that loses its loop
	count request.Counter
	date  string
	dated int64 // the second that date shows
}

func scratchOf(d *engine.Driver) *scratch {
	sc, _ := d.PartScratch.(*scratch)
	if sc == nil {
		sc = new(scratch)
		d.PartScratch = sc
	}
	return sc
}

// Spent implements [engine.PartScratch]: in builds with the race detector each request has a wire of its own.
func (sc *scratch) Spent() bool { return sc.wire != nil && sc.wire.Call.Ended() }

// wireOf returns the wire for the next request of a driver.
func (h *Handler) wireOf(d *engine.Driver) *Wire {
	sc := scratchOf(d)
	if sc.wire == nil || sc.wire.Call.Ended() {
		sc.wire = h.newWire()
	}
	return sc.wire
}

// recovered logs a panic of user code that surrounds an action, on a goroutine without a driver.
func (h *Handler) recovered() {
	if cause := recover(); cause != nil {
		h.server.Log.Error("panic while an answer was made", "panic", cause, "stack", string(debug.Stack()))
	}
}

// reasonOf returns the reason under which a client that sent too much is counted.
func reasonOf(r http2.Reason) admission.Reason {
	return admission.H2Resets + admission.Reason(r-http2.Resets)
}
