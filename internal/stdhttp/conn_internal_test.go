package stdhttp

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// stepConn reads or writes according to each step, and then times out if the step requires it.
type stepConn struct {
	net.Conn
	steps  []step
	took   strings.Builder
	writes int // number of deadlines set
	reads  int
}

type step struct {
	n   int
	err error
}

func (c *stepConn) next() step {
	s := c.steps[0]
	c.steps = c.steps[1:]
	return s
}

func (c *stepConn) Write(p []byte) (int, error) {
	s := c.next()
	if s.err == nil {
		s.n = len(p)
	}
	c.took.Write(p[:s.n])
	return s.n, s.err
}

func (c *stepConn) ReadFrom(src io.Reader) (int64, error) {
	buf := make([]byte, 10) // reads ahead, as io.Copy does
	n, _ := src.Read(buf)
	k, err := c.Write(buf[:n])
	if err != nil {
		return int64(k), err
	}
	rest, _ := io.ReadAll(src)
	c.took.Write(rest)
	return int64(k + len(rest)), nil
}

func (c *stepConn) Read(p []byte) (int, error)        { s := c.next(); return s.n, s.err }
func (c *stepConn) RemoteAddr() net.Addr              { return &net.TCPAddr{} }
func (c *stepConn) SetWriteDeadline(time.Time) error  { c.writes++; return nil }
func (c *stepConn) SetReadDeadline(t time.Time) error { c.reads++; return nil }

var (
	errLate = &net.OpError{Op: "write", Err: os.ErrDeadlineExceeded}
	errGone = errors.New("reset by peer")
)

// patient is a server whose own clock never ends a connection.
var patient = &exchange.Server{
	Settings: exchange.Settings{BodyTimeout: time.Hour, WriteTimeout: time.Hour},
	Log:      slog.New(slog.DiscardHandler),
	Shed:     new(admission.Shed),
	Pipeline: causes{},
}

// causes creates no problems: it returns the causes of errors unchanged.
type causes struct{ exchange.Pipeline }

func (causes) Problem(_ int, _ string, cause error) error { return cause }

// A deadline that has expired disconnects a client only if it accepted nothing since the deadline was set again.
func TestConnWrite(t *testing.T) {
	const text = "some text to be written"
	for _, c := range []struct {
		name   string
		steps  []step
		want   string
		err    error
		writes int
	}{
		{"all at once", []step{{0, nil}}, text, nil, 1},
		{"an old deadline", []step{{0, errLate}, {0, nil}}, text, nil, 2},
		{"a slow client", []step{{0, errLate}, {2, errLate}, {5, errLate}, {0, nil}}, text, nil, 4},
		{"a client that takes nothing", []step{{0, errLate}, {0, errLate}}, "", os.ErrDeadlineExceeded, 2},
		{"one that stops", []step{{4, errLate}, {0, errLate}}, text[:4], os.ErrDeadlineExceeded, 2},
		{"one that goes", []step{{4, errGone}}, text[:4], errGone, 1},
	} {
		to := &stepConn{steps: c.steps}
		conn := &timedConn{Conn: to, server: patient}
		n, err := conn.Write([]byte(text))
		if !errors.Is(err, c.err) || n != len(c.want) || to.took.String() != c.want || len(to.steps) > 0 || to.writes != c.writes {
			t.Errorf("%s: got %d, %v, took %q, %d deadlines; want %q, %v, %d", c.name, n, err, to.took.String(), to.writes, c.want, c.err, c.writes)
		}
	}
}

// A deadline set by a handler is in force until the handler removes it.
func TestConnForeignDeadline(t *testing.T) {
	to := &stepConn{steps: []step{{0, errLate}, {0, errLate}, {0, nil}, {0, errLate}}}
	conn := &timedConn{Conn: to, server: patient}
	_ = conn.SetWriteDeadline(time.Now())
	if n, err := conn.Write([]byte("x")); n != 0 || !timedOutIO(err) || to.writes != 1 {
		t.Errorf("%d, %v, %d deadlines", n, err, to.writes)
	}
	_ = conn.SetDeadline(time.Time{})
	if n, err := conn.Write([]byte("x")); n != 1 || err != nil || to.writes != 4 {
		t.Errorf("%d, %v, %d deadlines", n, err, to.writes)
	}
	conn.release()
	if n, err := conn.Write([]byte("x")); n != 0 || !timedOutIO(err) || to.writes != 5 { // ours was restored
		t.Errorf("hijacked: got %d, %v, %d deadlines", n, err, to.writes)
	}
}

// A file continues where it stopped, also if more was read ahead.
func TestConnFile(t *testing.T) {
	text := strings.Repeat("0123456789abcdefg", exchange.MinSendfile/16)
	path := t.TempDir() + "/file"
	if err := os.WriteFile(path, []byte(text+"beyond"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	to := &stepConn{steps: []step{{3, errLate}, {7, errLate}, {0, nil}}}
	conn := &timedConn{Conn: to, server: patient}
	n, err := conn.ReadFrom(&io.LimitedReader{R: f, N: int64(len(text))})
	if n != int64(len(text)) || err != nil || to.took.String() != text {
		t.Errorf("%d of %d bytes, %v", n, len(text), err)
	}
}

// A body sets a deadline once, when the connection is read, and leaves it to expire.
func TestTimedBody(t *testing.T) {
	read := func(steps ...step) (*stepConn, *TimedBody) {
		to := &stepConn{steps: steps}
		conn := &timedConn{Conn: to, server: patient}
		return to, &TimedBody{ReadCloser: io.NopCloser(conn), conn: conn}
	}
	to, b := read(step{1, nil}, step{1, nil}, step{0, io.EOF})
	if _, err := io.Copy(io.Discard, b); err != nil || to.reads != 1 {
		t.Errorf("%v, %d deadlines, want 1", err, to.reads)
	}
	to, b = read(step{1, nil}, step{0, errLate}, step{1, nil}, step{0, errLate}, step{0, errLate})
	if _, err := io.Copy(io.Discard, b); !timedOutIO(err) || to.reads != 3 {
		t.Errorf("%v, %d deadlines, want 3", err, to.reads)
	}
	to, b = read(step{0, errLate})
	b.conn.foreign.Store(true)
	if _, err := io.Copy(io.Discard, b); !timedOutIO(err) || to.reads != 0 {
		t.Errorf("under another deadline: got %v, %d deadlines", err, to.reads)
	}
	to, b = read(step{0, io.EOF})
	b.Stop()
	if _, err := io.Copy(io.Discard, b); err != nil || to.reads != 0 {
		t.Errorf("after its request: got %v, %d deadlines", err, to.reads)
	}
}

// Requests that are answered in time share one deadline, although net/http removes it after each request. A hijacked connection
// has no deadline of ours.
func TestConnSharesDeadline(t *testing.T) {
	inner := &stepConn{steps: []step{{}, {}, {}, {}}}
	c := &timedConn{Conn: inner, server: patient}
	write := func(want int, when string) {
		t.Helper()
		if _, err := c.Write([]byte("x")); err != nil || inner.writes != want {
			t.Errorf("%s: got %d deadlines set, %v; want %d", when, inner.writes, err, want)
		}
		_ = c.SetWriteDeadline(time.Time{})
	}
	write(1, "the first answer")
	write(1, "the second")
	_ = c.SetWriteDeadline(time.Now())
	_ = c.SetWriteDeadline(time.Time{})
	write(4, "after a handler's own") // the deadline of the handler, its removal, and ours
	if c.release(); inner.writes != 5 {
		t.Errorf("%d deadlines set, want 5: that of the hijacker is none", inner.writes)
	}
	if c.release(); inner.writes != 5 {
		t.Error("release changes what is the hijacker's")
	}
}

// A read ends at the last wanted deadline, independent of the deadlines set on the socket.
func TestReadDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe := func() (*timedConn, net.Conn) {
			ours, theirs := net.Pipe()
			t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
			return &timedConn{Conn: ours, server: patient}, theirs
		}
		read := func(c *timedConn) chan error {
			done := make(chan error, 1)
			go func() {
				_, err := c.Read(make([]byte, 1))
				done <- err
			}()
			return done
		}
		in := func(seconds int) time.Time { return time.Now().Add(time.Duration(seconds) * time.Second) }

		c, peer := pipe()
		start := time.Now()
		_ = c.SetReadDeadline(in(1))
		if err := <-read(c); !timedOutIO(err) || time.Since(start) != time.Second {
			t.Errorf("its time passes: got %v after %v", err, time.Since(start))
		}
		_ = c.SetReadDeadline(in(1))
		_ = c.SetReadDeadline(time.Time{})
		done := read(c)
		<-time.After(time.Minute)
		if len(done) > 0 {
			t.Error("a deadline that was taken back ends a read")
		}
		if _, err := peer.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("no deadline: %v", err)
		}

		c, _ = pipe()
		start = time.Now()
		_ = c.SetReadDeadline(in(1))
		_ = c.SetReadDeadline(in(3))
		if err := <-read(c); !timedOutIO(err) || time.Since(start) != 3*time.Second {
			t.Errorf("a later one: got %v after %v", err, time.Since(start))
		}

		c, _ = pipe()
		start = time.Now()
		_ = c.SetReadDeadline(in(3600))
		done = read(c)
		_ = c.SetReadDeadline(time.Unix(1, 0))
		if err := <-done; !timedOutIO(err) || time.Since(start) != 0 {
			t.Errorf("an earlier one: got %v after %v", err, time.Since(start))
		}

		c, peer = pipe()
		done = read(c)
		synctest.Wait()
		_ = c.SetReadDeadline(time.Unix(1, 0))
		if err := <-done; !timedOutIO(err) {
			t.Errorf("interrupted while it waits: %v", err)
		}
		_ = c.SetReadDeadline(time.Time{})
		done = read(c)
		if _, err := peer.Write([]byte("x")); err != nil || <-done != nil {
			t.Errorf("after that: %v", err)
		}
	})
}

// A read that is interrupted before it begins returns the error of an interrupted read, but sets no deadline on the socket.
func TestReadInterruptedBeforeStart(t *testing.T) {
	inner := &stepConn{steps: []step{{1, nil}, {0, errLate}}}
	c := &timedConn{Conn: inner, server: patient}
	for range 3 {
		_ = c.SetReadDeadline(time.Unix(1, 0))
		n, err := c.Read(make([]byte, 1))
		var timeout interface {
			Timeout() bool
			Temporary() bool // crypto/tls reads again after such errors only
		}
		if n != 0 || !timedOutIO(err) || !errors.As(err, &timeout) || !timeout.Timeout() || !timeout.Temporary() {
			t.Errorf("Read = %d, %v", n, err)
		}
		_ = c.SetReadDeadline(time.Time{})
	}
	if inner.reads > 0 || len(inner.steps) != 2 {
		t.Errorf("%d deadlines set, %d reads left; want none, 2", inner.reads, len(inner.steps))
	}
	if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("afterwards Read = %d, %v", n, err)
	}
	_ = c.SetReadDeadline(time.Unix(1, 0))
	c.release()
	if _, err := c.Read(make([]byte, 1)); !timedOutIO(err) || inner.reads != 1 || len(inner.steps) > 0 {
		t.Errorf("hijacked: got %v, %d deadlines set, %d reads left; want 1, none", err, inner.reads, len(inner.steps))
	}
}

// Only earlier deadlines are set on the socket.
func TestReadDeadlineLasts(t *testing.T) {
	inner := new(stepConn)
	c := &timedConn{Conn: inner, server: patient}
	_ = c.SetReadDeadline(time.Now().Add(time.Hour))
	_ = c.SetReadDeadline(time.Time{})
	_ = c.SetReadDeadline(time.Now().Add(2 * time.Hour))
	if inner.reads != 1 {
		t.Errorf("%d deadlines set for later ones, want 1", inner.reads)
	}
	_ = c.SetReadDeadline(time.Time{})
	if c.release(); inner.reads != 2 {
		t.Errorf("%d deadlines set when it was hijacked, want 2", inner.reads)
	}
	if _ = c.SetReadDeadline(time.Now().Add(3 * time.Hour)); inner.reads != 3 {
		t.Errorf("%d deadlines set by the hijacker, want 3", inner.reads)
	}
}

// slowAddr is a connection that does not tell its address, on a listener that has one.
type slowAddr struct {
	net.Listener
	net.Conn
}

func (s slowAddr) Accept() (net.Conn, error) { return s, nil }
func (s slowAddr) Close() error              { return nil }
func (s slowAddr) Addr() net.Addr            { return nil }
func (s slowAddr) RemoteAddr() net.Addr      { panic("Accept asks for the address") }

// A connection that is slow to tell its address delays no other, as on net/http.
func TestAcceptDoesNotWaitForAddress(t *testing.T) {
	if _, err := newListener(NewService(patient), slowAddr{}, false).Accept(); err != nil {
		t.Error(err)
	}
}
