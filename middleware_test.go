package dunlin_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// mark returns middleware that records its name before and after the action.
func mark(trail *[]string, name string) dunlin.Middleware {
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			*trail = append(*trail, name)
			resp := next(r)
			*trail = append(*trail, fmt.Sprintf("%s:%d", name, resp.StatusCode()))
			return resp
		}
	}
}

func TestMiddlewareOrder(t *testing.T) {
	var trail []string
	app, _ := newApp(dunlin.Config{RedirectSlash: true})
	app.Get("/before", text("")).Critical() // registered before any Use
	app.Use(mark(&trail, "a"), mark(&trail, "b"))
	group := app.Group("/g", mark(&trail, "c"))
	app.Use(mark(&trail, "late"))
	group.Use(mark(&trail, "d"))
	sub := group.Group("/s", mark(&trail, "e"))
	group.Use(mark(&trail, "f"))
	sub.Get("/x", text(""), mark(&trail, "g"), mark(&trail, "h"))
	group.Get("/x", constant(dunlin.NoContent()))
	app.Get("/x", text(""))
	app.Mount("/std", http.NotFoundHandler(), mark(&trail, "m"))
	for _, c := range []struct{ method, target, want string }{
		{"GET", "/before", ""},
		{"GET", "/g/s/x", "a b c d e g h h:200 g:200 e:200 d:200 c:200 b:200 a:200"},
		{"GET", "/g/x", "a b c d f f:204 d:204 c:204 b:204 a:204"},
		{"GET", "/x", "a b late late:200 b:200 a:200"},
		{"GET", "/nowhere", "a b late late:404 b:404 a:404"},
		{"PUT", "/g/x", "a b late late:405 b:405 a:405"},
		{"OPTIONS", "/x", "a b late late:204 b:204 a:204"},
		{"GET", "/x/", "a b late late:308 b:308 a:308"},
		{"GET", "/std/x", "a b late m m:404 late:404 b:404 a:404"},
	} {
		trail = nil
		do(app, c.method, c.target)
		if got := strings.Join(trail, " "); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.method, c.target, got, c.want)
		}
	}
}

// A route that is registered before Use would lack the middleware, so Use panics, even if the route belongs to another group.
func TestUseAfterRoutes(t *testing.T) {
	none := func(next dunlin.Action) dunlin.Action { return next }
	for name, register := range map[string]func(app *dunlin.App, api *dunlin.Group){
		"app":      func(app *dunlin.App, _ *dunlin.Group) { app.Get("/x", text("")) },
		"group":    func(_ *dunlin.App, api *dunlin.Group) { api.Get("/x", text("")) },
		"host":     func(app *dunlin.App, _ *dunlin.Group) { app.Host("example.com").Get("/x", text("")) },
		"settings": func(app *dunlin.App, _ *dunlin.Group) { app.WithMaxBody(7).Get("/x", text("")) },
		"second":   func(app *dunlin.App, _ *dunlin.Group) { app.Get("/y", text("")).Critical(); app.Get("/x", text("")) },
	} {
		app, _ := newApp(dunlin.Config{})
		api := app.Group("/api")
		register(app, api)
		_, _, line, _ := runtime.Caller(0)
		got := panicText(func() { app.Use(none) })
		wantContains(t, name, got, "Use must come before", "/x is registered at", fmt.Sprintf("Use called at %s:%d", thisFile(t), line+1))
		if strings.Count(got, "middleware_test.go:") != 2 {
			t.Errorf("%s: got panic %q, want both positions in it", name, got)
		}
		if text := panicText(func() { app.Group("/other").Use(none) }); text != "" {
			t.Errorf("%s: group without routes: got panic %s", name, text)
		}
		if text := panicText(func() { api.Use(none) }); (text == "") != (name != "group") {
			t.Errorf("%s: Use of the group: got panic %q", name, text)
		}
	}
	app, _ := newApp(dunlin.Config{})
	app.Get("/ready", text("")).Critical()
	if text := panicText(func() { app.Use(none); app.Use() }); text != "" {
		t.Errorf("after a critical route: got panic %s", text)
	}
}

// thisFile returns the path of this file.
func thisFile(t *testing.T) string {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		t.Fatal("runtime.Caller failed")
	}
	return file
}

// Middleware wraps actions at registration and not for each request. This includes redirects.
func TestMiddlewareWrapsOnce(t *testing.T) {
	wraps := 0
	app, _ := newApp(dunlin.Config{RedirectSlash: true})
	app.Use(func(next dunlin.Action) dunlin.Action {
		wraps++
		return next
	})
	app.Get("/x", text(""))
	before := wraps
	for _, target := range []string{"/x", "/x/", "http://h//x", "/nowhere"} {
		do(app, "GET", target)
		do(app, "PUT", target)
		do(app, "OPTIONS", target)
	}
	if wraps != before {
		t.Errorf("got %d wrapped actions during requests, want 0", wraps-before)
	}
}

// Middleware may list the app's routes while it wraps an action.
func TestMiddlewareQueriesRoutes(t *testing.T) {
	app, _ := newApp(dunlin.Config{})
	routes := -1
	app.Get("/x", text(""))
	app.Get("/y", text(""), func(next dunlin.Action) dunlin.Action {
		routes = len(app.Routes())
		return next
	})
	if routes != 1 {
		t.Errorf("got %d routes, want 1", routes)
	}
}

// Middleware of the app may register routes while it wraps the app's own answers. It must not add middleware to the app then.
func TestMiddlewareRegisters(t *testing.T) {
	app, _ := newApp(dunlin.Config{})
	var once sync.Once
	app.Use(func(next dunlin.Action) dunlin.Action {
		once.Do(func() { app.Get("/mine", text("mine")) })
		return next
	})
	if w := do(app, "GET", "/mine"); w.Body.String() != "mine" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}

	app, _ = newApp(dunlin.Config{})
	again := func(next dunlin.Action) dunlin.Action {
		app.NotFound(text("changed"))
		return next
	}
	wantContains(t, "the panic", panicText(func() { app.Use(again) }), "changes the app", "middleware_test.go")
}

func TestMiddlewareReplaces(t *testing.T) {
	app, logs := newApp(dunlin.Config{})
	app.Use(func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			switch resp := next(r); {
			case r.Query("deny") != "":
				return dunlin.Problem(&dunlin.ProblemDetails{Status: 403})
			case r.Query("twice") != "":
				return next(r).Header("X-Twice", "1")
			default:
				return resp.Header("X-Len", fmt.Sprint(resp.Len())).Header("X-Body", string(resp.Body()))
			}
		}
	})
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.JSON("body") })
	if w := do(app, "GET", "/"); w.Header().Get("X-Len") != "6" || w.Header().Get("X-Body") != `"body"` || w.Body.String() != `"body"` {
		t.Errorf("got %v %s", w.Header(), w.Body)
	}
	if w := do(app, "GET", "/?deny=1"); w.Code != 403 {
		t.Errorf("denied: got %d", w.Code)
	}
	if w := do(app, "GET", "/?twice=1"); w.Header().Get("X-Twice") != "1" || w.Body.String() != `"body"` {
		t.Errorf("second request: got %v %s", w.Header(), w.Body)
	}
	wantLacks(t, "log", logs.String(), "level=")
}

func TestPanics(t *testing.T) {
	for name, v := range map[string]any{"string": "secret", "error": fmt.Errorf("secret"), "slice": []int{1}, "struct": struct{ f func() }{}} {
		app, logs := newApp(dunlin.Config{})
		app.Use(func(next dunlin.Action) dunlin.Action {
			return func(r *dunlin.Request) dunlin.Response { return next(r) }
		})
		app.Get("/things/{id}", func(*dunlin.Request) dunlin.Response { panic(v) })
		w := do(app, "GET", "/things/7")
		if w.Code != 500 || w.Body.String() != problem500Body {
			t.Errorf("%s: got %d %s", name, w.Code, w.Body)
		}
		wantLogged(t, logs, "panic in an action", "route=/things/{id}", "path=/things/7", "middleware_test.go", "id=")
		if w := do(app, "GET", "/nowhere"); w.Code != 404 {
			t.Errorf("request after the panic: got %d", w.Code)
		}
	}
}

func TestRecover(t *testing.T) {
	for name, c := range map[string]struct {
		recover func(*dunlin.Request, any) dunlin.Response
		status  int
		body    string
		logs    []string
	}{
		"answers": {func(r *dunlin.Request, v any) dunlin.Response {
			return dunlin.Text(fmt.Sprint(r.Path(), v)).Status(503)
		}, 503, "/oops", []string{"panic in an action"}},
		"panics":        {func(*dunlin.Request, any) dunlin.Response { panic("again") }, 500, problem500Body, []string{"panic=oops", "panic in the function given to Recover", "panic=again"}},
		"zero response": {func(*dunlin.Request, any) dunlin.Response { return dunlin.Response{} }, 500, problem500Body, []string{"panic=oops", "zero Response"}},
		"none":          {nil, 500, problem500Body, []string{"panic=oops"}},
	} {
		t.Run(name, func(t *testing.T) {
			app, logs := newApp(dunlin.Config{})
			app.Recover(c.recover)
			app.Get("/", func(*dunlin.Request) dunlin.Response { panic("oops") })
			if w := do(app, "GET", "/"); w.Code != c.status || w.Body.String() != c.body {
				t.Errorf("got %d %s, want %d %s", w.Code, w.Body, c.status, c.body)
			}
			wantLogged(t, logs, c.logs...)
		})
	}
}

// http.ErrAbortHandler is passed on, so the server drops the connection.
func TestAbort(t *testing.T) {
	app, logs := newApp(dunlin.Config{})
	app.Recover(func(*dunlin.Request, any) dunlin.Response { t.Error("Recover was called"); return dunlin.Empty() })
	app.Get("/", func(*dunlin.Request) dunlin.Response { panic(http.ErrAbortHandler) })
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("ServeHTTP: got panic %v", v)
		}
		wantLacks(t, "log", logs.String(), "level=")
	}()
	do(app, "GET", "/")
}
