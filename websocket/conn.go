package websocket

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/ws"
)

// A Conn is an open WebSocket. All methods are safe for concurrent use.
type Conn struct {
	peer  exchange.Peer
	h     *Handler
	value any

	subprotocol int8  // index in Options.Subprotocols, -1 for none
	window      uint8 // messages are compressed with a window of 1<<window bytes; 0 for no compression

	// These fields belong to the goroutine that owns the connection, see exchange.Protocol.
	stage       stage
	paused      bool     // no input is read
	leaving     bool     // the server drains: the connection is closed at its deadline
	closeCalled bool     // Options.Close was called, or is being called
	partial     *partial // the incomplete message, nil for none
	earliest    int64    // time of the rate limit, see rate

	mu            sync.Mutex
	phase         phase
	busy          bool    // a function runs; input waits for its return
	outputFollows bool    // a call of Output follows without Peer.Wake
	wakePending   bool    // Peer.Wake was called, and the call of Data has not begun
	sendRefused   bool    // Send has failed with ErrFull since the last call of Options.Drain
	drainPending  bool    // Options.Drain must be called
	stalled       bool    // the adapter has output that the client does not accept
	pinged        bool    // a ping was sent after the last input
	out           *output // pending output, or nil
	unsent        int64   // bytes of earlier output that the client has not accepted
	charged       int64   // bytes of out that are charged, see charge
	rare          *rare
	feed          exchange.Feed // messages of topics, nil for none
}

// A phase is the state of a connection:
//
//	open ──▶ closing ──▶ over ──▶ gone
//	  └────────────────────▲
//
//	closing: a close frame was sent, the close frame of the client is awaited. Messages from the client are dropped
//	over:    both close frames were exchanged, or the connection failed: it is closed when its output is sent
//	gone:    the connection is closed
type phase uint8

// A stage is the progress of opening a connection: Options.Open and Options.Serve are called once, in this order.
type stage uint8

const (
	fresh stage = iota
	opened
	serving
)

const (
	open phase = iota
	closing
	over
	gone
)

// rare has rarely used fields, allocated on demand.
type rare struct {
	reader chan Message  // a call of Read waits, nil for none
	next   *Message      // a message that waits for Read, nil for none
	held   int64         // its charge
	room   chan struct{} // closed when the client has accepted output, or the connection is over; nil if no Write waits
	end    End           // the result of Read and the argument of Options.Close
	stop   context.CancelFunc
	job    *job        // a message that waits for a worker
	expiry *time.Timer // of ExpireAt, nil for none
}

func (c *Conn) more() *rare {
	if c.rare == nil {
		c.rare = &rare{end: End{Code: Abnormal}}
	}
	return c.rare
}

// An output is a pooled buffer for output.
type output struct{ b []byte }

// keptOutput is the maximum capacity of a pooled buffer, in bytes.
const keptOutput = 64 << 10

var outputs = sync.Pool{New: func() any { return new(output) }}

var (
	// ErrFull is the error of Send for a client that does not read its output.
	ErrFull = errors.New("websocket: send: the client has not taken earlier messages")

	// ErrClosed is the error of Send, Write and Read on a connection that is closed or closing. The error of Read is an [End]
	// that wraps it.
	ErrClosed = errors.New("websocket: connection is closed")

	errReader = errors.New("websocket: read: another call of Read waits")
	errEvents = errors.New("websocket: read: messages are passed to Options.Message")
)

// Value returns the value given to Accept.
func (c *Conn) Value() any { return c.value }

// Feed returns the feed of the connection, or nil if the connection is closed or closing. The first call makes the feed with
// attach. deflate reports whether messages may be compressed with the largest window, so that connections can share them. Feed is
// for package topic: its types are internal.
func (c *Conn) Feed(attach func(_ exchange.Peer, deflate bool) exchange.Feed) exchange.Feed {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != open {
		return nil
	}
	if c.feed == nil {
		c.feed = attach(c.peer, c.window == ws.MostWindow)
	}
	return c.feed
}

// Subprotocol returns the agreed subprotocol, "" for none.
func (c *Conn) Subprotocol() string {
	if c.subprotocol < 0 {
		return ""
	}
	return c.h.o.Subprotocols[c.subprotocol]
}

// Send sends a message. It does not keep data. It never waits: if the message would exceed Options.MaxPending bytes of output that
// the client has not received, the error is ErrFull, and nothing is sent. A text must be UTF-8.
func (c *Conn) Send(kind Kind, data []byte) error {
	if kind != Text && kind != Binary {
		return fmt.Errorf("websocket: send: invalid kind of message %d", kind)
	}
	var packed *output
	if c.window > 0 && len(data) >= ws.LeastDeflated {
		packed = outputs.Get().(*output)
		defer packed.release()
		packed.b = ws.AppendDeflated(packed.b[:0], data, c.window)
		if len(packed.b) >= len(data) {
			packed = nil
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != open {
		return ErrClosed
	}
	if pending := c.pending(); pending > 0 && pending+int64(len(data)) > int64(c.h.o.MaxPending) {
		c.sendRefused = true
		return ErrFull
	}
	if packed != nil {
		c.frame(ws.Opcode(kind), true, packed.b)
	} else {
		c.frame(ws.Opcode(kind), false, data)
	}
	c.wake()
	return nil
}

// Pending returns the number of bytes of output that the operating system has not accepted for the client yet.
func (c *Conn) Pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(c.pending())
}

// pending implements Pending. c.mu is held.
func (c *Conn) pending() int64 {
	n := c.unsent
	if c.out != nil {
		n += int64(len(c.out.b))
	}
	return n
}

// buffer returns the buffer for new output. c.mu is held.
func (c *Conn) buffer() *output {
	if c.out == nil {
		c.out = outputs.Get().(*output)
		c.out.b = c.out.b[:0]
	}
	return c.out
}

// frame appends a frame to the output. c.mu is held.
func (c *Conn) frame(op ws.Opcode, compressed bool, payload []byte) {
	out := c.buffer()
	before := len(out.b)
	out.b = append(ws.AppendHeader(out.b, op, true, compressed, len(payload)), payload...)
	c.charge(len(out.b) - before)
}

// charge charges n bytes of output while the client does not accept earlier output. Otherwise the output is sent at once, without a
// charge. c.mu is held.
func (c *Conn) charge(n int) {
	if c.stalled && c.phase != gone {
		c.peer.Charge(int64(n))
		c.charged += int64(n)
	}
}

// uncharge ends the charge of the output. c.mu is held.
func (c *Conn) uncharge() {
	if c.charged > 0 {
		c.peer.Charge(-c.charged)
		c.charged = 0
	}
}

// release returns the buffer to the pool.
func (o *output) release() {
	if cap(o.b) <= keptOutput {
		outputs.Put(o)
	}
}

// wake schedules a call of Output. c.mu is held.
func (c *Conn) wake() {
	if !c.outputFollows && !c.wakePending {
		c.wakePending = true
		c.peer.Wake()
	}
}

// Write is Send, but waits until there is room for the message, or ctx ends.
func (c *Conn) Write(ctx context.Context, kind Kind, data []byte) error {
	for {
		err := c.Send(kind, data)
		if err != ErrFull {
			return err
		}
		select {
		case <-c.roomAfter(len(data)):
		case <-ctx.Done():
			return fmt.Errorf("websocket: write: %w", ctx.Err())
		}
	}
}

// roomAfter returns a channel that is closed when there may be room for n bytes.
func (c *Conn) roomAfter(n int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.more()
	if r.room == nil {
		r.room = make(chan struct{})
	}
	room := r.room
	if pending := c.pending(); c.phase != open || pending == 0 || pending+int64(n) <= int64(c.h.o.MaxPending) {
		c.noteRoom()
	}
	// A function that calls Write on the event loop does not return before there is room. So the output after its return is too
	// late.
	if c.outputFollows {
		c.outputFollows, c.wakePending = false, false
	}
	c.wake()
	return room
}

// noteRoom wakes the calls of Write that wait for room. c.mu is held.
func (c *Conn) noteRoom() {
	if c.rare != nil && c.rare.room != nil {
		close(c.rare.room)
		c.rare.room = nil
	}
}

// Read returns the next message, whose memory belongs to the caller. It waits until a message arrives or ctx ends. A message that
// arrives after the end of ctx is returned by the next call. After the last message the error is an [End]. Read is for connections
// without Options.Message.
func (c *Conn) Read(ctx context.Context) (Message, error) {
	if c.h.o.Message != nil {
		return Message{}, errEvents
	}
	if err := ctx.Err(); err != nil {
		return Message{}, fmt.Errorf("websocket: read: %w", err)
	}
	c.mu.Lock()
	r := c.more()
	if r.next != nil {
		m := *r.next
		r.next = nil
		if r.held > 0 && c.phase != gone {
			c.peer.Release(r.held)
		}
		r.held = 0
		c.wakeToRead()
		c.mu.Unlock()
		return m, nil
	}
	switch {
	case c.phase >= over:
		defer c.mu.Unlock()
		return Message{}, r.end
	case r.reader != nil:
		defer c.mu.Unlock()
		return Message{}, errReader
	}
	reader := make(chan Message, 1)
	r.reader = reader
	c.wakeToRead()
	c.mu.Unlock()
	select {
	case m, ok := <-reader:
		return c.received(m, ok)
	case <-ctx.Done():
	}
	c.mu.Lock()
	if r.reader == reader {
		r.reader = nil
		c.mu.Unlock()
		return Message{}, fmt.Errorf("websocket: read: %w", ctx.Err())
	}
	c.mu.Unlock()
	m, ok := <-reader
	return c.received(m, ok)
}

// received returns the result of Read. ok is false at the end of the connection.
func (c *Conn) received(m Message, ok bool) (Message, error) {
	if ok {
		return m, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return Message{}, c.rare.end
}

// wakeToRead schedules a call of Data, which resumes reading input. c.mu is held.
func (c *Conn) wakeToRead() {
	if c.phase < over && !c.wakePending {
		c.wakePending = true
		c.peer.Wake()
	}
}
