package looph2_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

const patience = 20 * time.Second

// An h2Server is an app that serves HTTP/2 in clear text, with a client.
type h2Server struct {
	*http.Client
	t      *testing.T
	app    *dunlin.App
	addr   string
	served chan error
}

// onBoth runs f on each engine.
func onBoth(t *testing.T, f func(t *testing.T, engine dunlin.Engine)) {
	t.Run("std", func(t *testing.T) { f(t, dunlin.EngineStd) })
	t.Run("loop", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			t.Skip("the loop engine runs on Linux only")
		}
		f(t, dunlin.EngineLoop)
	})
}

func startH2(t *testing.T, config dunlin.Config, register func(*dunlin.App)) *h2Server {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startH2On(t, ln, config, register)
}

// startH2On is startH2 with a listener, which the client dials if it is TCP.
func startH2On(t *testing.T, ln net.Listener, config dunlin.Config, register func(*dunlin.App)) *h2Server {
	t.Helper()
	ready := make(chan struct{})
	config.H2C, config.Logger = max(config.H2C, dunlin.H2CPriorKnowledge), slog.New(slog.DiscardHandler)
	config.Ready = func(net.Addr, dunlin.Engine) { close(ready) }
	s := &h2Server{t: t, app: dunlin.New(config), addr: ln.Addr().String(), served: make(chan error, 1)}
	register(s.app)
	go func() { s.served <- s.app.Serve(ln) }()
	<-ready
	client := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	client.Protocols.SetUnencryptedHTTP2(true)
	s.Client = &http.Client{Transport: client, Timeout: patience}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		s.stop()
		s.wantNothingHeld()
	})
	return s
}

// stop shuts the app down, once.
func (s *h2Server) stop() {
	s.t.Helper()
	if s.served == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.app.Shutdown(ctx); err != nil {
		s.t.Errorf("Shutdown: %v", err)
	}
	if err := <-s.served; err != nil {
		s.t.Errorf("Serve: %v", err)
	}
	s.served = nil
}

// wantNothingHeld checks that all memory is released and nothing is in flight.
func (s *h2Server) wantNothingHeld() {
	s.t.Helper()
	soon(s.t, "all memory is given back", func() bool {
		stats := s.app.Stats()
		return stats.Memory.Held == 0 && stats.Actions.InFlight == 0
	})
}

func soon(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !condition(); runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatalf("not in %v: got %s", patience, what)
		}
	}
}

// ask returns the status and body of an answer.
func (s *h2Server) ask(req *http.Request, err error) (int, string) {
	if err != nil {
		return 0, err.Error()
	}
	resp, err := s.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp.StatusCode, err.Error()
	}
	return resp.StatusCode, string(body)
}

func (s *h2Server) get(path string) (int, string) {
	return s.ask(http.NewRequest("GET", "http://"+s.addr+path, nil))
}

func (s *h2Server) post(path string, body io.Reader) (int, string) {
	return s.ask(http.NewRequest("POST", "http://"+s.addr+path, body))
}

func want(t *testing.T, status int, body string, wantStatus int, part string) {
	t.Helper()
	if status != wantStatus || !strings.Contains(body, part) {
		t.Errorf("got %d %.200q, want %d with %q", status, body, wantStatus, part)
	}
}

// An action that blocks delays no other stream of its connection.
func TestBlockedStreamDoesNotDelayOthers(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		entered, open := make(chan bool, 100), make(chan bool)
		s := startH2(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/quick", func(*dunlin.Request) dunlin.Response { return dunlin.Text("quick") })
			app.Get("/blocks/{n}", func(r *dunlin.Request) dunlin.Response {
				entered <- true
				<-open
				return dunlin.Text("blocked " + r.Param("n") + " " + r.Query("q") + " " + r.Header("X-N"))
			})
		})
		const blocked = 60 // from some number of blocked calls on, routes run on workers
		var wg sync.WaitGroup
		for i := range blocked {
			wg.Go(func() {
				req, err := http.NewRequest("GET", fmt.Sprintf("http://%s/blocks/%d?q=%d", s.addr, i, i), nil)
				if err == nil {
					req.Header.Set("X-N", fmt.Sprint(i))
				}
				status, body := s.ask(req, err)
				want(t, status, body, 200, fmt.Sprintf("blocked %d %d %d", i, i, i))
			})
		}
		for range blocked {
			<-entered
		}
		for range 20 {
			status, body := s.get("/quick")
			want(t, status, body, 200, "quick")
		}
		close(open)
		wg.Wait()
	})
}

// An action that is too late is answered for, and its connection continues.
func TestLateStreams(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		open := make(chan bool)
		var seen sync.Map
		s := startH2(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/quick", func(*dunlin.Request) dunlin.Response { return dunlin.Text("quick") })
			app.Get("/late", func(r *dunlin.Request) dunlin.Response {
				<-r.Context().Done()
				seen.Store("late", r.Context().Err())
				<-open
				return dunlin.Text("never seen")
			}).Timeout(20 * time.Millisecond)
			app.Post("/body", func(r *dunlin.Request) dunlin.Response {
				_, err := r.Bytes()
				seen.Store("body", err)
				<-open
				return dunlin.Text("never seen")
			}).Timeout(20 * time.Millisecond)
			app.Get("/begun", func(r *dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error {
					if err := dunlin.Flush(w); err != nil {
						return err
					}
					<-open
					_, err := io.WriteString(w, "in time")
					return err
				})
			}).Timeout(time.Minute)
		})
		status, body := s.get("/late")
		want(t, status, body, 503, "too long")
		soon(t, "the late action has seen the end of its context", func() bool { _, told := seen.Load("late"); return told })
		if err, _ := seen.Load("late"); err != context.DeadlineExceeded {
			t.Errorf("the context of the late action ended with %v", err)
		}
		never, w := io.Pipe()
		status, body = s.post("/body", never)
		want(t, status, body, 503, "too long")
		_ = w.Close()
		soon(t, "the late action sees the end of its context", func() bool { _, told := seen.Load("body"); return told })
		status, body = s.get("/quick")
		want(t, status, body, 200, "quick")
		close(open)
		status, body = s.get("/begun")
		want(t, status, body, 200, "in time")
	})
}

// An action that ends its goroutine is answered with 500 by the loop engine.
func TestGoexitIsAnsweredWith500(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the loop engine runs on Linux only")
	}
	blocked := make(chan bool)
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Get("/quick", func(*dunlin.Request) dunlin.Response { return dunlin.Text("quick") })
		app.Get("/at-once", func(*dunlin.Request) dunlin.Response { runtime.Goexit(); panic("unreachable") })
		app.Get("/blocked", func(*dunlin.Request) dunlin.Response { <-blocked; runtime.Goexit(); panic("unreachable") })
		app.Post("/body", func(r *dunlin.Request) dunlin.Response {
			_, _ = r.Bytes()
			runtime.Goexit()
			panic("unreachable")
		})
		app.Get("/half", func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error {
				_ = dunlin.Flush(w)
				runtime.Goexit()
				return nil
			})
		})
	})
	for range 3 {
		status, body := s.get("/at-once")
		want(t, status, body, 500, "")
		go func() {
			soon(t, "the loop is taken over", func() bool { return s.app.Stats().Actions.InFlight > 0 })
			blocked <- true
		}()
		status, body = s.get("/blocked")
		want(t, status, body, 500, "")
		status, body = s.post("/body", io.MultiReader(strings.NewReader("a"), strings.NewReader("b"))) // of unknown length
		want(t, status, body, 500, "")
		if status, body := s.get("/half"); status == 200 && !strings.Contains(body, "stream error") {
			t.Errorf("half an answer was %d %q", status, body)
		}
		status, body = s.get("/quick")
		want(t, status, body, 200, "quick")
	}
}

// A standard handler may read and write at the same time, with trailers both ways and interim answers.
func TestFullDuplexStreams(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		s := startH2(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Mount("/duplex", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Link", "</a>")
				w.WriteHeader(http.StatusEarlyHints)
				w.Header().Set("Trailer", "X-Sum")
				w.WriteHeader(200)
				c := http.NewResponseController(w)
				if err := c.Flush(); err != nil {
					t.Error(err)
				}
				br, n := bufio.NewReader(r.Body), 0
				for {
					line, err := br.ReadString('\n')
					if err != nil {
						break
					}
					n++
					fmt.Fprintf(w, "%d %s", n, line)
					if err := c.Flush(); err != nil {
						t.Error(err)
					}
				}
				w.Header().Set("X-Sum", fmt.Sprint(n, r.Trailer.Get("X-Client"), r.ProtoMajor))
			}))
		})
		body, w := io.Pipe()
		req, err := http.NewRequest("POST", "http://"+s.addr+"/duplex", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Trailer = http.Header{"X-Client": nil}
		hints := 0
		req = req.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			if code == http.StatusEarlyHints && h.Get("Link") == "</a>" {
				hints++
			}
			return nil
		}}))
		resp, err := s.Do(req) // before a byte of the body is sent
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		br := bufio.NewReader(resp.Body)
		for i := range 5 {
			if _, err := fmt.Fprintf(w, "line %d\n", i); err != nil {
				t.Fatal(err)
			}
			if got, err := br.ReadString('\n'); got != fmt.Sprintf("%d line %d\n", i+1, i) || err != nil {
				t.Fatalf("got %q, %v", got, err)
			}
		}
		req.Trailer.Set("X-Client", "-t-")
		_ = w.Close()
		if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil {
			t.Errorf("then %q, %v", rest, err)
		}
		if got := resp.Trailer.Get("X-Sum"); got != "5-t-2" && got != "5-t- 2" {
			t.Errorf("trailer %q", got)
		}
		if hints != 1 {
			t.Errorf("%d early hints, want 1", hints)
		}
	})
}

// Bodies of any length arrive entirely in both directions, and one that is too long is refused.
func TestLongStreams(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		s := startH2(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxBody: 300_000}}, func(app *dunlin.App) {
			app.Post("/echo", func(r *dunlin.Request) dunlin.Response {
				body, err := r.Bytes()
				if err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Bytes("text/plain", body)
			})
			app.Post("/copy", func(r *dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error { _, err := io.Copy(w, r.Body()); return err })
			})
		})
		var wg sync.WaitGroup
		for i, n := range []int{0, 1, 1000, 16 << 10, 33 << 10, 64 << 10, 65 << 10, 100_000, 300_000} {
			for _, path := range []string{"/echo", "/copy"} {
				for _, announced := range []bool{true, false} {
					wg.Go(func() {
						text := strings.Repeat(string(rune('a'+i)), n)
						var body io.Reader = strings.NewReader(text)
						if !announced {
							body = io.MultiReader(body)
						}
						if status, got := s.post(path, body); status != 200 || got != text {
							t.Errorf("%s of %d (announced: %v): %d, %d bytes %.100q", path, n, announced, status, len(got), got)
						}
					})
				}
			}
		}
		wg.Wait()
		status, body := s.post("/echo", strings.NewReader(strings.Repeat("x", 300_001)))
		want(t, status, body, 413, "limit")
		status, body = s.post("/echo", strings.NewReader("small"))
		want(t, status, body, 200, "small")
	})
}

// A client that leaves ends the context of its request, and no other.
func TestCanceledStreams(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		entered, ended := make(chan bool, 10), make(chan error, 10)
		s := startH2(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/quick", func(*dunlin.Request) dunlin.Response { return dunlin.Text("quick") })
			app.Get("/waits", func(r *dunlin.Request) dunlin.Response {
				entered <- true
				<-r.Context().Done()
				ended <- r.Context().Err()
				return dunlin.Text("nobody reads this")
			})
			app.Get("/events", func(r *dunlin.Request) dunlin.Response {
				return dunlin.SSE(func(events *dunlin.Events) error {
					if err := events.Send(dunlin.Event{Data: "first"}); err != nil {
						return err
					}
					entered <- true
					<-events.Done()
					ended <- context.Canceled
					return nil
				})
			})
		})
		for _, path := range []string{"/waits", "/events"} {
			ctx, cancel := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, "GET", "http://"+s.addr+path, nil)
			done := make(chan bool)
			go func() {
				s.ask(req, err)
				close(done)
			}()
			<-entered
			status, body := s.get("/quick")
			want(t, status, body, 200, "quick")
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: the context ended with %v", path, err)
			}
			<-done
			status, body = s.get("/quick")
			want(t, status, body, 200, "quick")
		}
	})
}

// A shutdown refuses no request: requests in progress are answered, and a GOAWAY ends the connection.
func TestDrainOfStreams(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		entered, open := make(chan bool, 10), make(chan bool)
		s := startH2(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/waits", func(*dunlin.Request) dunlin.Response {
				entered <- true
				<-open
				return dunlin.Text("answered")
			})
		})
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				status, body := s.get("/waits")
				want(t, status, body, 200, "answered")
			})
		}
		for range 5 {
			<-entered
		}
		idle := newH2Conn(t, s.addr)
		idle.wantFrame(frameSettings)
		stopped := make(chan bool)
		go func() {
			s.stop()
			close(stopped)
		}()
		idle.wantFrame(frameGoAway)
		close(open)
		wg.Wait()
		idle.wantEnd()
		_ = idle.Close()
		<-stopped
	})
}

// Frames of HTTP/2 (RFC 9113, section 6).
const (
	frameData     = 0
	frameHeaders  = 1
	frameReset    = 3
	frameSettings = 4
	framePing     = 6
	frameGoAway   = 7
)

// An h2Conn is a client that sends frames.
type h2Conn struct {
	net.Conn
	t *testing.T
}

// dial connects to addr; the connection is closed when the test ends.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func newH2Conn(t *testing.T, addr string) *h2Conn {
	t.Helper()
	c := &h2Conn{dial(t, addr), t}
	if _, err := io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	_ = c.frame(frameSettings, 0, 0)
	return c
}

func (c *h2Conn) frame(kind, flags byte, stream uint32, payload ...byte) error {
	b := []byte{0, byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	_, err := c.Write(append(binary.BigEndian.AppendUint32(b, stream), payload...))
	return err
}

// next returns the next frame's type.
func (c *h2Conn) next() (kind byte, err error) {
	var head [9]byte
	if _, err = io.ReadFull(c, head[:]); err != nil {
		return 0, err
	}
	_, err = io.CopyN(io.Discard, c, int64(head[0])<<16|int64(head[1])<<8|int64(head[2]))
	return head[3], err
}

func (c *h2Conn) wantFrame(kind byte) {
	c.t.Helper()
	for {
		switch got, err := c.next(); {
		case err != nil:
			c.t.Fatalf("waiting for a frame of type %d: %v", kind, err)
		case got == kind:
			return
		}
	}
}

func (c *h2Conn) wantEnd() {
	for {
		if _, err := c.next(); err != nil {
			return
		}
	}
}

// A client that sends too many frames that serve no request loses the connection, is counted, and affects no other client.
func TestAbusiveClientIsDisconnected(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the loop engine runs on Linux only")
	}
	s := startH2(t, dunlin.Config{Engine: dunlin.EngineLoop}, func(app *dunlin.App) {
		app.Get("/quick", func(*dunlin.Request) dunlin.Response { return dunlin.Text("quick") })
	})
	head := append([]byte{0x82, 0x86, 0x04, 6}, "/quick\x01\x01a"...)
	for reason, abuse := range map[string]func(c *h2Conn, i uint32) error{
		"h2-pings":    func(c *h2Conn, _ uint32) error { return c.frame(framePing, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8) },
		"h2-settings": func(c *h2Conn, _ uint32) error { return c.frame(frameSettings, 0, 0) },
		"h2-faults":   func(c *h2Conn, i uint32) error { return c.frame(frameHeaders, 5, 2*i+1, 0x82) }, // no path
		"h2-resets": func(c *h2Conn, i uint32) error {
			if err := c.frame(frameHeaders, 4, 2*i+1, head...); err != nil { // the body does not follow
				return err
			}
			return c.frame(frameReset, 0, 2*i+1, 0, 0, 0, 8)
		},
	} {
		c := newH2Conn(t, s.addr)
		gone := make(chan bool)
		go func() {
			c.wantEnd()
			close(gone)
		}()
		for i := range uint32(1 << 20) {
			if abuse(c, i) != nil {
				break
			}
			if i%100 == 0 && s.app.Stats().Shed[reason] > 0 {
				break
			}
		}
		soon(t, reason+" is counted", func() bool { return s.app.Stats().Shed[reason] == 1 })
		<-gone
		status, body := s.get("/quick")
		want(t, status, body, 200, "quick")
	}
}
