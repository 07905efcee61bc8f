package stdhttp

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A drainedServer is a server whose connections have no network.
type drainedServer struct {
	*Server
	from *pipeListener
}

func newDrainedServer(settings *exchange.Server) drainedServer {
	s := drainedServer{NewService(settings).NewServer(nil), &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { noteRequest(r) })
	go func() { _ = s.Server.Server.Serve(s.from) }()
	return s
}

func (s drainedServer) dial() net.Conn {
	client, served := net.Pipe()
	select {
	case s.from.conns <- &timedConn{Conn: served, server: patient}:
	case <-s.from.closed:
		_ = served.Close()
	}
	return client
}

// A pipeListener accepts the connections sent to conns.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// drain begins to shut down and returns a channel for the error.
func (s drainedServer) drain(ctx context.Context) <-chan error {
	synctest.Wait()
	_ = s.from.Close()
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(ctx) }()
	return ended
}

// request sends a request on a connection and reads the answer.
func request(client net.Conn) error {
	if err := (&http.Request{Host: "x", URL: &url.URL{Path: "/"}}).Write(client); err != nil {
		return err
	}
	_, err := http.ReadResponse(bufio.NewReader(client), nil)
	return err
}

// A connection without any request has more time for its first request than a kept-alive connection for its next.
func TestShutdownAwaitsFirstRequests(t *testing.T) {
	for _, c := range []struct {
		name     string
		kept     bool
		most     time.Duration // maximum duration of the drain
		after    time.Duration
		answered bool
	}{
		{"a new one", false, time.Minute, firstRequest - time.Millisecond, true},
		{"a new one, too late", false, time.Minute, firstRequest + time.Millisecond, false},
		{"a new one in a short drain", false, time.Second, time.Second/2 - time.Millisecond, true},
		{"a new one, too late in a short drain", false, time.Second, time.Second/2 + time.Millisecond, false},
		{"a kept-alive one", true, time.Minute, lastRequests - time.Millisecond, true},
		{"a kept-alive one, too late", true, time.Minute, lastRequests + time.Millisecond, false},
		{"a kept-alive one, too late in a short drain", true, lastRequests, lastRequests/2 + time.Millisecond, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := newDrainedServer(patient)
				client, other := srv.dial(), srv.dial()
				defer client.Close()
				defer other.Close() // never sends a request
				if c.kept {
					if err := request(client); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.most)
				defer cancel()
				ended := srv.drain(ctx)
				<-time.After(c.after)
				if err := request(client); (err == nil) != c.answered {
					t.Errorf("answered with %v", err)
				}
				_ = client.Close()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A connection whose answer began before the drain, so that its client does not know of it, has time for a last request after
// the answer.
func TestShutdownAwaitsLastRequests(t *testing.T) {
	for _, c := range []struct {
		name     string
		after    time.Duration
		answered bool
	}{
		{"in time", lastRequests - time.Millisecond, true},
		{"too late", lastRequests + 50*time.Millisecond, false}, // the drain checks at intervals
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := newDrainedServer(patient)
				busy := true
				srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if busy {
						busy = false
						_ = http.NewResponseController(w).Flush()
						<-time.After(5 * time.Second)
					}
				})
				client := srv.dial()
				defer client.Close()
				reader := bufio.NewReader(client)
				first := &http.Request{Host: "x", URL: &url.URL{Path: "/"}}
				if err := first.Write(client); err != nil {
					t.Fatal(err)
				}
				resp, err := http.ReadResponse(reader, first)
				if err != nil {
					t.Fatal(err)
				}
				ended := srv.drain(t.Context())
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					t.Fatal(err)
				}
				<-time.After(c.after)
				if err := request(client); (err == nil) != c.answered {
					t.Errorf("answered with %v", err)
				}
				_ = client.Close()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// An HTTP/2 connection without TLS counts as new until its first request, also if other frames follow its preface.
func TestShutdownAwaitsFirstStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := &exchange.Server{Settings: patient.Settings, Log: patient.Log, Shed: patient.Shed, Pipeline: patient.Pipeline}
		settings.H2C = true
		srv := newDrainedServer(settings)
		kept, client := srv.dial(), srv.dial()
		defer kept.Close()
		defer client.Close()
		if err := request(kept); err != nil {
			t.Fatal(err)
		}
		var goodbye atomic.Bool
		go func() {
			for head := make([]byte, 9); ; {
				if _, err := io.ReadFull(client, head); err != nil {
					return
				}
				if head[3] == 7 { // GOAWAY
					goodbye.Store(true)
				}
				_, _ = io.CopyN(io.Discard, client, int64(head[0])<<16|int64(head[1])<<8|int64(head[2]))
			}
		}()
		const settingsFrame = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
		if _, err := io.WriteString(client, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+settingsFrame); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := srv.open.unasked.Load(); n != 1 {
			t.Errorf("%d connections without a request, want 1", n)
		}
		ended := srv.drain(t.Context())
		<-time.After(lastRequests + time.Millisecond)
		if err := request(kept); err == nil {
			t.Error("a kept-alive connection is answered too late")
		}
		<-time.After(firstRequest - lastRequests - 2*time.Millisecond)
		synctest.Wait()
		if goodbye.Load() {
			t.Error("a new connection gets GOAWAY too early")
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if !goodbye.Load() {
			t.Error("no GOAWAY was sent")
		}
	})
}

// net/http's log lines about connections are limited to one a second, and to the length of other records.
func TestErrorLogIsLimited(t *testing.T) {
	var said bytes.Buffer
	log := errorLog{slog.New(slog.NewTextHandler(&said, nil)), new(admission.Lines)}
	for range 100 {
		_, _ = log.Write([]byte("http2: server connection error from " + strings.Repeat("x", 1000) + "\n"))
	}
	if n := strings.Count(said.String(), "\n"); n > 2 || said.Len() > 2000 {
		t.Errorf("100 errors are %d lines, %d bytes", n, said.Len())
	}
}
