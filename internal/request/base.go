//go:build linux

package request

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/netip"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/tally"
)

// A Framing is the protocol of a request, as its Base uses it. Its methods belong to the goroutine of the action, unless they say
// otherwise.
type Framing interface {
	exchange.Wire

	// OpenContext calls Base.MakeContext, and arranges that the function Base.Canceler is called when the client has gone. It does
	// nothing and returns false if the request was answered without its action.
	OpenContext() bool

	// OpenStd sets the fields of req that depend on the protocol: its version, RequestURI, and those about the body. authority
	// reports that the target is a host, as in CONNECT. body is nil if there is none; its Read fails for no limit.
	OpenStd(req *http.Request) (authority bool, body io.Reader)

	// StopBody makes Reads of the body fail, also one under way.
	StopBody()

	// Trailers yields the trailers of a body that was read completely. Any goroutine may call it.
	Trailers(yield func(name, value string) bool)
}

// A Base is the part of a wire that does not depend on the framing. It serves one request after another.
type Base struct {
	Call  exchange.Call
	State *exchange.State // the state of Call
	Conn  *engine.Conn    // of the request

	Phase   Phase
	Undated bool // the answer has no Date

	framing Framing
	lifetime
	std
}

// Init prepares a Base, which is a part of f.
func (b *Base) Init(f Framing, p exchange.Pipeline) {
	b.framing, b.Call = f, p.NewCall(f)
	b.State = b.Call.State()
}

func (b *Base) Remote() netip.AddrPort { return b.Conn.RemoteAddr() }

func (b *Base) Secure() bool { return b.Conn.Secure() }

func (b *Base) TLS() *tls.ConnectionState { return b.Conn.TLS() }

func (b *Base) OmitDate() { b.Undated = true }

// Abandoned does nothing: the engine informs its handler or protocol.
func (b *Base) Abandoned() {}

// ReleaseAccount does nothing: the account belongs to the connection or the stream.
func (b *Base) ReleaseAccount(*memory.Account) {}

// Outcome returns the class in which the request is counted if a is its answer.
func (b *Base) Outcome(s *exchange.Server, a *exchange.Answer) tally.Outcome {
	// The fields of a request without a path are not known.
	return b.State.Outcome(a, b.Secure() || s.Proxies != nil && b.State.Path != "" && s.Secure(b.framing))
}

// TooSlowForLoop reports whether a worker must run the request: its route is known to block, and the driver has a loop to run.
// When MaxConcurrent actions are blocked, a request for a route with a recent record of blocking also goes to a worker. Above
// MaxConcurrent, one recent block is enough. Critical routes are exempt from these two rules.
func (b *Base) TooSlowForLoop(d *engine.Driver) bool {
	route := b.State.Route
	if route.NoRoute || !d.Inline() || !route.Blocking.Suspect() {
		return false
	}
	return route.Blocking.ToWorker(d, route.Critical)
}

// Overdue returns the answer to requests that have waited too long.
func Overdue(s *exchange.Server) exchange.Answer {
	return s.Pipeline.NotNow(fmt.Sprintf("the server is overloaded: requests waited longer than %v", s.QueueTarget))
}

// EndRequest ends the context and the *http.Request, and prepares for the next request.
func (b *Base) EndRequest() {
	b.Undated = false
	b.Phase.End()
	if b.cancel != nil {
		b.cancel()
		b.local.release()
		b.lifetime = lifetime{}
	}
	if b.req != nil {
		exchange.RemoveForm(b.req)
		b.req = nil
	}
}
