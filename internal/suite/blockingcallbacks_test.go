package suite

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// User code that is called outside actions does not block others either.

// manyConns exceeds the number of loops, so that each loop has some.
const manyConns = 32

// wantServed checks that connections to all loops are answered.
func wantServed(t *testing.T, addr string) {
	t.Helper()
	var conns []net.Conn
	for range manyConns {
		conns = append(conns, AskConn(t, addr, Request("GET /probe")))
	}
	for i, conn := range conns {
		if got, err := ReadAnswer(bufio.NewReader(conn), "GET"); err != nil || !strings.HasSuffix(got, "probe") {
			t.Fatalf("connection %d: got %q, %v", i, got, err)
		}
	}
}

// A constraint that blocks delays its own requests only. They are answered when it returns, however they arrived.
func TestConstraintBlocks(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		g := NewGate()
		var app *dunlin.App
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(a *dunlin.App) {
			app = a
			a.ConstraintFunc("slow", func(value string) bool {
				if value != "quick" {
					g.Pass()
				}
				return value != "not"
			})
			a.Get("/probe", Text("probe"))
			a.Get("/held/{v:slow}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Param("v")) })
			a.Post("/held/{v:slow}", func(r *dunlin.Request) dunlin.Response {
				body, err := r.Bytes()
				if err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Text(r.Param("v") + " " + string(body))
			})
			a.WithTimeout(Patience).Get("/limited/{v:slow}", Text("limited"))
		})
		t.Cleanup(func() { close(g.Open) }) // also after a failure
		const chunks = "Transfer-Encoding: chunked"
		large := strings.Repeat("x", 100_000)
		for _, c := range []struct{ name, send, want string }{
			{"alone", Request("GET /held/a"), Plain("a")},
			{"not matched", Request("GET /held/not"), Problem("404 Not Found", `{"title":"Not Found","status":404}`)},
			{"with a limit", Request("GET /limited/a"), Plain("limited")},
			{"a body", Request("POST /held/a", "", "body"), Plain("a body")},
			{"a body in chunks", Request("POST /held/a", chunks, "", "4\r\nbody\r\n0\r\n\r\n"), Plain("a body")},
			{"a large body", Request("POST /held/a", "", large), Plain("a " + large)},
			{"followed by others", Request("GET /held/a") + Request("GET /probe") + Request("GET /held/quick"), Plain("a")},
		} {
			t.Run(c.name, func(t *testing.T) {
				var conns []net.Conn
				for range 3 { // on every loop
					conns = append(conns, AskConn(t, addr, c.send))
				}
				for range conns {
					g.Await(t)
				}
				wantServed(t, addr)
				if engine == dunlin.EngineLoop {
					Soon(t, "the requests in routing are in flight", func() bool { return app.Stats().Actions.InFlight == len(conns) })
				}
				for range 2 * len(conns) {
					g.Open <- struct{}{} // a request with a large body is routed twice
				}
				method, _, _ := strings.Cut(c.send, " ")
				for _, conn := range conns {
					br := bufio.NewReader(conn)
					if got, err := ReadAnswer(br, method); err != nil || got != c.want {
						t.Errorf("answer: got %.300q, %v, want %.300q", got, err, c.want)
					}
					if c.name == "followed by others" {
						for _, want := range []string{Plain("probe"), Plain("quick")} {
							if got, err := ReadAnswer(br, "GET"); err != nil || got != want {
								t.Errorf("then: got %.300q, %v, want %q", got, err, want)
							}
						}
					}
				}
				for drained := false; !drained; {
					select {
					case <-g.Entered:
					case <-g.Open:
					default:
						drained = true
					}
				}
				Soon(t, "nothing is in flight", func() bool { return app.Stats().Actions.InFlight == 0 })
			})
		}
	})
}

// A stuckLog is a slog.Handler that blocks once it is stuck, like one that writes to a full pipe.
type stuckLog struct {
	slog.Handler
	stuck atomic.Bool
	free  chan struct{}
}

func (l *stuckLog) wait() {
	if l.stuck.Load() {
		<-l.free
	}
}

func (l *stuckLog) Enabled(context.Context, slog.Level) bool { l.wait(); return true }
func (l *stuckLog) Handle(ctx context.Context, r slog.Record) error {
	l.wait()
	return l.Handler.Handle(ctx, r)
}

// A logger that blocks forever does not block requests with failures of any kind.
func TestLoggerBlocks(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		logs := new(LogBuffer)
		l := &stuckLog{Handler: logs.Logger(slog.LevelDebug).Handler(), free: make(chan struct{})}
		config := dunlin.Config{Engine: engine, Logger: slog.New(l), Timeouts: dunlin.Timeouts{Body: 50 * time.Millisecond}}
		addr, _ := Start(t, config, registerLoggedFailures)
		l.stuck.Store(true)
		free := sync.OnceFunc(func() { l.stuck.Store(false); close(l.free) })
		t.Cleanup(free)
		answered := func(conn net.Conn, name string, begins ...string) {
			got, err := ReadAnswer(bufio.NewReader(conn), "GET")
			for _, want := range begins {
				if strings.HasPrefix(got, "HTTP/1.1 "+want) {
					return
				}
			}
			t.Errorf("%s: got %q, %v, want %q", name, got, err, begins)
		}
		ask := func(name, raw string, begins ...string) { answered(AskConn(t, addr, raw), name, begins...) }
		var slow []net.Conn
		for range manyConns {
			slow = append(slow, AskConn(t, addr, "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf"))
		}
		for _, conn := range slow {
			answered(conn, "a slow body", "408 ")
		}
		for _, path := range []string{"/fails", "/nothing", "/error", "/late"} {
			ask(path, Request("GET "+path), "500 ", "503 ")
		}
		for _, path := range []string{"/policy", "/wrong-policy", "/observer", "/own-observer", "/seq"} {
			ask(path, Request("GET "+path), "200 ")
		}
		if _, err := ReadAnswer(bufio.NewReader(AskConn(t, addr, Request("GET /stream"))), "GET"); err == nil {
			t.Error("a stream that failed came to its end")
		}
		ask("no route", Request("GET /unknown"), "404 ")
		if engine == dunlin.EngineLoop { // net/http's own response to that has no Date
			ask("malformed", "GET /probe HTTP/1.1\r\n\r\n", "400 ")
		}
		ask("too large", "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n", "413 ")
		wantServed(t, addr)
		free()
		for _, want := range []string{"slow clients cut off", "panic in an action", "panic in the Headers of a feature", "panic in an observer",
			"feature changed more than headers", "stream failed", "action took too long", "request failed"} {
			Soon(t, want+" is logged", func() bool { return strings.Contains(logs.String(), want) })
		}
	})
}

// registerLoggedFailures registers actions that fail in all ways that are logged.
func registerLoggedFailures(app *dunlin.App) {
	app.Install(dunlin.Hooks{Headers: func(info *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
		switch info.Path() {
		case "/policy":
			panic("a policy's")
		case "/wrong-policy":
			return dunlin.Text("another")
		}
		return resp
	}})
	app.Install(dunlin.Hooks{Observe: func(info *dunlin.AnswerInfo) {
		if info.Path() == "/observer" {
			panic("an observer's")
		}
	}})
	app.OnError(func(_ *dunlin.Request, err error) dunlin.Response { panic(err) })
	app.Recover(func(*dunlin.Request, any) dunlin.Response { panic("once more") })
	for _, path := range []string{"/probe", "/policy", "/wrong-policy", "/observer"} {
		app.Get(path, Text("probe"))
	}
	app.Get("/own-observer", func(r *dunlin.Request) dunlin.Response {
		r.OnAnswer(func(*dunlin.AnswerInfo) { panic("an observer's") })
		return dunlin.Text("observed")
	})
	app.Get("/fails", func(*dunlin.Request) dunlin.Response { panic("an action's") })
	app.Get("/nothing", func(*dunlin.Request) dunlin.Response { return dunlin.Response{} })
	app.Get("/error", func(*dunlin.Request) dunlin.Response { return dunlin.Error(errors.New("an action's")) })
	app.Get("/late", func(r *dunlin.Request) dunlin.Response {
		<-r.Context().Done()
		return dunlin.Text("late")
	}).Timeout(time.Millisecond)
	app.Get("/stream", func(*dunlin.Request) dunlin.Response {
		return dunlin.Stream("text/plain", func(w io.Writer) error {
			if _, err := io.WriteString(w, "begun"); err != nil {
				return err
			}
			return errors.Join(dunlin.Flush(w), errors.New("a stream's"))
		})
	})
	app.Get("/seq", func(*dunlin.Request) dunlin.Response { return dunlin.JSONSeq(slices.Values([]int{1, 2, 3})) })
	app.Post("/body", func(r *dunlin.Request) dunlin.Response {
		if _, err := r.Bytes(); err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text("whole")
	})
}

// An app with a logger that blocks from the start can be registered, served and shut down.
func TestLoggerBlocksFromTheStart(t *testing.T) {
	OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		l := &stuckLog{Handler: slog.DiscardHandler, free: make(chan struct{})}
		l.stuck.Store(true)
		free := sync.OnceFunc(func() { l.stuck.Store(false); close(l.free) })
		defer free()
		addrs := make(chan string, 1)
		app := dunlin.New(dunlin.Config{
			Engine: engine, Addr: "127.0.0.1:0", Logger: slog.New(l),
			Ready: func(addr net.Addr, _ dunlin.Engine) { addrs <- addr.String() },
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			app.Get("/probe", Text("probe"))
			ended <- app.Run(ctx)
		}()
		wantServed(t, Await(t, "an app that serves", addrs))
		if engine == dunlin.EngineStd { // the end waits a second for the last records, on either engine
			free()
		}
		cancel()
		if err := Await(t, "the end of Run", ended); err != nil {
			t.Error(err)
		}
	})
}
