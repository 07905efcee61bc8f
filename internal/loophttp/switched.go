//go:build linux

package loophttp

import (
	"log/slog"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/semantics"
)

// Upgrade appends a 101 with the fields of a. The connection switches to p when the request has ended, see switchTo.
func (x *wire) Upgrade(a *exchange.Answer, p exchange.Protocol) error {
	x.beginWrite()
	defer x.endWrite()
	switch {
	case x.body != received || x.minor == 0:
		return exchange.ErrCannotUpgrade
	case !x.liftTimeout():
		return exchange.ErrLate
	}
	x.closing = false
	x.appendHead(a, exchange.NoLength)
	out := x.d.Out[:len(x.d.Out)-len(http1.CRLF)]
	out = append(out, "Connection: Upgrade\r\nUpgrade: "...)
	out = append(out, p.Name()...)
	x.d.Out = append(out, "\r\n\r\n"...)
	x.planned = &planned{protocol: p}
	return nil
}

// OpenStream appends the head of a response whose body lasts until the end of the connection. The connection is passed to p when the
// request has ended.
func (x *wire) OpenStream(a *exchange.Answer, p exchange.Protocol, apply func()) error {
	if x.body != received || x.minor == 0 || x.head.Method != semantics.MethodGet {
		return exchange.ErrCannotUpgrade
	}
	apply()
	x.beginWrite()
	defer x.endWrite()
	if !x.liftTimeout() {
		return exchange.ErrLate
	}
	x.closing = true
	x.appendHead(a, exchange.NoLength)
	x.planned = &planned{protocol: p}
	return nil
}

// switchTo ends the request and passes its connection to the protocol that was given to Upgrade.
func (x *wire) switchTo(p exchange.Protocol) progress {
	c := x.Conn
	x.planned = nil
	x.end()
	s := &switched{p: p, c: c, server: x.handler.server}
	c.SetDeadline(0)
	c.Switch(s)
	p.Open(s)
	return changedProtocol
}

// A switched is a connection that has switched to another protocol. For the engine it is an engine.Protocol; for the protocol p it is
// the exchange.Peer.
type switched struct {
	p      exchange.Protocol
	c      *engine.Conn
	server *exchange.Server
}

func (s *switched) Data(d *engine.Driver, c *engine.Conn, in []byte) (consumed int) {
	c.Progress(int64(len(in)), -1)
	consumed = s.p.Data(d, in)
	if !d.Expired() {
		s.output(d)
	}
	return consumed
}

func (s *switched) output(d *engine.Driver) {
	var last bool
	if d.Out, last = s.p.Output(d.Out); last {
		s.c.CloseLingering()
	}
}

func (s *switched) End(*engine.Driver, *engine.Conn) { s.p.End() }

func (s *switched) Timeout(d *engine.Driver, _ *engine.Conn, _ []byte) {
	s.p.Timeout(d)
	s.output(d)
}

func (s *switched) Evicted(d *engine.Driver, _ *engine.Conn) {
	s.p.Evict()
	s.output(d)
}

func (s *switched) Unsent(n int) int { return s.p.Unsent(n) }

// Pended implements [engine.Protocol]: the protocol continues when the client has read.
func (s *switched) Pended(bytes int64) (again bool) {
	_ = s.p.Pending(bytes)
	return true
}

func (s *switched) Blocked(_ *engine.Driver, now int64, collected bool) (waits bool) {
	if !collected {
		s.p.Blocked(now)
	}
	return true
}

// AccountSet implements [engine.State]: the connection has one account.
func (s *switched) AccountSet() *memory.AccountSet { return nil }

func (s *switched) Closed() { s.p.Closed() }

// Prepare, Run, Overdue and Abandoned implement [engine.PartJob].
func (s *switched) Prepare(*engine.Driver) {}
func (s *switched) Run(*engine.Driver)     { s.p.Run() }
func (s *switched) Overdue()               { s.p.Overdue() }

func (s *switched) Abandoned(*engine.Driver) { s.p.Abandoned() }

func (s *switched) Wake()                   { s.c.Wake() }
func (s *switched) Loop() exchange.Loop     { return s.c.Loop() }
func (s *switched) WakeHere()               { s.c.WakeHere() }
func (s *switched) Prompt() bool            { return true }
func (s *switched) SetDeadline(after int64) { s.c.SetDeadline(time.Duration(after)) }
func (s *switched) Charge(n int64)          { charge(s.c.Account(), n) }
func (s *switched) Release(n int64)         { s.c.Account().Release(memory.Input, n) }
func (s *switched) Log() *slog.Logger       { return s.server.Log }
func (s *switched) Restarting() bool        { return s.server.Pipeline.IsRestarting() }
func (s *switched) Submit(t exchange.Turn)  { t.(*engine.Driver).SubmitPart(s, false) }

func (s *switched) Pause(on bool) {
	if on {
		s.c.Notes |= engine.Paused
	} else {
		s.c.Notes &^= engine.Paused
	}
}

func (s *switched) Reserve(n int64) bool {
	return s.c.Account().TryReserve(memory.Input, n)
}

func charge(a *memory.Account, n int64) {
	if n > 0 {
		a.Force(memory.Output, n)
	} else {
		a.Release(memory.Output, -n)
	}
}
