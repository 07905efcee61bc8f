package websocket

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/ws"
)

// A Code is a close code (RFC 6455, section 7.4). Applications may use 3000 to 4999.
type Code uint16

const (
	Normal          = Code(ws.Normal)
	GoingAway       = Code(ws.GoingAway) // the server drains, or the page is left
	ProtocolError   = Code(ws.ProtocolError)
	Unsupported     = Code(ws.Unsupported)
	NoStatus        = Code(ws.NoStatus) // the client's close frame had no code; never sent
	Abnormal        = Code(ws.Abnormal) // the connection ended without close frames; never sent
	InvalidPayload  = Code(ws.InvalidPayload)
	PolicyViolation = Code(ws.PolicyViolation)
	TooBig          = Code(ws.TooBig)
	InternalError   = Code(ws.InternalError)
	Restart         = Code(ws.Restart) // the server drains, and a new process serves in its place
	TryAgainLater   = Code(ws.TryAgainLater)
	Unauthorized    = Code(3000) // see Conn.ExpireAt
)

// An End describes how a connection ended. As an error it wraps ErrClosed.
type End struct {
	Code   Code   // code of the side that closed first; Abnormal without a close frame
	Reason string // reason in the close frame
	Client bool   // the client closed first, or disappeared
}

func (e End) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("websocket: connection is closed: %d", e.Code)
	}
	return fmt.Sprintf("websocket: connection is closed: %d %s", e.Code, e.Reason)
}

func (e End) Unwrap() error { return ErrClosed }

// closeTimeout limits the time of the client to answer a close frame.
const closeTimeout = 5 * time.Second

// Close sends a close frame after all messages sent so far. The connection is closed when the client has answered, or after five
// seconds. Close does not wait for that. It omits a code that must not be sent, and cuts reason to 123 bytes. Close has no effect
// if the connection is closed or closing.
func (c *Conn) Close(code Code, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == open {
		c.shut(code, reason)
		c.wakeToRead()
	}
}

// ExpireAt closes the connection with Unauthorized at the time t, such as the expiry of a session or a token, so that the client
// can log in again. A later call replaces the time, for example when the client has sent a new token. With the zero time the
// connection does not expire.
func (c *Conn) ExpireAt(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != open {
		return
	}
	r := c.more()
	if r.expiry != nil {
		r.expiry.Stop()
		r.expiry = nil
	}
	if t.IsZero() {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(time.Until(t), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.expiry == timer && c.phase == open { // otherwise a later call has replaced the time
			c.shut(Unauthorized, "authorization has expired")
			c.wakeToRead()
		}
	})
	r.expiry = timer
}

// shut sends a close frame on an open connection, and begins the phase closing. c.mu is held.
func (c *Conn) shut(code Code, reason string) {
	c.appendClose(code, reason)
	c.phase = closing
	c.more().end = End{Code: code, Reason: reason}
	c.noteRoom()
}

func (c *Conn) appendClose(code Code, reason string) {
	out := c.buffer()
	before := len(out.b)
	out.b = ws.AppendClose(out.b, ws.Code(code), reason)
	c.charge(len(out.b) - before)
}

// fail closes the connection because of an error, without waiting for an answer of the client. The owner of the connection calls
// it.
func (c *Conn) fail(err *ws.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failWith(Code(err.Code), err.Reason)
}

// failWith implements fail. c.mu is held; any goroutine may call it.
func (c *Conn) failWith(code Code, reason string) {
	switch c.phase {
	case open:
		c.appendClose(code, reason)
		c.more().end = End{Code: code, Reason: reason}
		fallthrough
	case closing:
		c.finish()
	}
}

// finish begins the phase over. c.mu is held.
func (c *Conn) finish() {
	c.phase = over
	r := c.more()
	if r.reader != nil {
		close(r.reader)
		r.reader = nil
	}
	c.noteRoom()
}

// closed handles the client's close frame.
func (c *Conn) closed(payload []byte) {
	code, reason, err := ws.ParseClose(payload)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.phase == closing:
		c.finish()
	case err != nil:
		e := err.(*ws.Error)
		c.failWith(Code(e.Code), e.Reason)
	default:
		c.appendClose(Code(code), "")
		c.more().end = End{Code: Code(code), Reason: reason, Client: true}
		c.finish()
	}
}

// End implements exchange.Protocol: the client sends no more input.
func (p *protocol) End() {
	c := (*Conn)(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose()
}

// lose ends a failed connection without a close frame. c.mu is held.
func (c *Conn) lose() {
	if c.phase == open {
		c.more().end = End{Code: Abnormal, Client: true}
	}
	if c.phase < over {
		c.finish()
	}
}

// leave closes the connection because of a drain, at once or at a random later time. c.mu is held.
func (c *Conn) leave(t exchange.Turn) {
	c.leaving = true
	if after := rand.Int64N(t.Spread() + 1); after > int64(minDelay) {
		c.peer.SetDeadline(after)
		return
	}
	c.shutDown()
}

// shutDown closes the connection because of a drain. The reason tells the client when to reconnect. c.mu is held.
func (c *Conn) shutDown() {
	code, reason := GoingAway, "server is shutting down"
	if c.peer.Restarting() {
		code, reason = Restart, "server is restarting"
	}
	c.shut(code, fmt.Sprintf("%s: reconnect within %d ms", reason, c.h.o.Reconnect.Milliseconds()))
}

// minDelay is the minimum delay of a close for which leave sets a timer.
const minDelay = 50 * time.Millisecond

// Timeout sends a ping, or closes the connection if the client has not answered a ping or a close frame.
func (p *protocol) Timeout(exchange.Turn) {
	c := (*Conn)(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.phase == open && c.leaving:
		c.shutDown()
		c.peer.SetDeadline(int64(closeTimeout))
	case c.phase == open && (c.paused || !c.pinged):
		if !c.paused { // input is not read, so that an answer would not be seen
			c.frame(ws.Ping, false, nil)
			c.pinged = true
		}
		c.peer.SetDeadline(int64(c.h.o.PingInterval))
	default:
		c.lose()
	}
}

// Evict closes the connection with 1013.
func (p *protocol) Evict() {
	c := (*Conn)(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failWith(TryAgainLater, "no memory")
}

// Closed implements exchange.Protocol: it releases the memory of the connection and ends its functions.
func (p *protocol) Closed() {
	c := (*Conn)(p)
	c.drop()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose()
	c.uncharge()
	if r := c.rare; r.held > 0 {
		c.peer.Release(r.held) // Read can still return the message, without a charge
		r.held = 0
	}
	c.phase = gone
	if c.feed != nil {
		c.feed.Close()
	}
	if c.out != nil {
		c.out.release()
		c.out = nil
	}
	if c.rare.stop != nil {
		c.rare.stop()
	}
	if c.rare.expiry != nil {
		c.rare.expiry.Stop()
	}
	if !c.busy {
		c.tellEnd()
	}
}

// tellEnd calls Options.Close on a new goroutine, unless it was called already. c.mu is held, and no other function runs.
func (c *Conn) tellEnd() {
	if f := c.h.o.Close; f != nil && !c.closeCalled {
		c.closeCalled = true
		end := c.rare.end
		go c.guard(func() { f(c, end) })
	}
}
