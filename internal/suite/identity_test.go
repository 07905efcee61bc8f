package suite

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/middleware"
)

// Each request has its own identifier, whether from the server or from the client, also if it was refused before its action:
// truncated, malformed, too large or over a limit.
func TestIdentifiersAreUnique(t *testing.T) {
	OnBothEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var observed []string
		addr, _ := Start(t, dunlin.Config{Engine: engine, Logger: slog.New(slog.DiscardHandler), Limits: dunlin.Limits{MaxBody: 1000, MaxHeaders: 20}}, func(app *dunlin.App) {
			app.Install(dunlin.Hooks{Headers: func(info *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
				return resp.Header("X-Id", info.ID())
			}}, middleware.RequestID("X-Request-Id"))
			app.Get("/ok", Text("ok"))
			app.Post("/body", func(r *dunlin.Request) dunlin.Response {
				if _, err := r.Bytes(); err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Empty()
			})
			app.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("it") })
		})
		refused := []struct{ raw, own string }{
			{Request("GET /ok", "X: "+strings.Repeat("x", 70_000)), ""},
			{Request("GET /ok", strings.Repeat("A: b\r\n", 30)+"A: b"), ""},
			{Request("GET /ok", "no colon"), ""},
			{"GET /ok HTTP/1.1\r\n\r\n", ""}, // without Host
			{Request("POST /body", "X-Request-Id: too-large", "Content-Length: 2000"), "too-large"},
			{Request("POST /body", "X-Request-Id: cut", "Content-Length: 10") + "short", "cut"},
			{Request("POST /body", "X-Request-Id: chunk", "Transfer-Encoding: chunked") + "1x\r\n", "chunk"},
			{Request("GET /panic"), ""},
			{Request("GET /nowhere", "X-Request-Id: nowhere"), "nowhere"},
		}
		for range 3 {
			for _, c := range refused {
				for _, request := range []struct{ raw, own string }{c, {Request("GET /ok"), ""}} {
					conn := AskConn(t, addr, request.raw)
					_ = CloseWrite(conn) // fails if the server has closed the connection; the response is checked
					resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
					if err != nil && engine == dunlin.EngineStd && len(request.raw) > 64<<10 {
						conn.Close() // net/http may reset a connection with unread data
						continue
					}
					if err != nil {
						t.Fatalf("%.60q: %v", request.raw, err)
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					conn.Close()
					switch id := resp.Header.Get("X-Id"); {
					case id == "" && engine == dunlin.EngineStd: // net/http answered without the app
					case request.own != "" && id != request.own:
						t.Errorf("%.60q: got %q, want the client's %q", request.raw, id, request.own)
					case request.own == "":
						observed = append(observed, id)
					}
				}
			}
		}
		seen := map[string]bool{"": true}
		for _, id := range observed {
			if seen[id] || len(id) != 26 {
				t.Errorf("the identifier %q was another request's, or is none", id)
			}
			seen[id] = true
		}
	})
}

// Inside standard middleware a request has the identifier and the context values that were set outside. So the action's log, a
// timeout response and the observer's line show the same request.
func TestIdentityBehindStandardMiddleware(t *testing.T) {
	const late = 200 * time.Millisecond // before it has passed, all middleware must have run
	OnBothEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		inAction, observed := make(chan string, 1), make(chan string, 1)
		addr, _ := Start(t, dunlin.Config{Engine: engine, Logger: slog.New(slog.DiscardHandler)}, func(app *dunlin.App) {
			app.Install(dunlin.Hooks{Headers: func(info *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
				return resp.Header("X-Id", info.ID())
			}})
			app.Install(dunlin.Hooks{Observe: func(info *dunlin.AnswerInfo) {
				observed <- fmt.Sprint(info.ID(), " ", info.Context().Value(traceKey{}))
			}})
			named := func(next dunlin.Action) dunlin.Action {
				return func(r *dunlin.Request) dunlin.Response {
					if id := r.Header("X-Request-Id"); id != "" {
						ext.SetID(r, id)
					}
					return next(r)
				}
			}
			pass := func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r) })
			}
			app.UseStd(pass)
			app.Use(named, traced)
			app.UseStd(pass)
			answer := func(when string) dunlin.Action {
				return func(r *dunlin.Request) dunlin.Response {
					if when == "early" {
						inAction <- r.ID()
					}
					if when != "soon" {
						<-r.Context().Done()
					}
					if when != "early" {
						inAction <- r.ID()
					}
					return dunlin.Text("x")
				}
			}
			app.Get("/soon", answer("soon"))
			app.Get("/soon/limited", answer("soon")).Timeout(time.Minute)
			app.Get("/late/early", answer("early")).Timeout(late)
			app.Get("/late", answer("late")).Timeout(late)
		})
		for _, path := range []string{"/soon", "/soon/limited", "/late/early", "/late"} {
			for _, own := range []string{"", "mine"} {
				req, err := http.NewRequest("GET", "http://"+addr+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("X-Request-Id", own)
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				id := resp.Header.Get("X-Id")
				if got := <-inAction; got != id || own != "" && id != own {
					t.Errorf("%s of %q: the answer says %q, the action %q", path, own, id, got)
				}
				if got, want := <-observed, id+" trace-7"; got != want {
					t.Errorf("%s of %q: observed %q, want %q", path, own, got, want)
				}
			}
		}
	})
}
