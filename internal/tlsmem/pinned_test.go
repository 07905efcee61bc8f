package tlsmem

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

// This file pins undocumented behaviour of crypto/tls on which the package depends. If a test fails with a new release of Go,
// reconsider the design.

// link is a client's connection to a Conn that the test serves step by step.
type link struct {
	t      *testing.T
	server *Conn
	client net.Conn // client side of the connection
	socket net.Conn // server side of the connection
}

// newLink returns a client and a server that have completed the handshake. sent returns the client's output, and reply sends
// the server's.
func newLink(t *testing.T, version uint16, dial func(net.Conn) (io.ReadWriteCloser, error)) (*link, io.ReadWriteCloser) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	l := &link{t: t}
	if l.client, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if l.socket, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.client.Close(); l.socket.Close() })
	for _, c := range []net.Conn{l.client, l.socket} {
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	config := tlstest.Server()
	config.MinVersion, config.MaxVersion = version, version
	l.server = Server(config, nil)
	l.server.More = func() error {
		l.reply()
		return l.lendRecords(l.sent(1))
	}
	type dialed struct {
		conn io.ReadWriteCloser
		err  error
	}
	done := make(chan dialed, 1)
	go func() {
		conn, err := dial(l.client)
		done <- dialed{conn, err}
	}()
	if err := l.server.Handshake(context.Background()); err != nil {
		t.Fatal(err)
	}
	l.server.More = nil
	l.reply()
	d := <-done
	if d.err != nil {
		t.Fatal(d.err)
	}
	return l, d.conn
}

func dialGo(conn net.Conn) (io.ReadWriteCloser, error) {
	c := tls.Client(conn, tlstest.Client())
	return c, c.Handshake()
}

func dialRaw(conn net.Conn) (io.ReadWriteCloser, error) { return tlstest.NewRaw(conn) }

// sent returns the next records that the client has sent; records is their number.
func (l *link) sent(records int) (all []byte) {
	for range records {
		var b []byte
		for Whole(b) == 0 {
			part := make([]byte, Missing(b))
			if _, err := io.ReadFull(l.socket, part); err != nil {
				l.t.Fatal(err)
			}
			b = append(b, part...)
		}
		all = append(all, b...)
	}
	return all
}

func (l *link) lendRecords(b []byte) error {
	l.server.Lend(b)
	return nil
}

// reply sends the output of the server.
func (l *link) reply() {
	if _, err := l.socket.Write(l.server.Out); err != nil {
		l.t.Fatal(err)
	}
	l.server.Out = nil
}

// read reads from the server until it needs more.
func (l *link) read() (got []byte, err error) {
	b := make([]byte, 10)
	for {
		n, err := l.server.Read(b)
		got = append(got, b[:n]...)
		if err != nil {
			return got, err
		}
	}
}

var versions = []uint16{tls.VersionTLS12, tls.VersionTLS13}

func onVersions(t *testing.T, f func(t *testing.T, version uint16)) {
	for _, v := range versions {
		t.Run(tls.VersionName(v), func(t *testing.T) { f(t, v) })
	}
}

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

func TestReadMayBeRepeatedAfterEveryByte(t *testing.T) {
	onVersions(t, func(t *testing.T, version uint16) {
		l, client := newLink(t, version, dialGo)
		for i := range 3 {
			text := fmt.Sprintf("message %d", i)
			write(t, client, text)
			record := l.sent(1)
			for i := range record {
				if got, err := l.read(); err != errMore || len(got) > 0 {
					t.Fatalf("after %d of %d bytes: got %q, %v", i, len(record), got, err)
				}
				l.server.Lend(record[i : i+1])
			}
			if got, err := l.read(); !NeedsMore(err) || string(got) != text {
				t.Fatalf("got %q, %v; want %q", got, err, text)
			}
			if n := len(l.server.Lent()); n != 0 {
				t.Fatalf("got %d bytes of complete records not consumed", n)
			}
		}
	})
}

func TestWriteWhileReadNeedsMore(t *testing.T) {
	onVersions(t, func(t *testing.T, version uint16) {
		l, client := newLink(t, version, dialGo)
		write(t, client, "question")
		record := l.sent(1)
		l.server.Lend(record[:len(record)-1])
		if _, err := l.read(); !NeedsMore(err) {
			t.Fatal(err)
		}
		if err := l.server.Seal([]byte("answer")); err != nil {
			t.Fatal(err)
		}
		l.reply()
		b := make([]byte, 6)
		if _, err := io.ReadFull(client, b); err != nil || string(b) != "answer" {
			t.Fatalf("got %q, %v", b, err)
		}
		l.server.Lend(record[len(record)-1:])
		if got, err := l.read(); !NeedsMore(err) || string(got) != "question" {
			t.Fatalf("got %q, %v", got, err)
		}
	})
}

func TestSeveralRecordsAreReadOneByOne(t *testing.T) {
	onVersions(t, func(t *testing.T, version uint16) {
		l, client := newLink(t, version, dialGo)
		write(t, client, "one ")
		write(t, client, "two ")
		write(t, client, "three")
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		l.server.Lend(append(l.sent(3), l.sent(1)...))
		if got, err := l.read(); err != io.EOF || string(got) != "one two three" {
			t.Fatalf("got %q, %v", got, err)
		}
		if _, err := l.read(); err != io.EOF {
			t.Fatalf("next read: got %v", err)
		}
		if err := l.server.Seal([]byte("still open")); err != nil {
			t.Fatalf("write after the client's close_notify: got error %v", err)
		}
	})
}

func TestFailedHandshakeCannotContinue(t *testing.T) {
	s := Server(tlstest.Server(), nil)
	broken := errors.New("broken")
	s.More = func() error { return broken }
	if err := s.Handshake(context.Background()); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	s.More = func() error { t.Error("the handshake asked for more records"); return broken }
	if err := s.Handshake(context.Background()); !errors.Is(err, broken) {
		t.Fatal(err)
	}
}

func TestBrokenRecordEndsBothDirections(t *testing.T) {
	onVersions(t, func(t *testing.T, version uint16) {
		l, client := newLink(t, version, dialGo)
		write(t, client, "question")
		record := l.sent(1)
		record[len(record)-1] ^= 1
		l.server.Lend(record)
		if _, err := l.read(); err == nil || NeedsMore(err) || err == io.EOF {
			t.Fatal(err)
		}
		if len(l.server.Out) == 0 {
			t.Error("got no alert")
		}
		if err := l.server.Seal([]byte("answer")); err == nil {
			t.Error("got data after the alert")
		}
	})
}

func TestCloseNotifyIsSentOnce(t *testing.T) {
	onVersions(t, func(t *testing.T, version uint16) {
		l, client := newLink(t, version, dialGo)
		l.server.SealEnd()
		n := len(l.server.Out)
		l.server.SealEnd()
		if n == 0 || len(l.server.Out) != n {
			t.Fatalf("got %d bytes, and %d after the second call", n, len(l.server.Out))
		}
		l.reply()
		if _, err := client.Read(make([]byte, 1)); err != io.EOF {
			t.Fatal(err)
		}
		write(t, client, "heard")
		l.server.Lend(l.sent(1))
		if got, err := l.read(); !NeedsMore(err) || string(got) != "heard" {
			t.Fatalf("got %q, %v", got, err)
		}
	})
}

func TestAKeyUpdateIsAnsweredByARead(t *testing.T) {
	l, client := newLink(t, tls.VersionTLS13, dialRaw)
	raw := client.(*tlstest.Raw)
	if err := raw.Send(raw.Record(tlstest.Application, []byte("before "), 0), raw.KeyUpdate(true), raw.Record(tlstest.Application, []byte("after"), 100)); err != nil {
		t.Fatal(err)
	}
	l.server.Lend(append(append(l.sent(1), l.sent(1)...), l.sent(1)...))
	if got, err := l.read(); !NeedsMore(err) || string(got) != "before after" {
		t.Fatalf("got %q, %v", got, err)
	}
	if len(l.server.Out) == 0 {
		t.Fatal("got no reply")
	}
	if err := l.server.Seal([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	l.reply()
	b := make([]byte, 6)
	if _, err := io.ReadFull(raw, b); err != nil || string(b) != "answer" {
		t.Fatalf("got %q, %v", b, err)
	}
}

func TestAttachContinuesConnection(t *testing.T) {
	onVersions(t, func(t *testing.T, version uint16) {
		l, client := newLink(t, version, dialGo)
		write(t, client, "one")
		write(t, client, "two")
		first, second := l.sent(1), l.sent(1)
		conn := l.server.Attach(l.socket, append(first, second[:7]...))
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		b := make([]byte, 3)
		if _, err := io.ReadFull(conn, b); err != nil || string(b) != "one" {
			t.Fatalf("got %q, %v", b, err)
		}
		// The rest arrives on the connection.
		r, w := net.Pipe()
		defer r.Close()
		l.server.socket = r
		go func() { _, _ = w.Write(second[7:]); w.Close() }()
		if _, err := io.ReadFull(conn, b); err != nil || string(b) != "two" {
			t.Fatalf("got %q, %v", b, err)
		}
	})
}

func TestAReadAndAWriteAllocateNothing(t *testing.T) {
	if invariants.Enabled {
		t.Skip("with the race detector the pools of crypto/tls forget at random")
	}
	l, client := newLink(t, tls.VersionTLS13, dialRaw)
	raw := client.(*tlstest.Raw)
	records := make([][]byte, 300)
	for i := range records {
		records[i] = raw.Record(tlstest.Application, bytes.Repeat([]byte("x"), 100), 0)
	}
	next := 0
	in, out := make([]byte, 200), make([]byte, 0, 1000)
	n := testing.AllocsPerRun(200, func() {
		l.server.Out = out
		l.server.LendInPlace(records[next])
		next++
		if n, err := l.server.Read(in); n != 100 || err != nil {
			t.Fatal(n, err)
		}
		if err := l.server.Seal(in[:100]); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0 {
		t.Errorf("got %v allocations for a record in each direction", n)
	}
}
