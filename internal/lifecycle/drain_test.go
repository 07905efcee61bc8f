package lifecycle_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

// A served is an app that the test shuts down.
type served struct {
	*dunlin.App
	t    *testing.T
	addr string
	done chan error // receives the result of Serve
}

func serve(t *testing.T, config dunlin.Config, register func(*dunlin.App)) *served {
	t.Helper()
	app, _ := suite.NewApp(config)
	register(app)
	ln := suite.Listen(t)
	s := &served{app, t, ln.Addr().String(), make(chan error, 1)}
	go func() { s.done <- app.Serve(ln) }()
	return s
}

// send writes a GET request to a new connection.
func (s *served) send(path string) *bufio.Reader {
	s.t.Helper()
	conn := suite.Dial(s.t, s.addr)
	if _, err := io.WriteString(conn, suite.Request("GET "+path)); err != nil {
		s.t.Fatal(err)
	}
	return bufio.NewReader(conn)
}

// shutdown begins a shutdown and returns the channel of its error.
func (s *served) shutdown(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	go func() { done <- s.Shutdown(ctx) }()
	return done
}

// last reads a response that must be the last of its connection.
func (s *served) last(br *bufio.Reader, want string) {
	s.t.Helper()
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != want {
		s.t.Errorf("got body %q, error %v, want %q", body, err, want)
	}
	if rest, err := io.ReadAll(br); len(rest) > 0 || err != nil {
		s.t.Errorf("after the answer: got %q, error %v", rest, err)
	}
}

// wantEnd waits for the shutdown and Serve to return.
func (s *served) wantEnd(shutdown <-chan error) {
	s.t.Helper()
	if err := <-shutdown; err != nil {
		s.t.Errorf("Shutdown: %v", err)
	}
	if err := <-s.done; err != nil {
		s.t.Errorf("Serve: %v", err)
	}
}

func TestDrainFinishesRunningRequests(t *testing.T) {
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		entered := make(chan struct{})
		s := serve(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/action", func(r *dunlin.Request) dunlin.Response {
				entered <- struct{}{}
				<-r.Draining()
				if r.Context().Err() != nil {
					return dunlin.Text("cancelled")
				}
				return dunlin.Text("finished")
			})
			app.Get("/stream", func(r *dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error {
					if _, err := io.WriteString(w, "begin, "); err != nil {
						return err
					}
					if err := dunlin.Flush(w); err != nil {
						return err
					}
					entered <- struct{}{}
					<-r.Draining()
					_, err := io.WriteString(w, "end")
					return err
				})
			})
		})
		action := s.send("/action")
		suite.Await(t, "the action", entered)
		stream := s.send("/stream")
		suite.Await(t, "the stream", entered)
		shutdown := s.shutdown(t.Context())
		s.last(action, "finished")
		if resp, err := http.ReadResponse(stream, nil); err != nil {
			t.Error(err)
		} else if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "begin, end" {
			t.Errorf("stream: got %q, error %v", body, err)
		}
		s.wantEnd(shutdown)
	})
}

func TestDrainDeadline(t *testing.T) {
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		entered, cancelled := make(chan struct{}), make(chan struct{})
		s := serve(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/", func(r *dunlin.Request) dunlin.Response {
				ctx := r.Context()
				close(entered)
				<-ctx.Done()
				close(cancelled)
				return dunlin.NoContent()
			})
		})
		s.send("/")
		suite.Await(t, "the action", entered)
		ctx, cancel := context.WithCancel(t.Context())
		shutdown := s.shutdown(ctx)
		<-s.Draining()
		cancel()
		if err := <-shutdown; !errors.Is(err, context.Canceled) {
			t.Errorf("Shutdown: got %v, want the error of the context", err)
		}
		suite.Await(t, "the end of the context", cancelled)
		if err := <-s.done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// During the grace period only the readiness changes.
func TestDrainGrace(t *testing.T) {
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		s := serve(t, dunlin.Config{Engine: engine, Process: dunlin.ProcessConfig{DrainGrace: suite.Patience}}, func(app *dunlin.App) {
			app.Get("/healthz", app.Readiness())
			app.Get("/", suite.Text("unchanged"))
		})
		c := suite.Client(t, nil, suite.HTTP1)
		if resp, body := suite.Get(t, c, "http://"+s.addr+"/healthz"); resp.StatusCode != http.StatusOK || body != "ok\n" {
			t.Errorf("before: got %d %q", resp.StatusCode, body)
		}
		graced := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { graced <- s.Drain(ctx) }()
		for {
			resp, body := suite.Get(t, c, "http://"+s.addr+"/healthz")
			if resp.StatusCode == http.StatusServiceUnavailable {
				suite.WantContains(t, "the answer", body+resp.Header.Get("Cache-Control"), "draining", "no-store")
				break
			}
		}
		if resp, body := suite.Get(t, c, "http://"+s.addr+"/"); body != "unchanged" || resp.Close {
			t.Errorf("during the grace period: got %q, close %v", body, resp.Close)
		}
		select {
		case <-s.Draining():
			t.Error("draining began before the end of the grace period")
		default:
		}
		cancel() // ends the grace period and the wait for requests
		<-graced
		if err := <-s.done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// A request that arrives on an idle connection at the start of the drain is answered as the last one; or the connection
// closes without a byte, and the client may retry it (RFC 9110, section 9.2.2).
func TestDrainDuringKeepAlive(t *testing.T) {
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		s := serve(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) { app.Get("/", suite.Text("hello")) })
		const conns = 20
		ends := make(chan string, conns)
		for range conns {
			br, conn := s.keepAlive()
			go func() {
				for {
					if _, err := io.WriteString(conn, suite.Request("GET /")); err != nil {
						ends <- "closed"
						return
					}
					resp, err := http.ReadResponse(br, nil)
					if err != nil {
						ends <- "closed"
						if br.Buffered() > 0 {
							t.Errorf("incomplete answer: %v", err)
						}
						return
					}
					body, err := io.ReadAll(resp.Body)
					if err != nil || string(body) != "hello" {
						t.Errorf("got body %q, error %v", body, err)
					}
					if resp.Close {
						ends <- "answered"
						return
					}
				}
			}()
		}
		shutdown := s.shutdown(t.Context())
		count := map[string]int{}
		for range conns {
			count[<-ends]++
		}
		t.Logf("outcomes of the last requests: %v", count)
		s.wantEnd(shutdown)
	})
}

// keepAlive returns a connection that has had a response.
func (s *served) keepAlive() (*bufio.Reader, io.Writer) {
	s.t.Helper()
	conn := suite.Dial(s.t, s.addr)
	br := bufio.NewReader(conn)
	if _, err := io.WriteString(conn, suite.Request("GET /")); err != nil {
		s.t.Fatal(err)
	}
	if got, err := suite.ReadAnswer(br, http.MethodGet); err != nil || !strings.Contains(got, "hello") {
		s.t.Fatalf("got %q, %v", got, err)
	}
	return br, conn
}

// Clients that connect and send nothing get half of the time of the drain. Then the drain ends, because all requests are
// answered.
func TestDrainDoesNotWaitForSilentClients(t *testing.T) {
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		t.Parallel() // the test waits in real time
		for name, start := range map[string]func(*dunlin.App, net.Listener) error{
			"HTTP/1.1": func(app *dunlin.App, ln net.Listener) error { return app.Serve(ln) },
			"TLS":      func(app *dunlin.App, ln net.Listener) error { return app.ServeTLS(ln, tlstest.Server()) },
		} {
			for _, h2c := range []dunlin.H2C{dunlin.H2COff, dunlin.H2CPriorKnowledge} {
				t.Run(fmt.Sprintf("%s, h2c %v", name, h2c), func(t *testing.T) {
					t.Parallel()
					app, _ := suite.NewApp(dunlin.Config{Engine: engine, H2C: h2c})
					ln := suite.Listen(t)
					served := make(chan error, 1)
					go func() { served <- start(app, ln) }()
					conn, err := net.Dial("tcp", ln.Addr().String())
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = conn.Close() }()
					suite.Soon(t, "the client is connected", func() bool { return app.Stats().Connections.Open == 1 })
					// net/http itself waits for more than five seconds.
					ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
					defer cancel()
					if err := errors.Join(app.Shutdown(ctx), <-served); err != nil {
						t.Error(err)
					}
				})
			}
		}
	})
}

// HTTP/2 clients get a GOAWAY after the response.
func TestDrainHTTP2(t *testing.T) {
	entered := make(chan struct{})
	certFile, keyFile, trusted := suite.NewCert(t)
	config := dunlin.Config{}
	app, _ := suite.NewApp(config)
	app.Get("/", func(r *dunlin.Request) dunlin.Response {
		close(entered)
		<-r.Draining()
		return dunlin.Text("finished")
	})
	ln := suite.Listen(t)
	done := make(chan error, 1)
	go func() { done <- app.ServeTLS(ln, suite.LoadConfig(t, certFile, keyFile)) }()
	s := &served{app, t, ln.Addr().String(), done}
	c := suite.Client(t, trusted, suite.HTTP2)
	got := make(chan string, 1)
	go func() {
		resp, err := c.Get("https://" + s.addr + "/")
		if err != nil {
			got <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			got <- err.Error()
			return
		}
		got <- resp.Proto + " " + string(body)
	}()
	suite.Await(t, "the action", entered)
	shutdown := s.shutdown(t.Context())
	if answer := <-got; answer != "HTTP/2.0 finished" {
		t.Error(answer)
	}
	s.wantEnd(shutdown)
}

func TestShutdownTwiceAndServeAfterIt(t *testing.T) {
	suite.OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		s := serve(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) { app.Get("/", suite.Text("hello")) })
		s.keepAlive()
		s.wantEnd(s.shutdown(t.Context()))
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("second Shutdown: %v", err)
		}
		select {
		case <-s.Draining():
		default:
			t.Error("Draining is open after Shutdown")
		}
		if err := s.Serve(suite.Listen(t)); err == nil || !strings.Contains(err.Error(), "shut down") {
			t.Errorf("Serve after Shutdown: %v", err)
		}
	})
}
