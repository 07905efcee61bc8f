//go:build linux

package engine_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

// serveTLS is serve with TLS.
func serveTLS(t testing.TB, cfg engine.Config, by *engine.TLS, h engine.Handler) *server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if by.Config == nil {
		by.Config = tlstest.Server()
	}
	return serveBy(t, cfg, h, ln, func(e *engine.Engine) error { return e.ServeTLS(ln, by) })
}

// A recorder is a client's end of a connection that records the received bytes.
type recorder struct {
	net.Conn
	piece  int    // number of bytes in one write, 0: all
	gather bool   // writes wait until release
	kept   []byte // the bytes not written yet

	mu   sync.Mutex
	came []byte
}

func (w *recorder) Write(p []byte) (sent int, err error) {
	if w.gather {
		w.kept = append(w.kept, p...)
		return len(p), nil
	}
	for len(p) > 0 && err == nil {
		k := len(p)
		if w.piece > 0 {
			k = min(k, w.piece)
		}
		n := 0
		n, err = w.Conn.Write(p[:k])
		sent, p = sent+n, p[n:]
	}
	return sent, err
}

// release writes the gathered bytes.
func (w *recorder) release() error {
	w.gather = false
	if err := w.SetWriteDeadline(time.Time{}); err != nil { // crypto/tls sets a deadline for close_notify
		return err
	}
	_, err := w.Write(w.kept)
	w.kept = nil
	return err
}

func (w *recorder) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.mu.Lock()
	w.came = append(w.came, p[:n]...)
	w.mu.Unlock()
	return n, err
}

// lastRecord returns the type of the last received record.
func (w *recorder) lastRecord() byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := byte(0)
	for b := w.came; len(b) >= 5; b = b[min(5+int(b[3])<<8+int(b[4]), len(b)):] {
		last = b[0]
	}
	return last
}

// dialTLS returns a client after its handshake.
func (s *server) dialTLS(config *tls.Config) *client {
	s.t.Helper()
	c, _ := s.dialRecorder(config, 0)
	return c
}

func (s *server) dialRecorder(config *tls.Config, piece int) (*client, *recorder) {
	s.t.Helper()
	if config == nil {
		config = tlstest.Client()
	}
	w := &recorder{Conn: s.dial().Conn, piece: piece}
	conn := tls.Client(w, config)
	if err := conn.Handshake(); err != nil {
		s.t.Fatal(err)
	}
	c := &client{conn, s.t, bufio.NewReader(conn)}
	s.t.Cleanup(func() { c.Close() })
	return c, w
}

// dialRaw returns a client that seals its own records.
func (s *server) dialRaw() (*tlstest.Raw, *client) {
	s.t.Helper()
	raw, err := tlstest.NewRaw(s.dial().Conn)
	if err != nil {
		s.t.Fatal(err)
	}
	return raw, &client{raw, s.t, bufio.NewReader(raw)}
}

func tlsVersion(v uint16) *tls.Config {
	config := tlstest.Client()
	config.MinVersion, config.MaxVersion = v, v
	return config
}

func onTLSVersions(t *testing.T, f func(t *testing.T, config *tls.Config)) {
	for _, v := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(v), func(t *testing.T) { f(t, tlsVersion(v)) })
	}
}

func TestTLSEcho(t *testing.T) {
	onTLSVersions(t, func(t *testing.T, config *tls.Config) {
		s := serveTLS(t, engine.Config{Loops: 2}, &engine.TLS{}, newLineHandler())
		var wg sync.WaitGroup
		for i := range 20 {
			c := s.dialTLS(config)
			wg.Go(func() {
				for j := range 50 {
					line := fmt.Sprint("line ", i, " ", j)
					c.send("echo " + line + "\nhand echo again\n")
					c.want(line, "again")
				}
			})
		}
		wg.Wait()
	})
}

func TestTLSInputInPieces(t *testing.T) {
	onTLSVersions(t, func(t *testing.T, config *tls.Config) {
		s := serveTLS(t, engine.Config{Loops: 2}, &engine.TLS{}, newLineHandler())
		for _, piece := range []int{1, 2, 4, 5, 6, 23, 1000} {
			c, _ := s.dialRecorder(config, piece)
			long := strings.Repeat("x", 5000)
			c.send("echo a\necho b\necho " + long + "\nhand echo c\n")
			c.want("a", "b", long, "c")
		}
	})
}

func TestTLSPipelinedRequestsOfManyRecords(t *testing.T) {
	s := serveTLS(t, engine.Config{Loops: 2}, &engine.TLS{}, newLineHandler())
	c := s.dialTLS(nil)
	const lines = 20_000
	go func() {
		w := bufio.NewWriterSize(c, 100_000)
		for i := range lines {
			fmt.Fprintf(w, "echo line %d\n", i)
		}
		w.Flush()
	}()
	for i := range lines {
		c.want(fmt.Sprint("line ", i))
	}
}

func TestTLSLargeAnswersToASlowReader(t *testing.T) {
	onTLSVersions(t, func(t *testing.T, config *tls.Config) {
		h := newLineHandler()
		owned := []byte(pattern("3000000"))
		released := new(counter)
		h.commands["owned"] = func(d *engine.Driver, _ *engine.Conn, args string) {
			d.Out = append(d.Out, args...)
			d.WriteOwned(owned, released)
			answer(d, "")
		}
		s := serveTLS(t, engine.Config{Loops: 2}, &engine.TLS{}, h)
		c := s.dialTLS(config)
		// The second answer is requested while the first is pending.
		c.send("big 2000000\nowned x\necho end\n")
		c.send("owned y\nbig 100\nhand owned z\n")
		c.want(pattern("2000000"), "x"+string(owned), "end", "y"+string(owned), pattern("100"), "z"+string(owned))
		eventually(t, "all owned buffers are released", func() bool { return released.Load() == 3 })
	})
}

func TestTLSSharedBodyIsChargedOnce(t *testing.T) {
	h := newLineHandler()
	owned := []byte(pattern("16000000"))
	h.commands["owned"] = func(d *engine.Driver, _ *engine.Conn, args string) { d.WriteOwned(owned, nil) }
	budget := memory.New(0)
	s := serveTLS(t, engine.Config{Loops: 1, Budget: budget}, &engine.TLS{}, h)
	const clients = 10
	for range clients {
		s.dialTLS(nil).send("owned\n")
	}
	eventually(t, "all are pending", func() bool { return s.Stats().PendingConns == clients })
	// One shared buffer, and a sealed piece for each client.
	if held := budget.Held(); held > int64(len(owned))+clients*(128<<10) {
		t.Errorf("%d bytes are held for %d answers of the same %d bytes", held, clients, len(owned))
	}
}

type counter struct{ atomic.Int32 }

func (c *counter) Release() { c.Add(1) }

// duplex adds commands that use the connection themselves.
func duplex(h *lineHandler, file string) {
	h.commands["upload"] = func(d *engine.Driver, c *engine.Conn, args string) {
		n, _ := strconv.Atoi(args)
		answer(d, "ready") // earlier input may be in the input of this call
		if err := d.Flush(20 * time.Second); err != nil {
			c.Close()
			return
		}
		var got bytes.Buffer
		b := make([]byte, 3000)
		for got.Len() < n {
			k, err := c.Read(b[:min(len(b), n-got.Len())], 20*time.Second)
			got.Write(b[:k])
			if err != nil {
				answer(d, "read: "+err.Error())
				c.CloseAfterFlush()
				return
			}
		}
		if got.String() != pattern(args) {
			answer(d, "it is not what was sent")
			return
		}
		answer(d, "got "+args)
	}
	h.commands["stream"] = func(d *engine.Driver, c *engine.Conn, args string) {
		rest := pattern(args) + "\n"
		for len(rest) > 0 {
			k := min(len(rest), 70_000)
			n, err := c.Write([]byte(rest[:k]), 20*time.Second)
			if err != nil || n != k {
				c.Close()
				return
			}
			rest = rest[k:]
		}
	}
	h.commands["file"] = func(d *engine.Driver, c *engine.Conn, args string) {
		n, _ := strconv.Atoi(args)
		f, err := os.Open(file)
		if err != nil {
			c.Close()
			return
		}
		defer f.Close()
		if err := d.Flush(20 * time.Second); err != nil {
			c.Close()
			return
		}
		sent, err := c.SendFile(f, int64(n), 20*time.Second)
		answer(d, fmt.Sprint(" ", sent, " ", err))
	}
}

func TestTLSReadAndWriteInCall(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(pattern("1000000")), 0o600); err != nil {
		t.Fatal(err)
	}
	onTLSVersions(t, func(t *testing.T, config *tls.Config) {
		h := newLineHandler()
		duplex(h, file)
		s := serveTLS(t, engine.Config{Loops: 2}, &engine.TLS{}, h)
		c := s.dialTLS(config)
		for range 2 {
			// The line after the uploaded bytes arrives in the same records.
			c.send("upload 1000000\n")
			c.want("ready")
			go func() { _, _ = io.WriteString(c, pattern("1000000")+"echo after\nhand echo it\n") }()
			c.want("got 1000000", "after", "it")
			c.send("stream 1000000\necho after\n")
			c.want(pattern("1000000"), "after")
			c.send("file 999999\necho after\n")
			c.want(pattern("999999")+" 999999 <nil>", "after")
			c.send("file 1000001\n")
			c.want(pattern("1000000") + " 1000000 unexpected EOF")
		}
	})
}

func TestTLSReaderGetsEOF(t *testing.T) {
	h := newLineHandler()
	duplex(h, "")
	s := serveTLS(t, engine.Config{Loops: 1}, &engine.TLS{}, h)
	c := s.dialTLS(nil)
	c.send("upload 1000\n")
	c.want("ready")
	c.send("half of it")
	if err := c.Conn.(*tls.Conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.want("read: EOF")
	c.wantEOF()
}

func TestTLSCloseNotifyIsHandledAfterEarlierRequests(t *testing.T) {
	onTLSVersions(t, func(t *testing.T, config *tls.Config) {
		h := newLineHandler()
		s := serveTLS(t, engine.Config{Loops: 1}, &engine.TLS{}, h)
		c, w := s.dialRecorder(config, 0)
		c.send("big 1000000\nhand echo last\nincomple")
		if err := c.Conn.(*tls.Conn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		c.want(pattern("1000000"), "last", "incomplete"[:0]+"incomplete")
		c.wantEOF()
		if got := <-h.eofs; got != "incomple" {
			t.Errorf("EOF was called with the rest %q", got)
		}
		if config.MaxVersion == tls.VersionTLS12 && w.lastRecord() != tlstest.Alert {
			t.Error("the connection ended without close_notify")
		}
	})
}

func TestTLSCloseSendsCloseNotify(t *testing.T) {
	h := newLineHandler()
	s := serveTLS(t, engine.Config{Loops: 1, OpenTimeout: time.Hour}, &engine.TLS{Timeout: time.Hour}, h)
	end := func(how string, end func(c *client)) {
		c, w := s.dialRecorder(tlsVersion(tls.VersionTLS12), 0)
		c.send("echo served\n")
		c.want("served")
		end(c)
		if _, err := io.ReadAll(c.r); err != nil {
			t.Errorf("%s: %v", how, err)
		}
		if w.lastRecord() != tlstest.Alert {
			t.Errorf("%s: the last record is of type %d, not an alert", how, w.lastRecord())
		}
	}
	end("close", func(c *client) { c.send("close x\n") })
	end("close by a worker", func(c *client) { c.send("hand close x\n") })
	end("close lingering", func(c *client) { c.send("nonsense\nand more") })
	end("close behind much output", func(c *client) { c.send("big 3000000\nclose x\n") })
	end("timeout", func(c *client) { s.AdvanceClock(2 * time.Hour) })
	end("shutdown", func(c *client) {
		go func() { _ = s.Shutdown(t.Context()) }()
	})
}

func TestTLSKeyUpdates(t *testing.T) {
	h := newLineHandler()
	duplex(h, "")
	s := serveTLS(t, engine.Config{Loops: 1}, &engine.TLS{}, h)
	raw, c := s.dialRaw()
	text := func(s string) []byte { return raw.Record(tlstest.Application, []byte(s), 0) }
	send := func(records ...[]byte) {
		t.Helper()
		if err := raw.Send(records...); err != nil {
			t.Fatal(err)
		}
	}
	// To the loop, separately and between lines.
	send(raw.KeyUpdate(true))
	for i := range 100 {
		send(text("echo "), raw.KeyUpdate(i%2 == 0), text("a\necho b"), raw.KeyUpdate(true), text("\n"))
		c.want("a", "b")
	}
	// To a call that reads by itself.
	send(text("upload 10000\n"), raw.KeyUpdate(true))
	c.want("ready")
	for at := 0; at < 10000; at += 1000 {
		send(text(pattern("10000")[at:at+1000]), raw.KeyUpdate(true))
	}
	c.want("got 10000")
	// While output is pending.
	send(text("big 3000000\n"))
	eventually(t, "output is pending", func() bool { return s.Stats().PendingConns == 1 })
	send(raw.KeyUpdate(true), text("echo after\n"))
	c.want(pattern("3000000"), "after")
}

// A reader and a writer of the same call use the connection alternately. The reply of crypto/tls to a KeyUpdate must not be
// sent between the pieces of a record.
func TestTLSKeyUpdateDuringPendingWrite(t *testing.T) {
	h := newLineHandler()
	reading, done := make(chan struct{}), make(chan error, 1)
	h.commands["duplex"] = func(d *engine.Driver, c *engine.Conn, args string) {
		var shared sync.Mutex
		d.Detach()
		d.Share(&shared)
		defer d.Share(nil)
		var wg sync.WaitGroup
		wg.Go(func() {
			shared.Lock()
			defer shared.Unlock()
			_, err := c.Write([]byte(pattern("9000000")+"\n"), 20*time.Second)
			done <- err
		})
		close(reading)
		shared.Lock()
		var got []byte
		b := make([]byte, 100)
		for len(got) < 10 {
			n, err := c.Read(b, 20*time.Second)
			if err != nil {
				break
			}
			got = append(got, b[:n]...)
		}
		shared.Unlock()
		wg.Wait()
		answer(d, string(got))
	}
	s := serveTLS(t, engine.Config{Loops: 1}, &engine.TLS{}, h)
	raw, c := s.dialRaw()
	if err := raw.Send(raw.Record(tlstest.Application, []byte("duplex\n"), 0)); err != nil {
		t.Fatal(err)
	}
	<-reading
	for range 10 {
		if err := raw.Send(raw.KeyUpdate(true), raw.Record(tlstest.Application, []byte("x"), 0)); err != nil {
			t.Fatal(err)
		}
	}
	c.want(pattern("9000000"), strings.Repeat("x", 10))
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTLSHijack(t *testing.T) {
	onTLSVersions(t, func(t *testing.T, config *tls.Config) {
		h := newLineHandler()
		entered, taken := make(chan struct{}), make(chan net.Conn, 1)
		h.commands["hijack"] = func(d *engine.Driver, c *engine.Conn, args string) {
			b := make([]byte, 3)
			close(entered)
			if n, err := c.Read(b, 20*time.Second); err != nil || n != 3 {
				t.Errorf("read %d bytes, %v", n, err)
			}
			conn, err := c.Hijack()
			if err != nil {
				t.Error(err)
			}
			taken <- conn
		}
		s := serveTLS(t, engine.Config{Loops: 1}, &engine.TLS{}, h)
		c := s.dialTLS(config)
		c.send("hijack\n")
		<-entered
		c.send("abcdef") // three bytes of this remain in crypto/tls
		conn := <-taken
		defer conn.Close()
		secured, ok := conn.(*tls.Conn)
		if !ok || !secured.ConnectionState().HandshakeComplete {
			t.Fatalf("Hijack returned a %T", conn)
		}
		if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		go c.send("ghi")
		b := make([]byte, 6)
		if _, err := io.ReadFull(conn, b); err != nil || string(b) != "defghi" {
			t.Fatalf("got %q, %v", b, err)
		}
		fmt.Fprintln(conn, "hijacked")
		c.want("hijacked")
		conn.Close()
		c.wantEOF()
	})
}

// The part of a record that was read, and its rest, are correct regardless of where the record is stored meanwhile.
func TestTLSReadsOfEverySize(t *testing.T) {
	onTLSVersions(t, func(t *testing.T, config *tls.Config) {
		const all = 300_000
		rng := rand.New(rand.NewPCG(1, 2))
		h := newLineHandler()
		entered, taken := make(chan struct{}, 1), make(chan net.Conn, 1)
		text := []byte(pattern(strconv.Itoa(all)))
		h.commands["read"] = func(d *engine.Driver, c *engine.Conn, args string) {
			entered <- struct{}{}
			got := make([]byte, 0, all)
			for len(got) < all-5000 {
				room := 1 + rng.IntN([]int{50, 5_000, 70_000}[rng.IntN(3)])
				n, err := c.Read(got[len(got):min(len(got)+room, all-4000)], 20*time.Second)
				if err != nil {
					t.Error(err)
					break
				}
				got = got[:len(got)+n]
				if rng.IntN(3) == 0 {
					c.TrimInput()
				}
			}
			if !bytes.Equal(got, text[:len(got)]) {
				t.Error("the read bytes differ from the sent ones")
			}
			conn, err := c.Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			rest := make([]byte, all-len(got))
			if _, err := io.ReadFull(conn, rest); err != nil || !bytes.Equal(rest, text[len(got):]) {
				t.Errorf("the remaining bytes differ from the sent ones: %v", err)
			}
			taken <- conn
		}
		s := serveTLS(t, engine.Config{Loops: 1}, &engine.TLS{}, h)
		for range 10 {
			c := s.dialTLS(config)
			sizes := rand.New(rand.NewPCG(3, 4))
			c.send("read\n")
			<-entered
			for rest := text; len(rest) > 0; {
				n := min(1+sizes.IntN([]int{20, 2_000, 40_000}[sizes.IntN(3)]), len(rest))
				c.send(string(rest[:n]))
				rest = rest[n:]
			}
			conn := <-taken
			fmt.Fprintln(conn, "all of it")
			c.want("all of it")
			conn.Close()
		}
	})
}

func TestTLSOtherProtocolsArePassedOn(t *testing.T) {
	config := tlstest.Server()
	config.NextProtos = []string{"other", "lines"}
	passed := make(chan *engine.Agreed, 1)
	addresses := admission.NewAddresses(1)
	s := serveTLS(t, engine.Config{Loops: 1, Addresses: addresses, MaxConns: 5}, &engine.TLS{
		Config: config,
		Other: func(proto string) func(*engine.Agreed) {
			if proto == "other" {
				return func(a *engine.Agreed) { passed <- a }
			}
			return nil
		},
	}, newLineHandler())
	other := tlstest.Client()
	other.NextProtos = []string{"other"}
	c := s.dialTLS(other)
	agreed := <-passed
	conn := agreed.Secure(agreed.Socket)
	if got := conn.ConnectionState().NegotiatedProtocol; got != "other" {
		t.Errorf("the protocol is %q", got)
	}
	fmt.Fprintln(conn, "by another server")
	c.want("by another server")
	// The connection still counts for its address.
	eventually(t, "the engine has let go of it", func() bool { return s.Stats().Conns == 0 })
	if addresses.Take(c.LocalAddr().(*net.TCPAddr).AddrPort().Addr()) {
		t.Error("a connection that was passed on does not count for its address")
	}
	conn.Close()
	c.wantEOF()
	agreed.Closed()
	lines := tlstest.Client()
	lines.NextProtos = []string{"lines"}
	c = s.dialTLS(lines)
	c.send("echo ours\n")
	c.want("ours")
}

func TestTLSState(t *testing.T) {
	h := newLineHandler()
	h.commands["state"] = func(d *engine.Driver, c *engine.Conn, args string) {
		state := c.TLS()
		if state == nil {
			answer(d, "none")
			return
		}
		if c.TLS() != state {
			answer(d, "another one")
		}
		answer(d, fmt.Sprint(tls.VersionName(state.Version), " ", state.ServerName, " ", state.DidResume))
	}
	s := serveTLS(t, engine.Config{Loops: 1}, &engine.TLS{}, h)
	config := tlsVersion(tls.VersionTLS13)
	config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	for _, resumed := range []bool{false, true} {
		c := s.dialTLS(config)
		c.send("state\n")
		c.want(fmt.Sprint("TLS 1.3 example.test ", resumed))
	}
	plain := newLineHandler()
	plain.commands["state"] = h.commands["state"]
	clear := serve(t, engine.Config{Loops: 1}, plain)
	c := clear.dial()
	c.send("state\n")
	c.want("none")
}
