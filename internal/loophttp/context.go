//go:build linux

package loophttp

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// Context returns the request's context, which is cancelled when the client closes the connection.
func (x *wire) Context() context.Context {
	switch {
	case x.ctx != nil:
	case !x.d.Claim():
		return exchange.LateContext
	default:
		defer x.d.Release()
		x.local = &localContext{Context: x.handler.context, conn: x.c}
		if x.d.HasTimeout() {
			x.local.find() // the action may outlive its connection
			timed := exchange.NewTimeoutContext(x.local, time.Now().Add(x.d.TimeLeft(0)))
			x.ctx, x.cancel = timed, func() { timed.End(context.Canceled) }
		} else {
			x.ctx, x.cancel = context.WithCancel(x.local)
		}
		x.c.SetHangup(x.cancel)
	}
	return x.ctx
}

// A localContext has the local address of a connection as the value of http.LocalAddrContextKey, as contexts of net/http do.
// The address needs a system call, which is made at the first lookup.
type localContext struct {
	context.Context
	mu   sync.Mutex
	conn *engine.Conn // nil after the request, or once the address is known
	addr net.Addr
}

// Value returns the value for key. The address is missing if its first lookup is after the end of the request.
func (c *localContext) Value(key any) any {
	if key != http.LocalAddrContextKey {
		return c.Context.Value(key)
	}
	if addr := c.find(); addr != nil {
		return addr
	}
	return nil
}

func (c *localContext) find() net.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		if at := c.conn.LocalAddr(); at.IsValid() {
			c.addr = net.TCPAddrFromAddrPort(at)
		} else {
			c.addr = &net.UnixAddr{Net: "unix"}
		}
		c.conn = nil
	}
	return c.addr
}

// release ends the use of the connection.
func (c *localContext) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = nil
}

func (x *wire) Endable() (context.Context, context.CancelFunc) {
	ctx := x.Context()
	if x.cancel == nil {
		return ctx, func() {} // the request has ended
	}
	return ctx, x.cancel
}
