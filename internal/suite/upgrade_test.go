package suite

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// The head of a 101 that a handler writes before it hijacks is sent, as WebSocket libraries expect.
func TestUpgradeHeadIsSentBeforeHijack(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Mount("/up", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Connection", "Upgrade")
				w.Header().Set("Upgrade", "echo")
				w.Header().Set("X-Own", "1")
				w.WriteHeader(http.StatusSwitchingProtocols)
				conn, rw, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				line, _ := rw.ReadString('\n')
				_, _ = io.WriteString(conn, "echo: "+line)
			}))
		})
		conn := Dial(t, addr)
		_, _ = io.WriteString(conn, "GET /up HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		br := bufio.NewReader(conn)
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"Connection": "Upgrade", "Upgrade": "echo", "X-Own": "1"} {
			if got := resp.Header.Get(name); resp.StatusCode != http.StatusSwitchingProtocols || got != want {
				t.Errorf("%d, %s: got %q, want %q", resp.StatusCode, name, got, want)
			}
		}
		_, _ = io.WriteString(conn, "hello\n")
		if got, err := io.ReadAll(br); err != nil || string(got) != "echo: hello\n" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// A drain waits for handlers with hijacked connections until its timeout.
func TestDrainWaitsForHijacked(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		for _, how := range []string{"returns", "panics", "hangs"} {
			t.Run(how, func(t *testing.T) {
				var app *dunlin.App
				var ended atomic.Bool
				hang := make(chan struct{})
				addr, _ := Start(t, dunlin.Config{Engine: engine, Logger: slog.New(slog.DiscardHandler)}, func(a *dunlin.App) {
					app = a
					app.Mount("/up", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						conn, rw, err := http.NewResponseController(w).Hijack()
						if err != nil {
							t.Error(err)
							return
						}
						defer conn.Close()
						_, _ = io.WriteString(conn, "begun\n")
						<-app.Draining()
						if how == "hangs" {
							<-hang
							return
						}
						_, _ = io.WriteString(conn, "leave\n")
						if line, err := rw.ReadString('\n'); line != "left\n" {
							t.Errorf("got %q, %v", line, err)
						}
						ended.Store(true)
						if how == "panics" {
							panic(http.ErrAbortHandler)
						}
					}))
				})
				conn := Dial(t, addr)
				Send(t, conn, "GET /up HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
				br := bufio.NewReader(conn)
				if line, err := br.ReadString('\n'); line != "begun\n" {
					t.Fatal(line, err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				shutdown := make(chan error, 1)
				go func() { shutdown <- app.Shutdown(ctx) }()
				if how == "hangs" {
					<-app.Draining()
					cancel()
					if err := <-shutdown; !errors.Is(err, context.Canceled) {
						t.Errorf("Shutdown returned %v", err)
					}
					close(hang)
					return
				}
				if line, err := br.ReadString('\n'); line != "leave\n" {
					t.Fatal(line, err)
				}
				<-time.After(20 * time.Millisecond) // the client is still sending
				Send(t, conn, "left\n")
				if err := <-shutdown; err != nil || !ended.Load() {
					t.Errorf("Shutdown returned %v, and the handler has ended: %v", err, ended.Load())
				}
			})
		}
	})
}

// The drain waits for them also if middleware has replaced the request's context.
func TestDrainWaitsForHijackedInsideMiddleware(t *testing.T) {
	contexts := map[string]func(context.Context) context.Context{
		"over": func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx
		},
		"without end": context.WithoutCancel,
	}
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		for how, change := range contexts {
			t.Run(how, func(t *testing.T) {
				var app *dunlin.App
				var ended atomic.Bool
				addr, _ := Start(t, dunlin.Config{Engine: engine, Logger: slog.New(slog.DiscardHandler)}, func(a *dunlin.App) {
					app = a
					behind := a.Group("")
					behind.UseStd(func(next http.Handler) http.Handler {
						return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r.WithContext(change(r.Context()))) })
					})
					behind.HandleStd("GET", "/up", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						conn, rw, err := http.NewResponseController(w).Hijack()
						if err != nil {
							t.Error(err)
							return
						}
						defer conn.Close()
						_, _ = io.WriteString(conn, "begun\n")
						<-app.Draining()
						_, _ = io.WriteString(conn, "leave\n")
						if line, err := rw.ReadString('\n'); line != "left\n" {
							t.Errorf("got %q, %v", line, err)
						}
						ended.Store(true)
					}))
				})
				conn := Dial(t, addr)
				Send(t, conn, "GET /up HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
				br := bufio.NewReader(conn)
				if line, err := br.ReadString('\n'); line != "begun\n" {
					t.Fatal(line, err)
				}
				shutdown := make(chan error, 1)
				go func() { shutdown <- app.Shutdown(t.Context()) }()
				if line, err := br.ReadString('\n'); line != "leave\n" {
					t.Fatal(line, err)
				}
				select {
				case err := <-shutdown:
					t.Fatalf("Shutdown returned %v before the handler", err)
				case <-time.After(20 * time.Millisecond): // the client is still sending
				}
				Send(t, conn, "left\n")
				if err := Await(t, "Shutdown", shutdown); err != nil || !ended.Load() {
					t.Errorf("Shutdown returned %v, and the handler has ended: %v", err, ended.Load())
				}
			})
		}
	})
}

// A request with an Upgrade to HTTP/2 is answered over HTTP/1.1, and the following bytes are parsed as HTTP/1.1.
func TestUpgradeToHTTP2IsIgnored(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine, H2C: dunlin.H2CPriorKnowledge}, func(app *dunlin.App) {
			app.Handle("*", "/proto", Proto)
		})
		conn := Dial(t, addr)
		br := bufio.NewReader(conn)
		for _, method := range []string{"GET", "OPTIONS", "GET"} {
			Send(t, conn, method+" /proto HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
			Answered(t, br, 200, "HTTP/1.1 clear")
		}
	})
}

// A proxy whose upstream truncates its response must truncate its own. net/http's proxy does so only if the request's context
// says that a server runs it.
func TestProxyTruncatesResponse(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer backend.Close()
	target, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var server any
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			proxy := httputil.NewSingleHostReverseProxy(target)
			app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				server = r.Context().Value(http.ServerContextKey)
				proxy.ServeHTTP(w, r)
			}))
		})
		req, err := http.NewRequestWithContext(context.Background(), "GET", "http://"+addr+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := ClosingTransport().RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got, err := io.ReadAll(resp.Body); err == nil {
			t.Errorf("half an answer was taken for one: %q", got)
		}
		if _, ok := server.(*http.Server); !ok {
			t.Errorf("the context has the server %T", server)
		}
	})
}

// Output of a handler is sent before the connection is hijacked: a CONNECT proxy responds 200 and then hijacks.
func TestStatusIsSentBeforeHijack(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		for _, behind := range []string{"", "middleware"} {
			for _, method := range []string{"CONNECT", "GET"} {
				t.Run(method+behind, func(t *testing.T) { statusGoesOutBeforeHijack(t, engine, method, behind != "") })
			}
		}
	})
}

func statusGoesOutBeforeHijack(t *testing.T, engine dunlin.Engine, method string, middleware bool) {
	seen := make(chan int, 1)
	addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
		app.Install(dunlin.Hooks{Observe: func(a *dunlin.AnswerInfo) { seen <- a.Status() }})
		if middleware {
			app.Use(func(next dunlin.Action) dunlin.Action {
				return func(r *dunlin.Request) dunlin.Response { return next(r).Header("X-Middleware", "1") }
			})
		}
		app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Own", "1")
			w.WriteHeader(http.StatusOK)
			if r.Method != http.MethodConnect {
				_, _ = io.WriteString(w, "first")
			}
			conn, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			line, _ := rw.ReadString('\n')
			_, _ = io.WriteString(conn, "echo: "+line)
		}))
	})
	conn := Dial(t, addr)
	target := "/x"
	if method == http.MethodConnect {
		target = "h.example:443"
	}
	Send(t, conn, method+" "+target+" HTTP/1.1\r\nHost: h.example\r\n\r\nearly\n")
	all, err := io.ReadAll(conn)
	head, rest, _ := strings.Cut(string(all), "\r\n\r\n")
	want := "echo: early\n"
	if method != http.MethodConnect {
		want = "5\r\nfirst\r\n" + want // the length was unknown
	}
	if err != nil || !strings.HasPrefix(head, "HTTP/1.1 200 OK\r\n") || !strings.Contains(head, "X-Own: 1") || rest != want {
		t.Errorf("got %q, %v, want 200, and %q", all, err, want)
	}
	if got := strings.Contains(head, "X-Middleware: 1"); got != middleware {
		t.Errorf("header of the middleware: got %v", got)
	}
	if got := Await(t, "the observer", seen); got != http.StatusOK {
		t.Errorf("observed %d", got)
	}
}
