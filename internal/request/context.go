//go:build linux

package request

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A lifetime is the context of a request. It is made on demand.
type lifetime struct {
	ctx    context.Context
	cancel context.CancelFunc // ends ctx
	local  *localContext      // parent of ctx
}

// Context returns the context of the request.
func (b *Base) Context() context.Context {
	if b.ctx == nil && !b.framing.OpenContext() {
		return exchange.LateContext
	}
	return b.ctx
}

// Endable returns the context with the function that cancels it.
func (b *Base) Endable() (context.Context, context.CancelFunc) {
	ctx := b.Context()
	if b.cancel == nil {
		return ctx, func() {} // the request has ended
	}
	return ctx, b.cancel
}

// MakeContext makes the context of the request. Its parent has the values of the server, addr is the server's address of the
// connection, nil to look it up on demand. If timed is set, the context ends after the time left.
func (b *Base) MakeContext(parent context.Context, addr net.Addr, timed bool, left time.Duration) {
	b.local = &localContext{Context: parent, addr: addr}
	if addr == nil {
		b.local.conn = b.Conn
	}
	if timed {
		b.makeTimed(left)
	} else {
		b.ctx, b.cancel = context.WithCancel(b.local) // with an almost empty stack, see engine/workers.go
	}
}

//go:noinline
func (b *Base) makeTimed(left time.Duration) {
	b.local.find() // the action may outlive its connection
	timed := exchange.NewTimeoutContext(b.local, time.Now().Add(left))
	b.ctx, b.cancel = timed, func() { timed.End(context.Canceled) }
}

// Cancel ends the context. It does nothing if there is none.
func (b *Base) Cancel() {
	if b.cancel != nil {
		b.cancel()
	}
}

// Canceler returns the function that ends the context, nil if there is no context.
func (b *Base) Canceler() context.CancelFunc { return b.cancel }

// Timed returns the context if it ends by itself, otherwise nil.
func (b *Base) Timed() *exchange.TimeoutContext {
	timed, _ := b.ctx.(*exchange.TimeoutContext)
	return timed
}

// KeepLocalAddr looks up the server's address, which is not available after the connection has left the engine.
func (b *Base) KeepLocalAddr() {
	if b.local != nil {
		b.local.find()
	}
}

// LeaveConn ends the use of the connection by a context that may outlive the request.
func (b *Base) LeaveConn() {
	if b.local != nil {
		b.local.release()
	}
}

// A localContext has the server's address of a connection as the value of http.LocalAddrContextKey, as contexts of net/http do.
// The lookup of the address is a system call.
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
