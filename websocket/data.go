package websocket

import (
	"time"
	"unicode/utf8"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/ws"
)

// protocol has the methods of a Conn for its adapter. It implements exchange.Protocol.
type protocol Conn

func (p *protocol) Name() string { return "websocket" }

func (p *protocol) Open(peer exchange.Peer) { p.peer = peer }

// A partial is an incomplete message, or a frame whose payload is dropped. The capacity of b grows with the bytes received. The
// length that the client announces does not determine it.
type partial struct {
	b          []byte
	charged    int64
	left       int64 // bytes of the current frame's payload that have not arrived
	mask       ws.Mask
	text       ws.UTF8
	fragments  int
	kind       Kind
	compressed bool
	last       bool // the current frame is the last one
	dropped    bool
}

// drop releases the incomplete message. The owner of the connection calls it.
func (c *Conn) drop() {
	if c.partial != nil {
		c.release(c.partial)
		c.partial = nil
	}
}

func (c *Conn) release(p *partial) {
	if p.charged > 0 {
		c.peer.Release(p.charged)
		p.charged = 0
	}
	p.b = nil
}

// A step is the result of one step of reading.
type step uint8

const (
	next     step = iota // continue with the input that is left
	needMore             // a frame is incomplete
	stop                 // stop handling input: it must wait, or the connection is ending
	lost                 // a function blocked its event loop, and another goroutine took over the connection
)

const (
	// lookEvery is the number of frames between checks of the time of a turn.
	lookEvery = 16
	// maxTurnOutput is the number of bytes of output in a turn after which Data returns, so that they are sent.
	maxTurnOutput = 64 << 10
)

// Data handles all frames in in.
func (p *protocol) Data(t exchange.Turn, in []byte) (consumed int) {
	c := (*Conn)(p)
	if c.begin(t, len(in)) == lost {
		return 0
	}
	for frames := 1; consumed < len(in); frames++ {
		if !c.mayRead() {
			break
		}
		n, step := c.frameIn(t, consumed, in[consumed:])
		if step == lost {
			return 0
		}
		if consumed += n; step != next {
			break
		}
		if frames%lookEvery == 0 && t.Inline() {
			if c.muchOutput() {
				t.Again()
				break
			}
			if t.Clock()-t.Now() > t.VisitTime() {
				t.Later()
				break
			}
		}
	}
	return c.end(t, consumed, len(in))
}

// begin prepares a call of Data: it records that the client has accepted output, calls Options.Open, Serve and Drain, and closes
// the connection during a drain.
func (c *Conn) begin(t exchange.Turn, input int) step {
	c.mu.Lock()
	c.wakePending, c.outputFollows = false, c.peer.Prompt()
	if c.outputFollows && c.unsent > 0 { // Data is called only after the adapter has sent its output
		c.outputAccepted()
	}
	if input > 0 {
		c.pinged = false
	}
	if c.phase == open && !c.leaving && t.Draining() {
		c.leave(t)
	}
	c.cutSlow()
	drain := c.drainPending && !c.busy
	if drain {
		c.drainPending, c.sendRefused = false, false
	}
	c.mu.Unlock()
	if c.stage == fresh {
		c.stage = opened
		if c.h.o.Open != nil && !c.call(t, 0, eventOpen, Message{}) {
			return lost
		}
	}
	if c.stage == opened && c.h.o.Serve != nil && c.mayRead() {
		c.stage = serving
		go c.serve()
	}
	if drain && c.h.o.Drain != nil && !c.call(t, 0, eventDrain, Message{}) {
		return lost
	}
	return next
}

// cutSlow closes a connection that reads the messages of topics too slowly. c.mu is held.
func (c *Conn) cutSlow() {
	if c.phase == open && c.feed != nil && c.feed.Cut() {
		c.shut(PolicyViolation, "client is too slow")
	}
}

// outputAccepted records that the client has accepted all earlier output. c.mu is held.
func (c *Conn) outputAccepted() {
	c.unsent, c.stalled = 0, false
	c.drainPending = c.sendRefused
	c.noteRoom()
}

// mayRead reports whether the next frame may be handled.
func (c *Conn) mayRead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.mustPause()
}

// mustPause reports whether input must wait for the return of a function, or for a call of Read. c.mu is held.
func (c *Conn) mustPause() bool {
	return c.phase < over && (c.busy || c.rare != nil && c.rare.next != nil && c.phase == open)
}

func (c *Conn) muchOutput() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out != nil && len(c.out.b) >= maxTurnOutput
}

// end ends a call of Data: it calls Options.Close if the connection is over, pauses or resumes reading, and sets the deadline.
func (c *Conn) end(t exchange.Turn, consumed, input int) int {
	c.mu.Lock()
	ends := c.phase == over && !c.busy && !c.closeCalled
	c.mu.Unlock()
	if ends {
		c.drop()
		c.closeCalled = true
		if c.h.o.Close != nil && !c.call(t, consumed, eventClose, Message{}) {
			return 0
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if pause := c.mustPause(); pause != c.paused {
		c.paused = pause
		c.peer.Pause(pause)
	}
	switch c.phase {
	case open:
		if !c.leaving {
			c.peer.SetDeadline(int64(c.h.o.PingInterval))
		}
	case closing:
		c.peer.SetDeadline(int64(closeTimeout))
	default:
		return input // it is dropped
	}
	return consumed
}

// frameIn handles a frame, or a part of a frame, at the beginning of in. done is the number of input bytes before in.
func (c *Conn) frameIn(t exchange.Turn, done int, in []byte) (n int, _ step) {
	if p := c.partial; p != nil && p.left > 0 {
		n, failed := c.payload(p, in)
		return n, c.afterPayload(t, done+n, failed)
	}
	h, n, err := ws.ParseHeader(in)
	if err != nil {
		c.fail(err.(*ws.Error))
		return 0, stop
	}
	if n == 0 {
		return 0, needMore
	}
	if h.Opcode.IsControl() {
		return c.control(t, h, n, in)
	}
	p := c.partial
	if err := c.check(t, h, p); err != nil {
		c.fail(err)
		return 0, stop
	}
	whole := int64(len(in)-n) >= h.Length
	if whole && h.Fin && p == nil && c.isOpen() {
		payload := in[n : n+int(h.Length)]
		h.Mask.Apply(payload)
		n += int(h.Length)
		return n, c.completeMessage(t, done+n, Message{Kind(h.Opcode), payload}, h.Compressed, nil)
	}
	if p == nil {
		p = &partial{kind: Kind(h.Opcode), compressed: h.Compressed}
		c.partial = p
	}
	p.left, p.mask, p.last = h.Length, h.Mask, h.Fin
	p.fragments++
	k, failed := c.payload(p, in[n:])
	n += k
	return n, c.afterPayload(t, done+n, failed)
}

func (c *Conn) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase == open
}

// check returns an error if a data frame is out of order, too long, or exceeds the rate limit.
func (c *Conn) check(t exchange.Turn, h ws.Header, p *partial) *ws.Error {
	switch {
	case h.Compressed && (c.window == 0 || h.Opcode == ws.Continuation):
		return errRSV1
	case (h.Opcode == ws.Continuation) != (p != nil):
		return errFragment
	case p != nil && p.fragments >= c.h.o.MaxFragments:
		return errFragments
	}
	have := int64(0)
	if p != nil {
		have = int64(len(p.b))
	}
	if h.Length > int64(c.h.o.MaxMessage)-have {
		return errTooBig
	}
	useless := h.Length == 0 && !(h.Fin && p == nil)
	if !c.rate(t, useless, h.Fin) {
		return errRate
	}
	return nil
}

var (
	errRSV1      = &ws.Error{Code: ws.ProtocolError, Reason: "reserved bit set in frame header"}
	errFragment  = &ws.Error{Code: ws.ProtocolError, Reason: "wrong order of fragments"}
	errFragments = &ws.Error{Code: ws.PolicyViolation, Reason: "too many fragments"}
	errTooBig    = &ws.Error{Code: ws.TooBig, Reason: "message is too long"}
	errRate      = &ws.Error{Code: ws.PolicyViolation, Reason: "too many frames"}
	errText      = &ws.Error{Code: ws.InvalidPayload, Reason: "text is not UTF-8"}
	errMemory    = ws.ErrStopped.(*ws.Error)
)

const (
	// controlCost is the cost of a control frame or an empty fragment in the rate limit: at most 50 a second.
	controlCost = int64(time.Second / 50)
	// rateBurst is the burst of the rate limit: a client may send the frames of 10 s at once.
	rateBurst = int64(10 * time.Second)
)

// rate counts a frame by the generic cell rate algorithm, in which each frame advances the time earliest. It reports whether the
// client is within its limit. Useful frames count only when they end a message and Options.MaxRate is set.
func (c *Conn) rate(t exchange.Turn, useless, ends bool) bool {
	cost := controlCost
	if !useless {
		if c.h.o.MaxRate == 0 || !ends {
			return true
		}
		cost = int64(time.Second) / int64(c.h.o.MaxRate)
	}
	now := t.Now()
	c.earliest = max(c.earliest, now) + cost
	return c.earliest-now <= rateBurst
}

// payload moves bytes of a frame's payload from in to the message, and returns their number.
func (c *Conn) payload(p *partial, in []byte) (n int, _ *ws.Error) {
	n = int(min(p.left, int64(len(in))))
	p.left -= int64(n)
	if !p.dropped && !c.isOpen() {
		c.release(p)
		p.dropped = true
	}
	if p.dropped || n == 0 {
		return n, nil
	}
	if !c.grow(p, n) {
		return n, errMemory
	}
	had := len(p.b)
	p.b = append(p.b, in[:n]...)
	p.mask = p.mask.Apply(p.b[had:])
	if p.kind == Text && !p.compressed && !p.text.Next(p.b[had:]) {
		return n, errText
	}
	return n, nil
}

// grow makes room for n more bytes, and charges them first. It returns false if there is no memory.
func (c *Conn) grow(p *partial, n int) bool {
	if cap(p.b)-len(p.b) >= n {
		return true
	}
	size := max(len(p.b)+n, min(2*cap(p.b), len(p.b)+n+int(p.left)))
	if !c.peer.Reserve(int64(size)) {
		return false
	}
	b := append(make([]byte, 0, size), p.b...)
	if p.charged > 0 {
		c.peer.Release(p.charged)
	}
	p.b, p.charged = b, int64(size)
	return true
}

// afterPayload continues after a call of payload: it handles a complete message.
func (c *Conn) afterPayload(t exchange.Turn, done int, err *ws.Error) step {
	p := c.partial
	switch {
	case err != nil:
		c.fail(err)
		return stop
	case p.left > 0:
		return needMore
	case !p.last:
		return next
	}
	c.partial = nil
	if p.dropped {
		return next
	}
	if p.kind == Text && !p.compressed && !p.text.Complete() {
		c.release(p)
		c.fail(errText)
		return stop
	}
	return c.completeMessage(t, done, Message{p.kind, p.b}, p.compressed, p)
}

// completeMessage handles a complete message. p has the memory of the message. p is nil for a message in the input.
func (c *Conn) completeMessage(t exchange.Turn, done int, m Message, compressed bool, p *partial) step {
	var err *ws.Error
	if compressed {
		larger := new(partial)
		if m.Data, err = c.inflate(m.Data, larger); p != nil {
			c.release(p)
		}
		p = larger
	}
	// payload has checked the text of an uncompressed message that arrived in parts.
	if err == nil && m.Kind == Text && (compressed || p == nil) && !utf8.Valid(m.Data) {
		err = errText
	}
	if err != nil {
		if p != nil {
			c.release(p)
		}
		c.fail(err)
		return stop
	}
	if c.h.o.Message == nil {
		return c.pass(m, p)
	}
	return c.deliver(t, done, m, p)
}

// inflate decompresses a message. It charges the memory of the result to p before it allocates it.
func (c *Conn) inflate(message []byte, p *partial) ([]byte, *ws.Error) {
	b, err := ws.Inflate(message, c.h.o.MaxMessage, func(b []byte, most int) []byte {
		size := int64(ws.NextCapacity(cap(b), most))
		if !c.peer.Reserve(size) {
			return nil
		}
		larger := ws.Grown(b, most)
		c.release(p)
		p.charged = size
		return larger
	})
	if err != nil {
		return nil, err.(*ws.Error)
	}
	return b, nil
}

// control handles a control frame, whose header has n bytes.
func (c *Conn) control(t exchange.Turn, h ws.Header, n int, in []byte) (int, step) {
	end := n + int(h.Length)
	if len(in) < end {
		return 0, needMore
	}
	payload := in[n:end]
	h.Mask.Apply(payload)
	if !c.rate(t, true, true) {
		c.fail(errRate)
		return 0, stop
	}
	switch h.Opcode {
	case ws.Close:
		c.closed(payload)
		return end, stop
	case ws.Ping:
		c.mu.Lock()
		if c.phase == open {
			c.frame(ws.Pong, false, payload)
		}
		c.mu.Unlock()
	}
	return end, next
}

// Output appends pending output. last reports that the connection ends after it.
func (p *protocol) Output(out []byte) (_ []byte, last bool) {
	c := (*Conn)(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outputFollows, c.wakePending = false, false
	c.cutSlow() // without a loop, Wake leads to a call of Output only
	if c.out != nil {
		if c.feed != nil {
			out = c.feed.Rest(out)
		}
		out = append(out, c.out.b...)
		if c.peer.Prompt() && (c.sendRefused || c.rare != nil && c.rare.room != nil) {
			// The next call of Data follows when the client has accepted this output. That call wakes waiting Writes, or calls
			// Options.Drain.
			c.unsent += int64(len(c.out.b))
			c.wakePending = true
			c.peer.Wake()
		}
		c.out.release()
		c.out = nil
	}
	c.uncharge()
	if c.feed != nil && c.phase == open {
		var more bool
		if out, more = c.feed.Append(out); more {
			c.wake()
		}
	}
	return out, c.phase >= over
}

// Unsent implements exchange.Protocol. It returns messages of topics to the feed.
func (p *protocol) Unsent(n int) (takenBack int) {
	c := (*Conn)(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.feed == nil {
		return 0
	}
	return c.feed.Unsent(n)
}

// Pending implements exchange.Protocol. It records the number of bytes that the client has not accepted. It reports whether Data
// must be called for Options.Drain.
func (p *protocol) Pending(bytes int64) bool {
	c := (*Conn)(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if bytes > 0 {
		c.unsent, c.stalled = bytes, true
		if c.feed != nil && c.peer.Prompt() { // only on a loop: elsewhere no call of Data would release the hold
			c.feed.Hold()
		}
		return false
	}
	c.outputAccepted()
	return c.drainPending && c.h.o.Drain != nil
}
