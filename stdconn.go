package dunlin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

// A stdConn is a connection of the server of net/http. It gives effect to
// Config.WriteTimeout and Config.BodyTimeout at next to no cost: a deadline, once
// set, is left to pass. When it has, and something is waiting or comes to wait, it
// is set anew; a peer that lets this one pass without a byte is given up. So that
// takes once to twice the timeout.
type stdConn struct {
	net.Conn
	app      *App
	requests atomic.Int64 // so far, if they are counted

	foreign atomic.Bool               // net/http or a handler has set a read deadline
	body    atomic.Pointer[timedBody] // that is being read now
	rest    atomic.Bool               // net/http reads what is left of one, after the answer

	write   atomic.Uint32
	writing sync.Mutex // held while the write deadline changes
}

// Whose the write deadline of a connection is.
const (
	noDeadline uint32 = iota
	ourDeadline
	foreignDeadline // a handler's, or that of one who has hijacked the connection
)

// stdConnKey is the key under which the context of a connection has its *stdConn.
type stdConnKey struct{}

// withStdConn is the ConnContext of the server.
func withStdConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, stdConnKey{}, stdConnOf(c))
}

// stdConnOf returns the connection below c, nil if there is none.
func stdConnOf(c net.Conn) *stdConn {
	if over, ok := c.(*tls.Conn); ok {
		c = over.NetConn()
	}
	own, _ := c.(*stdConn)
	return own
}

func timedOutIO(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// Write writes p, for as long as the client takes something of it in time.
func (c *stdConn) Write(p []byte) (sent int, err error) {
	if c.write.Load() == noDeadline {
		c.renewWrite()
	}
	for fresh := false; ; fresh = true {
		n, err := c.Conn.Write(p[sent:])
		sent += n
		switch {
		case err == nil || !timedOutIO(err):
			return sent, err
		case n == 0 && fresh:
			c.noteSlow()
			return sent, err
		case !c.renewWrite():
			return sent, err
		}
	}
}

// ReadFrom copies src; a regular file is sent by the system where it can do that.
func (c *stdConn) ReadFrom(src io.Reader) (sent int64, err error) {
	to, ok := c.Conn.(io.ReaderFrom)
	lim, f := regularFile(src)
	if !ok || f == nil {
		return copyPieces(c, src)
	}
	for {
		c.renewWrite()
		left := lim.N
		n, err := to.ReadFrom(lim)
		sent += n
		if err == nil || !timedOutIO(err) || c.write.Load() != ourDeadline {
			return sent, err
		}
		if n == 0 {
			c.noteSlow()
			return sent, err
		}
		// Where the system did not send it, more was read than was written.
		if _, err := f.Seek(n-(left-lim.N), io.SeekCurrent); err != nil {
			return sent, err
		}
		lim.N = left - n
	}
}

// noteSlow counts a client that has taken nothing, unless a handler gave it less time.
func (c *stdConn) noteSlow() {
	if c.write.Load() == ourDeadline {
		c.app.noteSlow(admission.SlowReader, addrPortOf(c.Conn), fmt.Sprintf("nothing of an answer was taken for %v", c.app.config.WriteTimeout))
	}
}

// renewWrite sets our deadline; false if another is in force.
func (c *stdConn) renewWrite() bool {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.write.Load() == foreignDeadline {
		return false
	}
	c.write.Store(ourDeadline)
	return c.Conn.SetWriteDeadline(time.Now().Add(c.app.config.WriteTimeout)) == nil
}

// SetWriteDeadline sets a deadline in place of ours; with the zero time ours is in
// force again. Net/http takes a deadline back after each request, whether there is one
// or not: ours then stays, else each request would pay for setting it twice.
func (c *stdConn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() && c.write.Load() != foreignDeadline {
		return nil
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.write.Store(foreignDeadline)
	if t.IsZero() {
		c.write.Store(noDeadline)
	}
	return c.Conn.SetWriteDeadline(t)
}

// release ends all this for one who has hijacked the connection.
func (c *stdConn) release() {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.write.Swap(foreignDeadline) == ourDeadline {
		_ = c.Conn.SetWriteDeadline(time.Time{}) // the connection may be closed already
	}
	c.foreign.Store(true)
}

// SetReadDeadline is called by net/http several times for each request.
func (c *stdConn) SetReadDeadline(t time.Time) error {
	c.foreign.Store(!t.IsZero())
	if c.rest.Load() {
		c.rest.Store(false)
	}
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline sets both.
func (c *stdConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// CloseWrite says that nothing will follow.
func (c *stdConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Read reads from the connection; as part of a body no longer than that may take.
func (c *stdConn) Read(p []byte) (int, error) {
	if b := c.body.Load(); b != nil {
		return b.receive(p)
	}
	n, err := c.Conn.Read(p)
	if err != nil && c.rest.Load() {
		// In full duplex net/http would take what comes later for the next request.
		_ = c.Conn.Close()
	}
	return n, err
}

// A timedBody is a request body whose client may pause for a limited time, and must
// be fast enough. The deadline is set only when the connection is read, for most bodies
// have come with their head.
type timedBody struct {
	io.ReadCloser
	conn    *stdConn
	reading sync.Mutex // held by Read: the action's and skipBody's may meet

	mu   sync.Mutex
	pace bodyPace
	set  bool // the deadline is, by us
	over bool // the body has ended, or its request
}

// Read reads the body.
func (b *timedBody) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	b.conn.body.Store(b)
	n, err := b.ReadCloser.Read(p)
	b.conn.body.Store(nil)
	switch err {
	case nil:
	case io.EOF:
		b.end()
	default:
		b.stop() // net/http shall not wait for the rest either
	}
	return n, err
}

// receive reads the connection for the body. Net/http may call it for another
// purpose as soon as the body's last byte is here; end frees that read.
func (b *timedBody) receive(p []byte) (int, error) {
	b.renew(false)
	start := time.Now()
	n, err := b.conn.Conn.Read(p)
	if n == 0 && timedOutIO(err) && b.renew(true) {
		n, err = b.conn.Conn.Read(p)
	}
	if b.tooSlow(time.Since(start), n, err) {
		return 0, b.conn.app.cutBody(addrPortOf(b.conn.Conn))
	}
	return n, err
}

// tooSlow judges the client after it was waited for.
func (b *timedBody) tooSlow(waited time.Duration, n int, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || b.conn.foreign.Load() {
		return false
	}
	return b.pace.tooSlow(&b.conn.app.config, waited, int64(n)) || timedOutIO(err)
}

// renew sets the deadline, again if that is asked for; false if it does not.
func (b *timedBody) renew(again bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || b.set != again || b.conn.foreign.Load() {
		return false
	}
	b.set = true
	return b.conn.Conn.SetReadDeadline(time.Now().Add(b.conn.app.config.BodyTimeout)) == nil
}

// end takes the deadline back.
func (b *timedBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.set && !b.conn.foreign.Load() {
		b.set = false
		_ = b.conn.Conn.SetReadDeadline(time.Time{}) // the connection may be closed already
	}
}

// stop ends the use of the connection, when the request is over. A deadline stays
// until net/http sets the next.
func (b *timedBody) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}

// ended reports whether nothing more will be read of it.
func (b *timedBody) ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over
}

// begun reports whether the connection was read for it.
func (b *timedBody) begun() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.set
}

// leave is stop for a body that was not read to its end, the rest of which net/http
// reads once the answer is sent.
func (b *timedBody) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if !b.conn.foreign.Load() {
		b.conn.rest.Store(true)
		_ = b.conn.Conn.SetReadDeadline(time.Now().Add(b.conn.app.config.BodyTimeout)) // the connection may be closed already
	}
}

// timed returns the body of the request, bounded in time if the connection is
// one of a server of our own. Of HTTP/2 a connection carries many.
func (x *stdExchange) timed() io.ReadCloser {
	if x.timedBody == nil {
		conn, _ := x.req.Context().Value(stdConnKey{}).(*stdConn)
		if conn == nil || x.req.ProtoMajor != 1 {
			return x.req.Body
		}
		x.timedBody = &timedBody{ReadCloser: x.req.Body, conn: conn}
	}
	return x.timedBody
}
