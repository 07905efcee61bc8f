package suite

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// stamp is a function Hooks.Headers that adds a header with the facts it knows.
func stamp(info *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
	if origin := info.Header("Origin"); origin != "" {
		resp = resp.Header("X-Origin", origin+" at "+info.Host())
	}
	return resp.Header("X-Policy", fmt.Sprint(info.Source(), " ", info.Status(), " ", info.Path()))
}

// observed collects the observers' records.
type observed struct {
	mu    sync.Mutex
	lines []string
}

func (o *observed) add(i *dunlin.AnswerInfo) {
	o.mu.Lock()
	defer o.mu.Unlock()
	line := fmt.Sprint(i.Method(), " ", i.Path(), " ", i.Route(), " ", i.Source(), " ", i.Status(), " ", i.Bytes(), " ", i.Header("Origin"))
	if i.Dropped() {
		line += " dropped"
	}
	if i.ID() == "" || i.Duration() < 0 || i.Duration() > time.Minute || !i.Remote().IsValid() {
		line = fmt.Sprint("ID ", i.ID(), ", duration ", i.Duration(), ", remote ", i.Remote(), " ", line)
	}
	o.lines = append(o.lines, line)
}

func (o *observed) removeAll() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := o.lines
	o.lines = nil
	return lines
}

func passOn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r) })
}

// The feature adds its header to each response, regardless of its origin, and the observer sees the client's response.
func TestAnswersAreObserved(t *testing.T) {
	long := strings.Repeat("0123456789", 10_000)
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var all, own observed
		held, release := NewGate(), make(chan struct{})
		addr, _ := Start(t, dunlin.Config{
			Engine: engine, Logger: slog.New(slog.DiscardHandler), UncleanPaths: dunlin.UncleanPathsRedirect, Limits: dunlin.Limits{MaxHeaders: 20},
		}, func(app *dunlin.App) {
			app.Install(dunlin.Hooks{Headers: stamp})
			app.Install(dunlin.Hooks{Observe: all.add})
			app.Use(func(next dunlin.Action) dunlin.Action {
				return func(r *dunlin.Request) dunlin.Response {
					r.OnAnswer(own.add)
					return next(r)
				}
			})
			app.Get("/ok", Text("ok"))
			app.Get("/long", Text(long))
			app.Get("/empty", Constant(dunlin.NoContent()))
			app.Get("/none", func(*dunlin.Request) dunlin.Response { return dunlin.Response{} })
			app.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("it") })
			app.Get("/abort", func(*dunlin.Request) dunlin.Response { panic(http.ErrAbortHandler) })
			app.Get("/late", func(r *dunlin.Request) dunlin.Response {
				<-release
				return dunlin.Text(r.ID())
			}).Timeout(10 * time.Millisecond)
			app.Get("/limit", func(*dunlin.Request) dunlin.Response { held.Pass(); return dunlin.Text("held") }).Limit(1)
			app.Get("/stream", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error { _, err := io.WriteString(w, long); return err })
			})
			app.Get("/broken", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error { return dunlin.NotFound().Err() })
			})
			app.Get("/failing", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(io.Writer) error { return &dunlin.ProblemDetails{Status: 409} })
			})
			app.Get("/cut", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error { _, _ = io.WriteString(w, long); panic("it") })
			})
			app.Get("/handler", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, long) })))
			behind := app.Group("/behind")
			behind.UseStd(passOn)
			behind.Get("/ok", Text("ok"))
			behind.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("it") })
			behind.Get("/long", Text(long))
		})
		defer close(release)
		stay := AskConn(t, addr, Request("GET /limit"))
		held.Await(t)
		for _, c := range []struct{ request, policy, line string }{
			{"GET /ok", "action 200 /ok", "GET /ok /ok action 200 2 o"},
			{"HEAD /ok", "action 200 /ok", "HEAD /ok /ok action 200 0 o"},
			{"GET /long", "action 200 /long", "GET /long /long action 200 100000 o"},
			{"GET /empty", "action 204 /empty", "GET /empty /empty action 204 0 o"},
			{"GET /none", "action 500 /none", "GET /none /none action 500 46 o"},
			{"GET /panic", "panic 500 /panic", "GET /panic /panic panic 500 46 o"},
			{"GET /abort", "", "GET /abort /abort action 0 -1 o dropped"},
			{"GET /late", "timeout 503 /late", "GET /late /late timeout 503 81 o"},
			{"GET /limit", "limit 503 /limit", "!GET /limit /limit limit 503 * o"},
			{"GET /stream", "action 200 /stream", "GET /stream /stream action 200 -1 o"},
			{"GET /failing", "action 409 /failing", "GET /failing /failing action 409 33 o"},
			{"GET /cut", "action 200 /cut", "GET /cut /cut action 0 -1 o dropped"},
			{"GET /handler", "action 200 /handler", "GET /handler /handler action 200 -1 o"},
			{"GET /behind/ok", "action 200 /behind/ok", "GET /behind/ok /behind/ok action 200 2 o"},
			{"GET /behind/panic", "panic 500 /behind/panic", "GET /behind/panic /behind/panic panic 500 46 o"},
			{"GET /behind/long", "action 200 /behind/long", "GET /behind/long /behind/long action 200 -1 o"},
			{"GET /nowhere", "app 404 /nowhere", "GET /nowhere  app 404 * o"},
			{"POST /ok", "app 405 /ok", "POST /ok  app 405 * o"},
			{"OPTIONS /ok", "app 204 /ok", "OPTIONS /ok  app 204 0 o"},
			{"GET //ok", "app 308 //ok", "GET //ok  app 308 0 o"},
		} {
			conn := AskConn(t, addr, Request(c.request, "Origin: o"))
			method, _, _ := strings.Cut(c.request, " ")
			resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				if got := resp.Header.Get("X-Policy"); got != c.policy || resp.Header.Get("X-Origin") != "o at h.example" {
					t.Errorf("%s: the feature's headers: got %q, %q; want %q", c.request, got, resp.Header.Get("X-Origin"), c.policy)
				}
			} else if c.policy != "" && !strings.HasSuffix(c.line, "dropped") {
				t.Errorf("%s: %v", c.request, err)
			}
			conn.Close()
			line, seenByOwn := strings.CutPrefix(c.line, "!")
			var got []string
			Soon(t, c.request+" is observed", func() bool { got = append(got, all.removeAll()...); return len(got) > 0 })
			wantLine(t, "the app", line, got)
			got = own.removeAll()
			if seenByOwn {
				if len(got) != 0 {
					t.Errorf("%s: middleware that did not run observes %q", c.request, got)
				}
				continue
			}
			Soon(t, c.request+" is observed by the request", func() bool { got = append(got, own.removeAll()...); return len(got) > 0 })
			wantLine(t, "the request", line, got)
		}
		held.Open <- struct{}{}
		_ = stay
	})
}

// wantLine compares an observed line; * matches any length.
func wantLine(t *testing.T, who, want string, got []string) {
	t.Helper()
	before, after, _ := strings.Cut(want, "*")
	if len(got) != 1 || !strings.HasPrefix(got[0], before) || !strings.HasSuffix(got[0], after) {
		t.Errorf("observed by %s: got %q, want %q", who, got, want)
	}
}

// Refusals of an engine before there is a request run features, too. net/http reports only too many fields.
func TestRefusalsAreObserved(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var fields []string
		for i := range 30 {
			fields = append(fields, fmt.Sprintf("X-%d: y", i))
		}
		for _, c := range []struct {
			name, send, policy, line string
			loopOnly                 bool
			slow                     bool
		}{
			{"malformed", "GET / HTTP/1.1\r\nbad\r\n\r\n", "protocol 400", "* protocol 400 *", true, false},
			{"long target", Request("GET /" + strings.Repeat("x", 5<<10)), "protocol 414", "GET   protocol 414 *", true, false},
			{"long head", Request("GET /", "X: "+strings.Repeat("x", 5<<10)), "protocol 431", "GET   protocol 431 *", true, false},
			{"many fields", Request("GET /", fields...), "protocol 431", "GET *protocol 431 *", false, false},
			{"slow head", "POST / HTTP/1.1\r\n", "protocol 408", "*protocol 408 *", true, true},
			{"slow body", Request("POST /", "Origin: o", "Content-Length: 10") + "x", "action 408 /", "POST / / action 408 * o", true, true},
			{"malformed chunk", Request("POST /", "Origin: o", "Transfer-Encoding: chunked", "", "x\r\n"), "protocol 400 /", "POST /  protocol 400 * o", true, false},
		} {
			if c.loopOnly && engine != dunlin.EngineLoop {
				continue
			}
			if !c.slow {
				if err := refused(t, dunlin.Config{Engine: engine}, c.send, c.policy, c.line); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
				continue
			}
			Unhurried(t, 200*time.Millisecond, func(d time.Duration) error { // it includes a handshake
				if err := refused(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Head: d, Body: d}}, c.send, c.policy, c.line); err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
				return nil
			})
		}
	})
}

// refused checks the calls of features for a request that an app refuses.
func refused(t *testing.T, config dunlin.Config, send, policy, line string) error {
	var all observed
	config.Limits.MaxHead, config.Limits.MaxHeaders, config.Problems = 4<<10, 20, statusErrors
	addr, _ := Start(t, config, func(app *dunlin.App) {
		app.Install(dunlin.Hooks{Headers: stamp})
		app.Install(dunlin.Hooks{Observe: all.add})
		app.Post("/", func(r *dunlin.Request) dunlin.Response {
			_, err := r.Bytes()
			return dunlin.Error(err)
		})
	})
	began := time.Now()
	conn := Dial(t, addr)
	_, _ = io.WriteString(conn, send) // errors show in the response
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if limit := config.Timeouts.Head; limit > 0 && Ended(err) && time.Since(began) >= limit/2 { // a loop's clock may be a little behind
		return Late(fmt.Sprintf("cut off before its head had begun: %v", err))
	}
	if err != nil {
		return err
	}
	got := resp.Header.Get("X-Policy")
	if config.Timeouts.Head > 0 && policy != "protocol 408" && strings.HasPrefix(got, "protocol 408") {
		return Late("cut off within its head")
	}
	if !strings.HasPrefix(got, policy) {
		return fmt.Errorf("the feature's header is %q, want %q", got, policy)
	}
	if body, err := io.ReadAll(resp.Body); err != nil || !strings.HasPrefix(string(body), `{"error":{"code":`) || resp.Header.Get("Content-Type") != "application/json" {
		return fmt.Errorf("%q answers %s %q, %v", resp.Header.Get("Content-Type"), send, body, err)
	}
	conn.Close()
	var seen []string
	Soon(t, send+" is observed", func() bool { seen = append(seen, all.removeAll()...); return len(seen) > 0 })
	parts := strings.Split(line, "*")
	if len(seen) != 1 || !strings.HasPrefix(seen[0], parts[0]) || !strings.Contains(seen[0], strings.Trim(parts[1], "*")) {
		return fmt.Errorf("observed %q, want %q", seen, line)
	}
	return nil
}

// An observer that blocks delays only its own client. A function Headers that panics or changes more than headers does no harm.
func TestFailingPoliciesAndObservers(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		held := NewGate()
		addr, logs := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Install(dunlin.Hooks{Headers: func(info *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
				switch info.Path() {
				case "/panic":
					panic("in the policy")
				case "/other":
					return dunlin.Text("other")
				case "/field":
					return resp.Header("X-Bad", "a\nb")
				}
				return resp
			}})
			app.Install(dunlin.Hooks{Observe: func(info *dunlin.AnswerInfo) {
				switch info.Path() {
				case "/block", "/missing/block":
					held.Pass()
				case "/observer":
					panic("in the observer")
				}
			}})
			for _, path := range []string{"/panic", "/other", "/block", "/observer", "/ok", "/field"} {
				app.Get(path, Text("fine"))
			}
		})
		for _, path := range []string{"/block", "/missing/block"} {
			conns := make([]net.Conn, 8) // more than the number of loops
			for i := range conns {
				conns[i] = AskConn(t, addr, Request("GET "+path))
				held.Await(t)
			}
			if resp, got := askStd(t, "GET", "http://"+addr+"/ok", ""); got != "fine" {
				t.Errorf("meanwhile: got %d %s", resp.StatusCode, got)
			}
			for _, conn := range conns {
				held.Open <- struct{}{}
				_ = conn
			}
			for _, conn := range conns {
				if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != map[string]int{"/block": 200}[path] && resp.StatusCode != 404 {
					t.Errorf("%s: got %v, %v", path, resp, err)
				}
			}
		}
		for path, want := range map[string]int{"/panic": 200, "/other": 200, "/observer": 200, "/field": 200} {
			resp, got := askStd(t, "GET", "http://"+addr+path, "")
			if resp.StatusCode != want || want == 200 && got != "fine" {
				t.Errorf("%s: got %d %s, want %d", path, resp.StatusCode, got, want)
			}
		}
		WantLogged(t, logs, "in the policy", "in the observer", "changed more than headers", "added an invalid header field")
	})
}

// Headers of a feature is called once for each response, however the response is sent.
func TestPoliciesAreCalledOnce(t *testing.T) {
	long := strings.Repeat("0123456789", 10_000)
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var calls atomic.Int32
		observed := make(chan int32, 10) // calls of Headers at the time of the observer's
		addr, _ := Start(t, dunlin.Config{Engine: engine, Logger: slog.New(slog.DiscardHandler)}, func(app *dunlin.App) {
			app.Install(dunlin.Hooks{Headers: func(info *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
				calls.Add(1)
				return resp.Header("X-Policy", info.Path())
			}})
			app.Install(dunlin.Hooks{Observe: func(*dunlin.AnswerInfo) { observed <- calls.Swap(0) }})
			registerStreamsOfAllKinds(app, long)
		})
		for _, request := range []string{
			"GET /short", "HEAD /short", "GET /flushed", "HEAD /flushed", "GET /long", "GET /cut", "GET /failed", "GET /sequence", "GET /events",
			"GET /file", "HEAD /file", "GET /handler", "GET /behind/handler", "GET /std/flushed", "GET /nowhere",
		} {
			method, path, _ := strings.Cut(request, " ")
			conn := AskConn(t, addr, Request(request))
			resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body) // one response is truncated
				if got := resp.Header.Get("X-Policy"); got != path {
					t.Errorf("%s: the feature's header is %q", request, got)
				}
			} else if path != "/cut" {
				t.Errorf("%s: %v", request, err)
			}
			conn.Close()
			if n := Await(t, "the answer is observed", observed); n != 1 {
				t.Errorf("%s: Headers was called %d times", request, n)
			}
		}
	})
}

// registerStreamsOfAllKinds registers actions that respond piece by piece, or may do so.
func registerStreamsOfAllKinds(app *dunlin.App, long string) {
	stream := func(write func(io.Writer) error) dunlin.Action {
		return func(*dunlin.Request) dunlin.Response { return dunlin.Stream("text/plain", write) }
	}
	flushing := dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "a")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "b")
	}))
	app.Get("/short", stream(write("a")))
	app.Get("/flushed", stream(write("a!", "b")))
	app.Get("/long", stream(write(long)))
	app.Get("/cut", stream(func(w io.Writer) error { _ = write("a!")(w); panic("it") }))
	app.Get("/failed", stream(failEarly))
	app.Get("/sequence", func(*dunlin.Request) dunlin.Response { return dunlin.JSONSeq(slices.Values([]string{long})) })
	app.Get("/events", func(*dunlin.Request) dunlin.Response {
		return dunlin.SSE(func(e *dunlin.Events) error { return e.Send(dunlin.Event{Data: "a"}) })
	})
	app.Get("/file", dunlin.Files(fstest.MapFS{"index.html": {Data: []byte(long)}}))
	app.Get("/handler", flushing)
	app.Get("/behind/handler", flushing, func(next dunlin.Action) dunlin.Action { return next })
	std := app.Group("/std")
	std.UseStd(passOn)
	std.Get("/flushed", stream(write("a!", "b")))
}

// Features that end their goroutine, as t.FailNow does, cost at most the response to that client. The caller and
// the next calls continue.
func TestExitingPoliciesAndObservers(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var app *dunlin.App
		exit := func(i *dunlin.AnswerInfo, where string) {
			if strings.HasPrefix(i.Path(), where) {
				runtime.Goexit()
			}
		}
		format := dunlin.FormatProblems("application/json", func(i *dunlin.AnswerInfo, p *dunlin.ProblemDetails) string {
			exit(i, "/format")
			return p.Title
		})
		addr, _ := Start(t, dunlin.Config{Engine: engine, Problems: format}, func(a *dunlin.App) {
			app = a
			a.Install(dunlin.Hooks{Headers: func(i *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
				exit(i, "/policy")
				return resp
			}})
			a.Install(dunlin.Hooks{Observe: func(i *dunlin.AnswerInfo) { exit(i, "/observer") }})
			a.Get("/probe", Text("probe"))
			for _, where := range []string{"/policy", "/observer", "/format"} {
				a.Get(where+"/problem", Constant(dunlin.NotFound()))
				a.Get(where+"/text", Text("text"))
				a.Get(where+"/stream", func(*dunlin.Request) dunlin.Response { return dunlin.Stream("text/x", write("a!", "b")) })
				a.Get(where+"/exits", func(*dunlin.Request) dunlin.Response { runtime.Goexit(); return dunlin.Empty() })
				a.Get(where+"/late", func(r *dunlin.Request) dunlin.Response { <-r.Context().Done(); return dunlin.Text("late") }).Timeout(time.Millisecond)
			}
		})
		for range 3 {
			for _, where := range []string{"/policy", "/observer", "/format"} {
				for _, what := range []string{"/text", "/problem", "/stream", "/exits", "/late", "/nowhere"} {
					br := bufio.NewReader(AskConn(t, addr, Request("GET "+where+what)))
					if _, err := ReadAnswer(br, http.MethodGet); err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("%s%s: neither an answer nor an end", where, what)
					}
					Exchange(t, addr, false)
				}
			}
		}
		Soon(t, "nothing is in flight", func() bool { return app.Stats().Actions.InFlight == 0 })
	})
}
