package suite

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

// stamping is a feature of a third party. It adds its name to the header X-Names of every answer, and counts answers by status.
type stamping struct {
	dunlin.Hooks
	mu   sync.Mutex
	seen map[int]int
}

func newStamping(name string) *stamping {
	n := &stamping{seen: map[int]int{}}
	n.Headers = func(_ *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
		return resp.AddHeader("X-Names", name)
	}
	n.Observe = func(info *dunlin.AnswerInfo) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.seen[info.Status()]++
	}
	return n
}

func (n *stamping) count(status int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen[status]
}

// Features of the app and of a group apply exactly once to each response: of actions, panics, streams, timeouts, limits and the
// router.
func TestFeaturesApplyToEveryAnswer(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		ofApp, ofGroup := newStamping("app"), newStamping("group")
		held, release := NewGate(), make(chan struct{})
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Install(middleware.RequestID("X-Request-ID"), ofApp, middleware.SecureHeaders(middleware.SecureHeadersConfig{}))
			api := app.Group("/api")
			api.Install(middleware.CORS(middleware.CORSConfig{Origins: []string{"*"}}), ofGroup)
			for _, g := range []*dunlin.Group{app.Group(""), api} {
				g.Get("/ok", Text("ok"))
				g.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("asked for") })
				g.Get("/stream", func(*dunlin.Request) dunlin.Response {
					return dunlin.Stream("text/plain", func(w io.Writer) error { _, err := io.WriteString(w, "ok"); return err })
				})
				g.Get("/late", func(*dunlin.Request) dunlin.Response { <-release; return dunlin.NoContent() }).Timeout(time.Millisecond)
				g.Get("/std", dunlin.FromStd(http.NotFoundHandler()))
				g.Post("/large", func(r *dunlin.Request) dunlin.Response {
					if _, err := r.Bytes(); err != nil {
						return dunlin.Error(err)
					}
					return dunlin.NoContent()
				}).MaxBody(1)
			}
			api.Get("/limited", func(*dunlin.Request) dunlin.Response { held.Pass(); return dunlin.NoContent() }).Limit(1)
		})
		defer close(release)
		defer AskConn(t, addr, Request("GET /api/limited")).Close()
		held.Await(t)
		defer close(held.Open)
		for _, c := range []struct {
			request string
			status  int
		}{
			{"GET /ok", 200}, {"GET /panic", 500}, {"GET /stream", 200}, {"GET /late", 503}, {"GET /std", 404}, {"POST /large", 413},
			{"GET /none", 404}, {"PUT /ok", 405}, {"OPTIONS /ok", 204}, {"GET //ok", 308},
			{"GET /api/ok", 200}, {"GET /api/panic", 500}, {"GET /api/stream", 200}, {"GET /api/late", 503}, {"GET /api/std", 404}, {"POST /api/large", 413},
			{"GET /api/none", 404}, {"PUT /api/ok", 405}, {"OPTIONS /api/ok", 204}, {"GET /api//ok", 308}, {"GET /api/limited", 503},
		} {
			method, path, _ := strings.Cut(c.request, " ")
			all, some := ofApp.count(c.status), ofGroup.count(c.status)
			req, err := http.NewRequest(method, "http://"+addr+path, strings.NewReader(map[string]string{"POST": "too long"}[method]))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatalf("%s: %v", c.request, err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Errorf("%s: %v", c.request, err)
			}
			resp.Body.Close()
			names, origin, more := "[app]", "", 0
			if strings.HasPrefix(path, "/api") {
				names, origin, more = "[group app]", "*", 1
			}
			h := resp.Header
			got := fmt.Sprintln(resp.StatusCode, h["X-Names"], h["Access-Control-Allow-Origin"], len(h["X-Request-Id"]), h["X-Frame-Options"])
			if want := fmt.Sprintln(c.status, names, strings.Fields(origin), 1, "[DENY]"); got != want {
				t.Errorf("%s: got %s, want %s", c.request, got, want)
			}
			Soon(t, "observers of "+c.request, func() bool {
				return ofApp.count(c.status) == all+1 && ofGroup.count(c.status) == some+more
			})
		}
	})
}

// Features see a request before all middleware, those of the app before those of a group, in the order of Install.
func TestFeatureOrder(t *testing.T) {
	var trail []string
	mark := func(name string) dunlin.Middleware {
		return func(next dunlin.Action) dunlin.Action {
			return func(r *dunlin.Request) dunlin.Response {
				trail = append(trail, name)
				return next(r)
			}
		}
	}
	app, _ := NewApp(dunlin.Config{})
	app.Get("/before", Text("ok")).Critical()
	app.Use(mark("a"))
	app.Install(dunlin.Hooks{Wrap: mark("1")}, dunlin.Hooks{Wrap: mark("2")})
	api := app.Group("/api", mark("b"))
	api.Install(dunlin.Hooks{Wrap: mark("3")})
	sub := api.Group("/sub")
	sub.Install(dunlin.Hooks{Wrap: mark("4")})
	same := api.Group("") // has the same prefix as api, which answers unmatched paths below it
	same.Install(dunlin.Hooks{Wrap: mark("5")})
	api.Get("/x", Text("ok"), mark("c"))
	sub.Get("/x", Text("ok"))
	same.Get("/same", Text("ok"), dunlin.Hooks{Wrap: mark("d")}.Middleware())
	app.Get("/x", Text("ok"))
	for target, want := range map[string]string{
		"/before": "", "/x": "1 2 a", "/none": "1 2 a", "/api/x": "1 2 3 a b c", "/api/same": "1 2 3 5 a b d", "/api/none": "1 2 3 a b",
		"/api/sub/x": "1 2 3 4 a b", "/api/sub/none": "1 2 3 4 a b",
	} {
		trail = nil
		Do(app, "GET", target)
		if got := strings.Join(trail, " "); got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
}
