//go:build linux

package engine_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

// recordOf returns a record in clear text.
func recordOf(kind byte, length int, payload []byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{kind, 3, 1}, uint16(length)), payload...)
}

// clientHello returns the first record of a client.
func clientHello(t testing.TB) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() { _ = tls.Client(theirs, tlstest.Client()).Handshake() }()
	b := make([]byte, 16<<10)
	n, err := ours.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

func TestTLSInvalidHandshakeClosesConnection(t *testing.T) {
	hello := clientHello(t)
	shed := new(admission.Shed)
	notTLS := []byte("this port speaks TLS\n")
	s := serveTLS(t, engine.Config{Loops: 1, Shed: shed}, &engine.TLS{NotTLS: notTLS}, newLineHandler())
	const protocolVersion, unexpectedMessage, decodeError, recordOverflow = 70, 10, 50, 22
	for _, c := range []struct {
		name   string
		sent   []byte
		alert  byte
		answer string
		reason admission.Reason
	}{
		{"clear text", []byte("GET / HTTP/1.1\r\n\r\n"), 0, string(notTLS), admission.ClearText},
		{"a letter", []byte("G"), 0, string(notTLS), admission.ClearText},
		{"SSL 2", append([]byte{0x80, 0x2e, 1, 0, 2}, make([]byte, 100)...), protocolVersion, "", admission.TLSError},
		{"no more of SSL 2 than its header", []byte{0x80, 3, 1, 3, 3}, protocolVersion, "", admission.TLSError},
		{"another type", recordOf(99, 3, []byte("abc")), 0, "", admission.TLSError},
		{"an empty record", recordOf(22, 0, nil), unexpectedMessage, "", admission.TLSError},
		{"too long a record", recordOf(22, 0xffff, nil), recordOverflow, "", admission.TLSError},
		{"data first", recordOf(23, 3, []byte("abc")), 0, "", admission.TLSError},
		{"an alert first", recordOf(21, 2, []byte{2, 40}), 0, "", admission.TLSError},
		{"a hello without content", recordOf(22, 4, []byte{1, 0, 0, 0}), decodeError, "", admission.TLSError},
		{"another message", recordOf(22, 4, []byte{20, 0, 0, 0}), unexpectedMessage, "", admission.TLSError},
		{"an alert in the hello", append(recordOf(22, 100, hello[5:105]), recordOf(21, 2, []byte{2, 40})...), 0, "", admission.TLSError},
		{"an alert after it", append(bytes.Clone(hello), recordOf(21, 2, []byte{2, 40})...), 0, "", admission.TLSError},
		{"nonsense after it", append(bytes.Clone(hello), recordOf(23, 40, make([]byte, 40))...), 20, "", admission.TLSError},
	} {
		before := shed.Count(c.reason)
		conn := s.dial()
		conn.send(string(c.sent))
		got, err := io.ReadAll(conn.r)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		switch {
		case c.answer != "" && string(got) != c.answer:
			t.Errorf("%s: got %q, want %q", c.name, got, c.answer)
		case c.alert != 0 && (len(got) < 7 || len(got) == 7 && got[6] != c.alert):
			t.Errorf("%s: got % x, want alert %d", c.name, got, c.alert)
		}
		if shed.Count(c.reason) != before+1 {
			t.Errorf("%s: got %v was counted %d times", c.name, c.reason, shed.Count(c.reason)-before)
		}
		conn.Close()
	}
	c := s.dialTLS(nil)
	c.send("echo still here\n")
	c.want("still here")
}

func TestTLSBrokenRecordCausesAlert(t *testing.T) {
	shed := new(admission.Shed)
	h := newLineHandler()
	duplex(h, "")
	s := serveTLS(t, engine.Config{Loops: 1, Shed: shed}, &engine.TLS{}, h)
	for _, blocked := range []bool{false, true} {
		for name, broken := range map[string]func(raw *tlstest.Raw) []byte{
			"bad record MAC": func(raw *tlstest.Raw) []byte {
				b := raw.Record(tlstest.Application, []byte("echo a\n"), 0)
				b[9] ^= 1
				return b
			},
			"record overflow":    func(*tlstest.Raw) []byte { return recordOf(23, 0xffff, make([]byte, 100)) },
			"unexpected message": func(raw *tlstest.Raw) []byte { return raw.Record(tlstest.Handshake, []byte{1, 0, 0, 0}, 0) },
			"protocol version":   func(*tlstest.Raw) []byte { return []byte("GET / HTTP/1.1\r\n\r\n") },
			"remote error":       func(raw *tlstest.Raw) []byte { return raw.Record(tlstest.Alert, []byte{2, 40}, 0) },
		} {
			before := shed.Count(admission.TLSError)
			raw, c := s.dialRaw()
			if blocked {
				if err := raw.Send(raw.Record(tlstest.Application, []byte("upload 1000\n"), 0)); err != nil {
					t.Fatal(err)
				}
				c.want("ready")
			}
			if err := raw.Send(broken(raw)); err != nil {
				t.Fatal(err)
			}
			_, err := c.r.ReadString('\n')
			if name == "remote error" && err == nil || name != "remote error" && (err == nil || !strings.Contains(err.Error(), "tls:")) {
				t.Errorf("%s: the client got the error %v", name, err)
			}
			eventually(t, name+" is counted once", func() bool { return shed.Count(admission.TLSError) == before+1 })
		}
	}
}

func TestTLSEmptyRecordsCloseConnection(t *testing.T) {
	shed := new(admission.Shed)
	h := newLineHandler()
	duplex(h, "")
	s := serveTLS(t, engine.Config{Loops: 1, Shed: shed}, &engine.TLS{}, h)
	for i, reads := range []string{"the loop", "an action"} {
		raw, c := s.dialRaw()
		if i == 1 {
			if err := raw.Send(raw.Record(tlstest.Application, []byte("upload 1000\n"), 0)); err != nil {
				t.Fatal(err)
			}
			c.want("ready")
		}
		// The beginning of a message of 200 KB, which crypto/tls would keep.
		message := append([]byte{11, 3, 0, 0}, make([]byte, 16000)...)
		var err error
		for i := 0; i < 20 && err == nil; i++ {
			err = raw.Send(raw.Record(tlstest.Handshake, message, 0))
			message = message[4:]
			message = append(message, 0, 0, 0, 0)
		}
		if _, err := c.r.ReadString('\n'); err == nil {
			t.Errorf("%s reads: the connection is still open", reads)
		}
		eventually(t, "it is counted", func() bool { return shed.Count(admission.TLSError) == uint64(i+1) })
	}
}

// A client that repeatedly requests new keys, and does not read, causes little pending output, also while an action reads as
// fast as the client sends.
func TestTLSUnreadKeyUpdateRepliesCloseConnection(t *testing.T) {
	shed := new(admission.Shed)
	budget := memory.New(0)
	h := newLineHandler()
	h.commands["swallow"] = func(d *engine.Driver, c *engine.Conn, args string) {
		answer(d, "ready")
		if d.Flush(20*time.Second) != nil {
			return
		}
		b := make([]byte, 3000)
		for {
			if _, err := c.Read(b, 20*time.Second); err != nil {
				c.Close()
				return
			}
		}
	}
	s := serveTLS(t, engine.Config{Loops: 1, Shed: shed, Budget: budget}, &engine.TLS{}, h)
	raw, c := s.dialRaw()
	if err := raw.Send(raw.Record(tlstest.Application, []byte("swallow\n"), 0)); err != nil {
		t.Fatal(err)
	}
	c.want("ready")
	most := int64(0)
	var err error
	for i := 0; i < 50_000 && err == nil; i++ {
		var b []byte
		for range 15 {
			b = append(b, raw.KeyUpdate(true)...)
		}
		err = raw.Send(append(b, raw.Record(tlstest.Application, []byte("x"), 0)...))
		most = max(most, budget.HeldFor(memory.Output))
	}
	if err == nil || shed.Count(admission.TLSError) != 1 {
		t.Errorf("after 750,000 requests for new keys: got %v, counted %d times", err, shed.Count(admission.TLSError))
	}
	if most > 256<<10 {
		t.Errorf("up to %d bytes of replies were held for it", most)
	}
	eventually(t, "the connection is closed", func() bool { return s.Stats().Conns == 0 && budget.Held() == 0 })
}

func TestTLSClientHelloTimeout(t *testing.T) {
	hello := clientHello(t)
	for _, c := range []struct {
		name    string
		sent    []byte
		counted bool
	}{
		{"silent", nil, false},
		{"a byte", hello[:1], true},
		{"half a ClientHello", hello[:len(hello)/2], true},
	} {
		shed := new(admission.Shed)
		budget := memory.New(0)
		s := serveTLS(t, engine.Config{Loops: 1, Shed: shed, Budget: budget}, &engine.TLS{Timeout: time.Hour}, newLineHandler())
		conn := s.dial()
		conn.send(string(c.sent))
		eventually(t, "it has come", func() bool { return s.Stats().Conns == 1 && (budget.Held() > 0) == c.counted })
		s.AdvanceClock(2 * time.Hour)
		_, _ = io.Copy(io.Discard, conn.r)
		eventually(t, "the connection is closed", func() bool { return s.Stats().Conns == 0 })
		if got := shed.Count(admission.SlowHandshake) == 1; got != c.counted {
			t.Errorf("%s: counted: got %v", c.name, got)
		}
	}
}

func TestTLSHandshakeTimeout(t *testing.T) {
	shed := new(admission.Shed)
	s := serveTLS(t, engine.Config{Loops: 1, Shed: shed}, &engine.TLS{Timeout: 2 * time.Second}, newLineHandler())
	conn := s.dial()
	conn.send(string(clientHello(t)))
	_, err := io.Copy(io.Discard, conn.r)
	if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
		t.Fatal("the connection stays open")
	}
	eventually(t, "it is counted", func() bool { return shed.Count(admission.SlowHandshake) == 1 && s.Stats().Conns == 0 })
}

func TestTLSHandshakeTimeoutEndsWithHandshake(t *testing.T) {
	s := serveTLS(t, engine.Config{Loops: 1, OpenTimeout: time.Hour}, &engine.TLS{Timeout: time.Minute}, newLineHandler())
	c := s.dialTLS(nil)
	c.send("echo a\n")
	c.want("a")
	fresh := s.dialTLS(nil)
	eventually(t, "the handshakes are over", func() bool { return s.Stats().Handshakes == 0 && s.Stats().Away == 0 })
	s.AdvanceClock(10 * time.Minute)
	for _, c := range []*client{c, fresh} {
		c.send("echo b\n")
		c.want("b")
	}
}

func TestTLSHandshakeMemoryIsCharged(t *testing.T) {
	hello := clientHello(t)
	budget := memory.New(0)
	s := serveTLS(t, engine.Config{Loops: 1, Budget: budget}, &engine.TLS{}, newLineHandler())
	half := s.dial()
	half.send(string(hello[:300]))
	eventually(t, "half a ClientHello is held", func() bool { return budget.HeldFor(memory.Input) == 336 })
	stopped := s.dial()
	stopped.send(string(hello))
	eventually(t, "a handshake is held", func() bool {
		return budget.HeldFor(memory.Input) == 40<<10+336
	})
	half.Close()
	stopped.Close()
	eventually(t, "nothing is held", func() bool { return budget.Held() == 0 })
	c := s.dialTLS(nil)
	c.send("echo a\n")
	c.want("a")
	eventually(t, "an idle connection holds nothing", func() bool { return budget.Held() == 0 })
}

// Clients that stop during the handshake do not keep other clients out, even if they have as many handshakes as can run.
func TestTLSStalledHandshakesMakeRoom(t *testing.T) {
	hello := clientHello(t)
	shed := new(admission.Shed)
	budget := memory.New(5 << 20)
	s := serveTLS(t, engine.Config{Loops: 2, Shed: shed, Budget: budget, QueueTarget: -1}, &engine.TLS{}, newLineHandler()) // however slow they are
	const clients = 100
	for range clients {
		s.dial().send(string(hello))
	}
	eventually(t, "as many have begun as may", func() bool { return s.Stats().Handshakes >= 64 })
	c := s.dialTLS(nil)
	c.send("echo let in\n")
	c.want("let in")
	if shed.Count(admission.SlowHandshake) == 0 {
		t.Error("no handshake was ended")
	}
}

func TestTLSBlockedGetCertificateDoesNotDelayOthers(t *testing.T) {
	config := tlstest.Server()
	cert := config.Certificates[0]
	config.Certificates = nil
	entered, open := make(chan struct{}, 100), make(chan struct{})
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if hello.ServerName == "slow.test" {
			entered <- struct{}{}
			<-open
		}
		if _, ok := hello.Conn.RemoteAddr().(*net.TCPAddr); !ok {
			t.Errorf("the client's address is %v", hello.Conn.RemoteAddr())
		}
		return &cert, nil
	}
	s := serveTLS(t, engine.Config{Loops: 2, QueueTarget: -1}, &engine.TLS{Config: config}, newLineHandler()) // however slow they are
	var slow sync.WaitGroup
	for range 20 {
		conn := s.dial()
		slow.Go(func() {
			config := tlstest.Client()
			config.ServerName, config.InsecureSkipVerify = "slow.test", true
			if err := tls.Client(conn.Conn, config).Handshake(); err != nil {
				t.Error(err)
			}
		})
	}
	for range 20 {
		<-entered
	}
	c := s.dialTLS(nil)
	c.send("echo quick\n")
	c.want("quick")
	close(open)
	slow.Wait()
}

func TestTLSPanicInHandshakeClosesConnection(t *testing.T) {
	config := tlstest.Server()
	cert := config.Certificates[0]
	config.Certificates = nil
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if hello.ServerName == "panic.test" {
			panic("in GetCertificate")
		}
		return &cert, nil
	}
	logs := new(logBuffer)
	s := serveTLS(t, engine.Config{Loops: 1, Logger: slog.New(slog.NewTextHandler(logs, nil))}, &engine.TLS{Config: config}, newLineHandler())
	other := tlstest.Client()
	other.ServerName = "panic.test"
	if err := tls.Client(s.dial().Conn, other).Handshake(); err == nil {
		t.Error("the handshake succeeded")
	}
	c := s.dialTLS(nil)
	c.send("echo a\n")
	c.want("a")
	if !strings.Contains(logs.String(), "panic in a TLS handshake") {
		t.Errorf("the log says %q", logs.String())
	}
}

func TestTLSClientCertificates(t *testing.T) {
	cert, pool := tlstest.Certificate()
	config := tlstest.Server()
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, pool
	onTLSVersions(t, func(t *testing.T, client *tls.Config) {
		h := newLineHandler()
		h.commands["who"] = func(d *engine.Driver, c *engine.Conn, args string) {
			answer(d, c.TLS().PeerCertificates[0].Subject.CommonName)
		}
		shed := new(admission.Shed)
		s := serveTLS(t, engine.Config{Loops: 1, Shed: shed}, &engine.TLS{Config: config}, h)
		client.Certificates = []tls.Certificate{cert}
		c := s.dialTLS(client)
		c.send("who\n")
		c.want("dunlin")
		// A client without a certificate. In TLS 1.3 the client learns of the refusal after its own handshake.
		client = client.Clone()
		client.Certificates = nil
		conn := tls.Client(s.dial().Conn, client)
		err := conn.Handshake()
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		if err == nil || !strings.Contains(err.Error(), "certificate required") && !strings.Contains(err.Error(), "handshake failure") {
			t.Errorf("the client got the error %v", err)
		}
		eventually(t, "it is counted", func() bool { return shed.Count(admission.TLSError) == 1 })
	})
}

func TestTLSForcedCloseDuringHandshake(t *testing.T) {
	hello := clientHello(t)
	s := serveTLS(t, engine.Config{Loops: 1}, &engine.TLS{}, newLineHandler())
	c := s.dial()
	c.send(string(hello))
	half := s.dial()
	half.send(string(hello[:100]))
	eventually(t, "the handshake waits for its client", func() bool { return s.Stats().Handshakes == 1 && s.Stats().Conns == 2 })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, c.r)
	_, _ = io.Copy(io.Discard, half.r)
}
