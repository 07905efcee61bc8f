package suite

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

type traceKey struct{}

// traced is middleware that gives a request a value, by a context that ends at once and is not derived from the request's.
func traced(next dunlin.Action) dunlin.Action {
	return func(r *dunlin.Request) dunlin.Response {
		ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), traceKey{}, "trace-7"), -time.Second)
		defer cancel()
		r.SetContext(ctx)
		return next(r)
	}
}

// shown describes the values of the request in a context.
func shown(ctx context.Context) string {
	_, limited := ctx.Deadline()
	_, served := ctx.Value(http.ServerContextKey).(*http.Server)
	return fmt.Sprintf("%v %v limited=%v served=%v", ctx.Value(traceKey{}), ctx.Err(), limited, served)
}

func TestSetContext(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		observed := make(chan any, 1)
		var late = make(chan struct{})
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Install(dunlin.Hooks{Observe: func(info *dunlin.AnswerInfo) { observed <- info.Context().Value(traceKey{}) }})
			app.Get("/before", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(shown(r.Context())) }).Critical()
			app.Use(func(next dunlin.Action) dunlin.Action {
				return func(r *dunlin.Request) dunlin.Response {
					if r.Std().Context().Value(traceKey{}) != nil || r.Context().Value(traceKey{}) != nil {
						t.Error("a value from the request before")
					}
					return next(r)
				}
			}, traced)
			app.Get("/action", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(shown(r.Context())) })
			app.Post("/std", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = fmt.Fprint(w, shown(r.Context()))
			})))
			app.Get("/again", func(r *dunlin.Request) dunlin.Response {
				r.SetContext(context.WithValue(r.Context(), stdKey{}, "more"))
				ctx := r.Std().Context()
				if ctx != r.Context() || ctx != r.Std().Context() {
					t.Error("Std and Context do not agree")
				}
				return dunlin.Text(fmt.Sprint(shown(ctx), " ", ctx.Value(stdKey{})))
			})
			app.Get("/events", func(r *dunlin.Request) dunlin.Response {
				return dunlin.SSE(func(e *dunlin.Events) error {
					return e.Send(dunlin.Event{Data: shown(r.Context())})
				})
			})
			app.Get("/limited", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(shown(r.Context())) }).Timeout(time.Hour)
			app.Get("/late", func(r *dunlin.Request) dunlin.Response {
				<-r.Context().Done()
				<-late
				return dunlin.Text("late")
			}).Timeout(10 * time.Millisecond)
			behind := app.Group("/behind")
			behind.UseStd(stdAuth)
			behind.Get("/std", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(shown(r.Context())) })
		})
		defer close(late)
		for path, want := range map[string]string{
			"GET /before":     "<nil> <nil> limited=false served=true",
			"GET /action":     "trace-7 <nil> limited=false served=true",
			"POST /std":       "trace-7 <nil> limited=false served=true",
			"GET /again":      "trace-7 <nil> limited=false served=true more",
			"GET /events":     "trace-7 <nil> limited=false served=true",
			"GET /limited":    "trace-7 <nil> limited=true served=true",
			"GET /behind/std": "trace-7 <nil> limited=false served=true",
			"GET /late":       "took too long",
		} {
			request := Request(path, "X-User: u")
			if strings.HasPrefix(path, "POST") {
				request = Request(path, "Transfer-Encoding: chunked", "", "3\r\nabc\r\n0\r\n\r\n")
			}
			br := bufio.NewReader(AskConn(t, addr, request))
			got, err := ReadAnswer(br, "GET")
			if err != nil || !strings.Contains(got, want) {
				t.Errorf("%s: %v\n%s\nwant %s", path, err, got, want)
			}
			value := any("trace-7")
			if path == "GET /before" {
				value = nil
			}
			if got := Await(t, "the observer", observed); got != value {
				t.Errorf("%s: the observer sees %v, want %v", path, got, value)
			}
		}
	})
}

// A disconnect of the client ends the context, regardless of the context given to SetContext.
func TestSetContextKeepsCancellation(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		running, ended := make(chan struct{}), make(chan error, 1)
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/", func(r *dunlin.Request) dunlin.Response {
				r.SetContext(context.WithValue(context.Background(), traceKey{}, 1))
				ctx, cancel := context.WithCancel(r.Context())
				defer cancel()
				close(running)
				<-ctx.Done()
				ended <- ctx.Err()
				return dunlin.NoContent()
			})
		})
		conn := AskConn(t, addr, Request("GET /"))
		Await(t, "the action", running)
		_ = conn.Close()
		if err := Await(t, "the end of the context", ended); err != context.Canceled {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestSetContextNil(t *testing.T) {
	app, _ := NewApp(dunlin.Config{})
	app.Get("/", func(r *dunlin.Request) dunlin.Response {
		var none context.Context
		WantContains(t, "the panic", PanicText(func() { r.SetContext(none) }), "SetContext: nil context")
		return dunlin.NoContent()
	})
	Do(app, "GET", "/")
}

// named is middleware that records that it ran.
func named(name string) dunlin.Middleware {
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response { return next(r).AddHeader("X-Through", name) }
	}
}

// OPTIONS is answered inside the middleware of the routes of the path.
func TestOptionsRunsMiddleware(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		std := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "std") })
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/plain", Text("plain")).Critical()
			app.Use(named("app"))
			app.Get("/app", Text("app"))
			api := app.Group("/api", named("api"))
			api.Get("/users/{id}", Text("user"), named("get"))
			api.Put("/users/{id}", Text("user"), named("put"))
			api.Get("/std", dunlin.FromStd(std))
			api.Options("/own", Text("own"))
			stdGroup := api.Group("/behind")
			stdGroup.UseStd(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Add("X-Through", "std")
					next.ServeHTTP(w, r)
				})
			})
			stdGroup.Post("/std", Text("behind"))
			api.Get("/limited", Text("limited")).Limit(1)
		})
		for _, c := range []struct{ path, asked, status, allow, through string }{
			{"/plain", "", "204", "GET, HEAD, OPTIONS", ""},
			{"/app", "", "204", "GET, HEAD, OPTIONS", "app"},
			{"/api/users/7", "", "204", "GET, HEAD, PUT, OPTIONS", "get api app"},
			{"/api/users/7", "PUT", "204", "GET, HEAD, PUT, OPTIONS", "put api app"},
			{"/api/users/7", "HEAD", "204", "GET, HEAD, PUT, OPTIONS", "get api app"},
			{"/api/users/7", "PATCH", "204", "GET, HEAD, PUT, OPTIONS", "get api app"},
			{"/api/std", "", "204", "GET, HEAD, OPTIONS", "api app"},
			{"/api/own", "", "200", "", "api app"},
			{"/api/behind/std", "", "204", "POST, OPTIONS", "std api app"},
			{"/api/limited", "", "204", "GET, HEAD, OPTIONS", "api app"},
			{"/api/nowhere", "", "404", "", "app"},
			{"*", "", "204", "", "app"},
		} {
			var headers []string
			if c.asked != "" {
				headers = []string{"Access-Control-Request-Method: " + c.asked}
			}
			br := bufio.NewReader(AskConn(t, addr, Request("OPTIONS "+c.path, headers...)))
			resp, err := http.ReadResponse(br, &http.Request{Method: "OPTIONS"})
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			through := strings.Join(resp.Header["X-Through"], " ")
			if got := fmt.Sprint(resp.StatusCode); got != c.status || resp.Header.Get("Allow") != c.allow || through != c.through {
				t.Errorf("OPTIONS %s for %q: %s, Allow %q, through %q; want %s, %q, %q",
					c.path, c.asked, got, resp.Header.Get("Allow"), through, c.status, c.allow, c.through)
			}
			// The connection is still in step, and the next request is not OPTIONS.
		}
	})
}
