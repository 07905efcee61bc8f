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

// Upgrade takes the connection from net/http, sends status 101 with the fields of a, and serves the protocol p on a
// goroutine.
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
		c.handlers.Add(1) // while net/http still waits for the handler
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
	rest, _ := rw.Peek(rw.Reader.Buffered()) // Peek returns buffered bytes and does not read
	go s.run(append([]byte(nil), rest...))
	return nil
}

// A switched is a connection that has switched to another protocol. The reading goroutine reads input and calls the protocol.
// A second goroutine sends output and runs only while there is output. Two goroutines are needed because application code
// that runs in a call of the protocol may wait until output is sent.
type switched struct {
	service *Service
	p       exchange.Protocol
	conn    net.Conn
	client  netip.AddrPort
	done    func() // tells the server that it need not wait for the connection
	start   time.Time

	owner sync.Mutex // held during calls of the protocol's methods, except Output and Pending

	mu       sync.Mutex
	resumed  sync.Cond // signalled when a paused connection may continue
	paused   bool
	wakes    int  // number of calls of Wake
	seen     int  // value of wakes when the reading goroutine last called the protocol
	sending  bool // a goroutine sends output
	more     bool // the protocol may have output that was not yet fetched
	last     bool // the last output is being sent or was sent
	closed   bool
	out      []byte          // belongs to the goroutine that sends
	account  *memory.Account // nil until memory is charged
	timer    *time.Timer
	deadline time.Time
}

const (
	// switchedRead is the size of the buffer for input, in bytes. A protocol consumes all input, except the beginning of a
	// frame header or of a control frame, unless it pauses.
	switchedRead = 4 << 10
	// switchedWrite is the maximum size of one write, in bytes. WriteTimeout applies to each write.
	switchedWrite = 64 << 10
	// switchedLinger is the time that the peer has to read the last output and to close the connection.
	switchedLinger = 2 * time.Second
)

// run serves the connection until it is closed. rest is the input that net/http has already read.
func (s *switched) run(rest []byte) {
	s.service.addSwitched(s)
	s.owner.Lock()
	s.p.Open(s)
	s.owner.Unlock()
	s.read(rest)
}

// read reads input and passes it to the protocol until the connection ends. rest is input that was already read. If
// application code ends this goroutine by runtime.Goexit, another goroutine continues.
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
		if len(kept) >= len(buf) { // input that net/http had buffered may be longer than buf
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

// data passes input, the argument in, to the protocol and starts sending output. It returns the input that the protocol did
// not consume.
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

// guarded calls f, which runs application code, while it holds s.owner. If f panics or ends the goroutine, guarded calls
// Abandoned.
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

// awaitResumed waits while the protocol has paused the connection. If Wake was called, it passes kept, the input that the
// protocol did not consume, to the protocol again, even if the call of Wake came before the pause. It returns the input that
// the protocol did not consume.
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

// Wake starts sending output, and continues a paused connection if the protocol permits it.
func (s *switched) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakes++
	s.resumed.Broadcast()
	s.flush()
}

// flush starts a goroutine that sends output, unless one is running. The caller must hold s.mu.
func (s *switched) flush() {
	s.more = true
	if !s.sending && !s.last && !s.closed {
		s.sending = true
		go s.send()
	}
}

// send sends output until the protocol has no more output.
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
		s.p.Unsent(0) // all output is written, or the connection is closed
		if len(out) > 0 {
			s.p.Pending(int64(len(out)))
			if s.write(out) != nil {
				_ = s.conn.Close() // the read of the reading goroutine then fails
				return
			}
			if s.p.Pending(0) {
				go s.callWithoutInput() // on another goroutine, because the call may wait for application code, which may wait until the next output is sent
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

// write sends b in pieces. Each piece must be sent within WriteTimeout.
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

// end closes the server's side of the connection. The reading goroutine closes the connection when the peer has closed its
// side, or after switchedLinger.
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

// callWithoutInput calls the protocol so that it can react to sent output or to a drain.
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

// close ends the connection. It is the last call of the reading goroutine.
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

// Loop returns nil, because the connection does not belong to a loop.
func (s *switched) Loop() exchange.Loop { return nil }

// WakeHere does nothing. It is never called, because the connection does not belong to a loop.
func (s *switched) WakeHere() {}

// Prompt returns false. Wake starts sending output at once.
func (s *switched) Prompt() bool      { return false }
func (s *switched) Restarting() bool  { return s.service.Pipeline.IsRestarting() }
func (s *switched) Log() *slog.Logger { return s.service.Log }

// SetDeadline sets the time in nanoseconds after which the protocol's method Timeout is called. Zero means never.
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

// Reserve charges n bytes if memory is available, and reports whether it did.
func (s *switched) Reserve(n int64) bool {
	a := s.opened()
	if a == nil {
		return false
	}
	return a.TryReserve(memory.Input, n)
}

// Charge charges n bytes of output that waits to be sent. A negative n releases -n bytes.
func (s *switched) Charge(n int64) {
	switch a := s.opened(); {
	case n < 0:
		s.release(memory.Output, -n)
	case a != nil:
		a.Force(memory.Output, n)
	}
}

// Release releases n bytes that Reserve has charged.
func (s *switched) Release(n int64) { s.release(memory.Input, n) }

func (s *switched) release(use memory.Use, n int64) {
	s.mu.Lock()
	a := s.account
	s.mu.Unlock()
	if a != nil {
		a.Release(use, n)
	}
}

// opened returns the account of the connection, which it opens on the first call. It returns nil if the connection is closed.
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

// Submit is never called, because the connection has goroutines of its own.
func (s *switched) Submit(exchange.Turn) {}

// RemoteAddr returns the address of the client.
func (s *switched) RemoteAddr() netip.AddrPort { return s.client }

// End evicts the connection, because other connections need its memory.
func (s *switched) End(a *memory.Account) {
	s.service.NoteEnded(s.client, a)
	go func() {
		s.owner.Lock()
		if !s.isClosed() {
			s.p.Evict()
		}
		s.owner.Unlock()
		s.Wake()
		_ = s.conn.SetReadDeadline(time.Now().Add(switchedLinger)) // an error means that the connection is closed
		_ = s.conn.SetWriteDeadline(time.Now().Add(switchedLinger))
	}()
}

// A turn is a call of the protocol, as the protocol sees it.
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

// AtCapacity and OverCapacity return false, because the connection does not belong to a loop that must be protected.
func (t turn) AtCapacity() bool   { return false }
func (t turn) OverCapacity() bool { return false }

// addSwitched and removeSwitched maintain the set of connections that a drain must end.
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

// drainSwitched tells the protocols of all switched connections that the server drains until ctx ends. The connections have
// half of this time to end, but at most a millisecond for each connection.
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
