package stdhttp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// Upgrade takes the connection from net/http, sends a 101 with the fields of a, and serves p on a goroutine.
func (x *wire) Upgrade(a *exchange.Answer, p exchange.Protocol) error {
	if x.Req.ProtoMajor != 1 || x.Req.ProtoMinor == 0 || x.Req.ContentLength != 0 {
		return exchange.ErrCannotUpgrade
	}
	if !x.race.Begin() {
		return exchange.ErrLate
	}
	c, _ := x.Req.Context().Value(connKey{}).(*timedConn)
	done := func() {}
	if x.direct && c != nil && c.handlers != nil {
		c.handlers.Add(1) // while the server still tracks the connection
		done = c.handlers.Done
	}
	client := x.service.Client(x)
	conn, rw, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		done()
		return errors.Join(exchange.ErrCannotUpgrade, err)
	}
	s := &switched{service: x.service, p: p, conn: hijacked(conn), client: client, done: done, start: time.Now()}
	s.resumed.L = &s.mu
	head := "HTTP/1.1 101 Switching Protocols\r\nDate: " + time.Now().UTC().Format(http.TimeFormat) + "\r\n"
	for name, value := range a.Headers {
		head += name + ": " + value + "\r\n"
	}
	s.out = append(s.out, head+"Connection: Upgrade\r\nUpgrade: "+p.Name()+"\r\n\r\n"...)
	rest, _ := rw.Peek(rw.Reader.Buffered()) // from the buffer; does not read
	go s.run(append([]byte(nil), rest...))
	return nil
}

// A switched is a connection that has switched to another protocol. One goroutine reads and calls the protocol. Another one,
// which runs only while there is output, sends it, so that code of the application that the first one runs may wait for that.
type switched struct {
	service *Service
	p       exchange.Protocol
	conn    net.Conn
	client  netip.AddrPort
	done    func() // the server need not wait for the connection any more
	start   time.Time

	owner sync.Mutex // held during calls of the protocol, except Output and Pending

	mu       sync.Mutex
	resumed  sync.Cond // signalled when a paused connection may have to continue
	paused   bool
	wakes    int  // number of calls of Wake
	seen     int  // the number when the reading goroutine called the protocol last
	sending  bool // a goroutine sends output
	more     bool // there may be output that it has not fetched
	last     bool // the last output is sent, or being sent
	closed   bool
	out      []byte          // belongs to the sending goroutine
	account  *memory.Account // nil until memory is charged
	timer    *time.Timer
	deadline time.Time
}

const (
	// switchedRead is the size of the read buffer of a switched connection, in bytes. A protocol consumes all input but the
	// beginning of a frame header or control frame, unless it pauses.
	switchedRead = 4 << 10
	// switchedWrite is the maximum length of one write, in bytes, to which WriteTimeout applies.
	switchedWrite = 64 << 10
	// switchedLinger is the time for the peer to read the last output and to close.
	switchedLinger = 2 * time.Second
)

// run serves the connection until it is closed. rest is the input that net/http has read.
func (s *switched) run(rest []byte) {
	s.service.addSwitched(s)
	s.owner.Lock()
	s.p.Open(s)
	s.owner.Unlock()
	s.read(rest)
}

// read reads and passes input, first the given part, until the connection ends. If a function of the application ends this
// goroutine, the rest is read by another one.
func (s *switched) read(rest []byte) {
	returned := false
	defer func() {
		if returned {
			s.close()
		} else {
			go s.read(nil)
		}
	}()
	s.readAll(rest)
	returned = true
}

func (s *switched) readAll(rest []byte) {
	kept := s.data(rest)
	buf := make([]byte, switchedRead)
	for {
		kept = s.awaitResumed(kept)
		if len(kept) >= len(buf) { // the rest of net/http's buffer
			buf = make([]byte, 2*len(kept))
		}
		n := copy(buf, kept)
		k, err := s.conn.Read(buf[n:])
		if k > 0 {
			kept = s.data(buf[:n+k])
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				s.owner.Lock()
				s.p.End()
				s.owner.Unlock()
			}
			return
		}
	}
}

// data passes input to the protocol and sends the output. It returns the input that was not consumed.
func (s *switched) data(in []byte) []byte {
	s.mu.Lock()
	s.seen = s.wakes
	s.mu.Unlock()
	s.guarded(func() { in = in[s.p.Data(turn{s}, in):] })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	return in
}

// guarded calls f, which runs code of the application, as the owner of the connection.
func (s *switched) guarded(f func()) {
	s.owner.Lock()
	returned := false
	defer func() {
		if v := recover(); v != nil {
			s.Log().Error("panic in a function of a connection", "panic", v, "stack", string(debug.Stack()))
		}
		if !returned {
			s.p.Abandoned()
		}
		s.owner.Unlock()
	}()
	f()
	returned = true
}

// awaitResumed waits while the protocol has paused the connection. The protocol gets the rest of its input again when it was
// woken, also if that was before it could pause.
func (s *switched) awaitResumed(kept []byte) []byte {
	for {
		waited := false
		s.mu.Lock()
		for s.paused && s.seen == s.wakes && !s.last && !s.closed {
			s.resumed.Wait()
			waited = true
		}
		again := s.paused || waited || len(kept) > 0 && s.seen != s.wakes
		over := s.last || s.closed
		s.mu.Unlock()
		if over || !again {
			return kept
		}
		kept = s.data(kept)
	}
}

// Wake sends output, and has a paused connection looked at.
func (s *switched) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakes++
	s.resumed.Broadcast()
	s.flush()
}

// flush has output sent by a goroutine. s.mu is held.
func (s *switched) flush() {
	s.more = true
	if !s.sending && !s.last && !s.closed {
		s.sending = true
		go s.send()
	}
}

// send sends output until there is none.
func (s *switched) send() {
	for {
		s.mu.Lock()
		if !s.more || s.closed {
			s.sending = false
			s.mu.Unlock()
			return
		}
		s.more = false
		s.mu.Unlock()
		out, last := s.p.Output(s.out)
		s.out = nil
		s.p.Unsent(0) // all of it is written, or the connection closed
		if len(out) > 0 {
			s.p.Pending(int64(len(out)))
			if s.write(out) != nil {
				_ = s.conn.Close() // the reading goroutine notices it
				return
			}
			if s.p.Pending(0) {
				go s.callWithoutInput() // not here: the call may have to wait for the application, which may wait for the next output
			}
			if cap(out) <= switchedWrite {
				s.out = out[:0]
			}
		}
		if last {
			s.end()
			return
		}
	}
}

// write sends b, a piece at a time, each within WriteTimeout.
func (s *switched) write(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), switchedWrite)
		_ = s.conn.SetWriteDeadline(time.Now().Add(s.service.WriteTimeout))
		if _, err := s.conn.Write(b[:n]); err != nil {
			if timedOutIO(err) {
				s.service.NoteSlowReader(s.client)
			}
			return err
		}
		b = b[n:]
	}
	return nil
}

// end closes our side, and the whole connection when the peer has closed or after switchedLinger.
func (s *switched) end() {
	s.mu.Lock()
	s.last = true
	s.resumed.Broadcast()
	s.mu.Unlock()
	if half, ok := s.conn.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		_ = s.conn.Close()
	}
	_ = s.conn.SetReadDeadline(time.Now().Add(switchedLinger))
}

// callWithoutInput calls the protocol, so that it can react to room for output or to a drain.
func (s *switched) callWithoutInput() {
	s.guarded(func() {
		if !s.isClosed() {
			s.p.Data(turn{s}, nil)
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
}

func (s *switched) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// close ends the connection. The reading goroutine calls it last.
func (s *switched) close() {
	_ = s.conn.Close()
	s.owner.Lock()
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.p.Closed()
	s.owner.Unlock()
	s.mu.Lock()
	a := s.account
	s.mu.Unlock()
	if a != nil {
		a.Close()
	}
	s.service.removeSwitched(s)
	s.done()
}

// Loop returns nil: there is no loop.
func (s *switched) Loop() exchange.Loop { return nil }

// WakeHere is never called without a loop.
func (s *switched) WakeHere() {}

// Prompt is false: Wake sends output at once.
func (s *switched) Prompt() bool      { return false }
func (s *switched) Restarting() bool  { return s.service.Pipeline.IsRestarting() }
func (s *switched) Log() *slog.Logger { return s.service.Log }

// SetDeadline sets the time of the protocol's Timeout.
func (s *switched) SetDeadline(after int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := time.Duration(after)
	switch {
	case d == 0:
		s.deadline = time.Time{}
		return
	case s.closed:
		return
	}
	next := time.Now().Add(d)
	if s.timer == nil {
		s.timer = time.AfterFunc(d, s.timeout)
	} else if s.deadline.IsZero() || next.Before(s.deadline) { // otherwise the timer is set again when it expires
		s.timer.Reset(d)
	}
	s.deadline = next
}

func (s *switched) timeout() {
	s.owner.Lock()
	s.mu.Lock()
	left := time.Until(s.deadline)
	if s.closed || s.deadline.IsZero() || left > 0 {
		if left > 0 && !s.closed {
			s.timer.Reset(left)
		}
		s.mu.Unlock()
		s.owner.Unlock()
		return
	}
	s.deadline = time.Time{}
	s.mu.Unlock()
	s.p.Timeout(turn{s})
	s.mu.Lock()
	over := s.deadline.IsZero()
	s.mu.Unlock()
	s.owner.Unlock()
	if over {
		_ = s.conn.Close()
		return
	}
	s.Wake()
}

// Pause stops or continues the reading of input.
func (s *switched) Pause(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused = on; !on {
		s.resumed.Broadcast()
	}
}

// Reserve charges n bytes if there is room.
func (s *switched) Reserve(n int64) bool {
	a := s.opened()
	if a == nil {
		return false
	}
	return a.TryReserve(memory.Input, n)
}

// Charge charges n bytes of output that waits, or with a negative n ends their charge.
func (s *switched) Charge(n int64) {
	switch a := s.opened(); {
	case n < 0:
		s.release(memory.Output, -n)
	case a != nil:
		a.Force(memory.Output, n)
	}
}

// Release releases n bytes of Reserve.
func (s *switched) Release(n int64) { s.release(memory.Input, n) }

func (s *switched) release(use memory.Use, n int64) {
	s.mu.Lock()
	a := s.account
	s.mu.Unlock()
	if a != nil {
		a.Release(use, n)
	}
}

// opened returns the account of the connection, nil if it is closed.
func (s *switched) opened() *memory.Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil
	case s.account == nil:
		s.account = s.service.Budget.Open(s, s.client.Addr())
	}
	return s.account
}

// Submit is never called: the connection has goroutines of its own.
func (s *switched) Submit(exchange.Turn) {}

// RemoteAddr returns the address of the client.
func (s *switched) RemoteAddr() netip.AddrPort { return s.client }

// End evicts the connection, whose memory others need.
func (s *switched) End(a *memory.Account) {
	s.service.NoteEnded(s.client, a)
	go func() {
		s.owner.Lock()
		if !s.isClosed() {
			s.p.Evict()
		}
		s.owner.Unlock()
		s.Wake()
		_ = s.conn.SetReadDeadline(time.Now().Add(switchedLinger)) // an error means that it is closed
		_ = s.conn.SetWriteDeadline(time.Now().Add(switchedLinger))
	}()
}

// A turn is a call of the protocol.
type turn struct{ *switched }

func (t turn) Now() int64       { return int64(time.Since(t.start)) }
func (t turn) Clock() int64     { return t.Now() }
func (t turn) VisitTime() int64 { return 0 }
func (t turn) Inline() bool     { return false }
func (t turn) Draining() bool   { return t.service.Pipeline.IsDraining() }
func (t turn) Spread() int64    { return t.service.spread.Load() }
func (t turn) EnterPart(int)    {}
func (t turn) Leave() bool      { return true }
func (t turn) Watch(bool)       {}
func (t turn) Waited() bool     { return false }
func (t turn) Again()           {}
func (t turn) Later()           {}

// AtCapacity and OverCapacity are false: there is no loop to protect.
func (t turn) AtCapacity() bool   { return false }
func (t turn) OverCapacity() bool { return false }

// addSwitched and removeSwitched maintain the connections that a drain must end.
func (s *Service) addSwitched(c *switched) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.switched == nil {
		s.switched = make(map[*switched]struct{})
	}
	s.switched[c] = struct{}{}
}

func (s *Service) removeSwitched(c *switched) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.switched, c)
}

// drainSwitched tells the protocols of all switched connections that the server drains until ctx ends. They have half of that
// time to end, and at most a millisecond for each connection.
func (s *Service) drainSwitched(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until, ok := ctx.Deadline(); ok {
		s.spread.Store(max(int64(min(time.Until(until)/2, time.Duration(len(s.switched))*time.Millisecond)), 0))
	}
	for c := range s.switched {
		go c.callWithoutInput()
	}
}

// closeSwitched closes all switched connections.
func (s *Service) closeSwitched() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.switched {
		_ = c.conn.Close()
	}
}
