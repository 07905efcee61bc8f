package dunlin_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// show returns an action that answers with its route and parameters.
func show(r *dunlin.Request) dunlin.Response {
	s := r.Method() + " " + r.Route()
	for name, value := range r.Params() {
		s += " " + name + "=" + value
	}
	return dunlin.Text(s)
}

func TestMethods(t *testing.T) {
	app, _ := newApp(dunlin.Config{})
	app.Get("/m", show)
	app.Post("/m", show)
	app.Put("/m", show)
	app.Patch("/m", show)
	app.Delete("/m", show)
	app.Head("/head", constant(dunlin.Empty().Header("X-Head", "own")))
	app.Options("/options", text("own"))
	app.Handle("GET,POST", "/set", show)
	app.Handle("*", "/any", show)
	app.Handle("PURGE", "/purge", show)
	for _, c := range []struct {
		method, target string
		status         int
		body, allow    string
	}{
		{"GET", "/m", 200, "GET /m", ""}, {"POST", "/m", 200, "POST /m", ""}, {"PUT", "/m", 200, "PUT /m", ""},
		{"PATCH", "/m", 200, "PATCH /m", ""}, {"DELETE", "/m", 200, "DELETE /m", ""}, {"HEAD", "/m", 200, "", ""},
		{"OPTIONS", "/m", 204, "", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"},
		{"TRACE", "/m", 405, "", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"},
		{"GET", "/head", 405, "", "HEAD, OPTIONS"}, {"HEAD", "/head", 200, "", ""},
		{"OPTIONS", "/options", 200, "own", ""}, {"GET", "/options", 405, "", "OPTIONS"},
		{"HEAD", "/set", 200, "", ""}, {"PUT", "/set", 405, "", "GET, HEAD, POST, OPTIONS"},
		{"ANYTHING", "/any", 200, "ANYTHING /any", ""}, {"OPTIONS", "/any", 200, "OPTIONS /any", ""},
		{"PURGE", "/purge", 200, "PURGE /purge", ""}, {"purge", "/purge", 405, "", "OPTIONS, PURGE"}, {"get", "/set", 405, "", "GET, HEAD, POST, OPTIONS"},
	} {
		w := do(app, c.method, c.target)
		if w.Code != c.status || w.Header().Get("Allow") != c.allow || (w.Code < 400 && w.Body.String() != c.body) {
			t.Errorf("%s %s: got %d, Allow %q, %s; want %d, %q, %s", c.method, c.target, w.Code, w.Header().Get("Allow"), w.Body, c.status, c.allow, c.body)
		}
	}
}

func TestAsterisk(t *testing.T) {
	app, _ := newApp(dunlin.Config{})
	app.Get("/{x...}", show)
	for method, status := range map[string]int{"OPTIONS": 204, "GET": 400, "POST": 400} {
		req := httptest.NewRequest("GET", "/", nil)
		req.Method, req.URL.Path, req.RequestURI = method, "*", "*"
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		if w.Code != status {
			t.Errorf("%s *: got %d, want %d", method, w.Code, status)
		}
	}
}

func TestGroups(t *testing.T) {
	app, _ := newApp(dunlin.Config{})
	api := app.Group("/api")
	v1 := api.Group("/v{major:int}")
	v1.Get("/users/{id}", show)
	v1.Get("", show)
	api.Get("/", show)
	api.Group("").Get("/plain", show)
	app.Mount("/std", http.StripPrefix("/std", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprintf(w, "%q", r.URL.Path) })))
	for target, want := range map[string]string{
		"/api/v1/users/7": "GET /api/v{major:int}/users/{id} major=1 id=7", "/api/v2": "GET /api/v{major:int} major=2",
		"/api/": "GET /api/", "/api/plain": "GET /api/plain", "/api": "404", "/api/vx": "404", "/users/7": "404",
		"/std": `""`, "/std/": `"/"`, "/std/a/b": `"/a/b"`, "/stdx": "404",
	} {
		w := do(app, "GET", target)
		if got := w.Body.String(); got != want && fmt.Sprint(w.Code) != want {
			t.Errorf("%s: got %d %s, want %s", target, w.Code, got, want)
		}
	}
}

// http.StripPrefix may pass an empty path to an App.
func TestAppBelowPrefix(t *testing.T) {
	app, _ := newApp(dunlin.Config{})
	app.Get("/", text("root"))
	app.Get("/{x}", show)
	h := http.StripPrefix("/app", app)
	for target, want := range map[string]string{"/app": "root", "/app/": "root", "/app/a%2Fb": "GET /{x} x=a/b"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		if w.Body.String() != want {
			t.Errorf("%s: got %d %s, want %s", target, w.Code, w.Body, want)
		}
	}
}

func TestHostsAndVersions(t *testing.T) {
	app, _ := newApp(dunlin.Config{})
	app.Host("{tenant}.example.com").Get("/", show)
	app.Host("api.example.com").Get("/", text("exact"))
	app.Get("/", text("any"))
	app.Version("v1").Get("/v", text("one"))
	app.Version("v2").Get("/v", text("two"))
	for _, c := range []struct{ target, accept, want string }{
		{"http://acme.example.com/", "", "GET / tenant=acme"}, {"http://ACME.example.com:81/", "", "GET / tenant="}, {"http://api.example.com:80/", "", "exact"},
		{"http://a.b.example.com/", "", "any"}, {"http://other/", "", "any"},
		{"http://h/v", "application/vnd.acme.v1+json", "one"}, {"http://h/v", "text/html, application/vnd.acme.v2+json;q=0.5", "two"},
		{"http://h/v", "application/vnd.acme.v3+json", `{"title":"Not Acceptable","status":406,"detail":"the path exists, but not in a version that Accept requests","versions":["v1","v2"]}`},
	} {
		var headers []string
		if c.accept != "" {
			headers = []string{"Accept", c.accept}
		}
		w := do(app, "GET", c.target, headers...)
		if got := w.Body.String(); !strings.HasPrefix(got, c.want) || w.Code != 200 && w.Code != 406 {
			t.Errorf("%s (%s): got %d %s, want %s", c.target, c.accept, w.Code, got, c.want)
		}
	}
}

// Requests for unclean paths match no route and are never redirected to another site.
func TestUncleanPaths(t *testing.T) {
	for _, c := range []struct{ target, location string }{
		{"//evil.example", "/evil.example"}, {"///evil.example/a", "/evil.example/a"}, {"/a//b?q=1&r=%2F", "/a/b?q=1&r=%2F"},
		{"/a/../b", "/b"}, {"/a/./b", "/a/b"}, {"/../../etc/passwd", "/etc/passwd"}, {"/a/..", "/"}, {"/a/.", "/a/"},
		{"/%2e%2e/b", "/b"}, {"/a/%2E/b", "/a/b"}, {"//%5Cevil.example", "/%5Cevil.example"}, {"//%2Fevil.example", "/%2Fevil.example"},
		{"/.//evil.example", "/evil.example"}, {"/x//%0D%0ASet-Cookie:a=b", "/x/%0D%0ASet-Cookie:a=b"}, {"//caf%C3%A9%20%25", "/caf%C3%A9%20%25"},
	} {
		for _, method := range []string{"GET", "POST"} {
			redirects, _ := newApp(dunlin.Config{})
			refuses, _ := newApp(dunlin.Config{UncleanPaths: dunlin.UncleanPathsRefuse})
			for _, app := range []*dunlin.App{redirects, refuses} {
				app.Handle("GET,POST", "/{x...}", show)
				app.Handle("GET,POST", "/", show)
			}
			request := func(app *dunlin.App) *httptest.ResponseRecorder {
				req := httptest.NewRequest(method, "/", nil)
				path, query, _ := strings.Cut(c.target, "?")
				u, err := url.Parse("http://h" + path)
				if err != nil {
					t.Fatal(err)
				}
				req.URL = u
				req.URL.RawQuery = query
				w := httptest.NewRecorder()
				app.ServeHTTP(w, req)
				return w
			}
			if w := request(redirects); w.Code != 308 || w.Header().Get("Location") != c.location {
				t.Errorf("%s: got %d with Location %q, want 308 with %q", c.target, w.Code, w.Header().Get("Location"), c.location)
			}
			if w := request(refuses); w.Code != 400 {
				t.Errorf("%s with UncleanPathsRefuse: got %d, want 400", c.target, w.Code)
			}
		}
	}
	app, _ := newApp(dunlin.Config{})
	app.Get("/a", show)
	for _, target := range []string{"//nowhere", "/b/../c", "/a/./"} {
		if w := do(app, "GET", "http://h"+target); w.Code != 404 {
			t.Errorf("%s: got %d, want 404", target, w.Code)
		}
	}
}

func TestRedirectSlash(t *testing.T) {
	for redirect, status := range map[bool]int{true: 308, false: 404} {
		app, _ := newApp(dunlin.Config{RedirectSlash: redirect})
		// Middleware reads parameters of requests that are redirected, too.
		app.Use(func(next dunlin.Action) dunlin.Action {
			return func(r *dunlin.Request) dunlin.Response {
				seen := show(r).Body()
				if r.Route() == "" && strings.Contains(string(seen), "=") {
					t.Errorf("parameters without a route: got %s", seen)
				}
				return next(r)
			}
		})
		app.Get("/bare", show)
		app.Get("/slash/", show)
		app.Get("/rest/{x...}", show)
		app.Get("/{a}/{b}/", show)
		for target, location := range map[string]string{"/bare/?q=1": "/bare?q=1", "/slash": "/slash/", "/x/y%2Fz": "/x/y%2Fz/"} {
			w := do(app, "GET", target)
			if w.Code != status || redirect && w.Header().Get("Location") != location {
				t.Errorf("RedirectSlash %v, %s: got %d with Location %q, want %d with %q", redirect, target, w.Code, w.Header().Get("Location"), status, location)
			}
		}
		if w := do(app, "GET", "/"); w.Code != 404 {
			t.Errorf("/: got %d", w.Code)
		}
	}
}

func TestConstraints(t *testing.T) {
	app, _ := newApp(dunlin.Config{})
	app.Constraint("word", `^\w+$`)
	app.ConstraintFunc("even", func(v string) bool { return len(v)%2 == 0 })
	app.Get("/w/{x:word}", show)
	app.Get("/e/{x:even}", show)
	app.Get("/i/{x:int}", show)
	app.Get("/r/{x:[a-c]+}", show)
	for target, status := range map[string]int{
		"/w/abc_1": 200, "/w/a-b": 404, "/e/ab": 200, "/e/a": 404, "/e/%C3%A9": 200, "/i/7": 200, "/i/x": 404, "/r/abc": 200, "/r/abd": 404,
	} {
		if w := do(app, "GET", target); w.Code != status {
			t.Errorf("%s: got %d, want %d", target, w.Code, status)
		}
	}
	wantContains(t, "panic", panicText(func() { app.Constraint("word", "x") }), "word", "route_test.go:")
	wantContains(t, "panic", panicText(func() { app.Constraint("open", "(") }), "open", "route_test.go:")
	wantContains(t, "panic", panicText(func() { app.ConstraintFunc("nil", nil) }), "nil function", "route_test.go:")
}

func TestURL(t *testing.T) {
	app, _ := newApp(dunlin.Config{})
	app.Get("/users/{id:int}/{file}.{ext}", show).Name("file")
	app.Host("{tenant}.example.com").Get("/home/{rest...}", show).Name("home")
	for _, c := range []struct {
		name   string
		values []any
		want   string
	}{
		{"file", []any{7, "a b/ü%", "txt"}, "/users/7/a%20b%2F%C3%BC%25.txt"},
		{"home", []any{"acme", "a/b c"}, "//acme.example.com/home/a/b%20c"},
	} {
		got, err := app.URL(c.name, c.values...)
		if err != nil || got != c.want {
			t.Errorf("URL(%q, %v): got %q, error %v, want %q", c.name, c.values, got, err, c.want)
		}
	}
	if w := do(app, "GET", "/users/7/a%20b%2F%C3%BC%25.txt"); w.Body.String() != "GET /users/{id:int}/{file}.{ext} id=7 file=a b/ü% ext=txt" {
		t.Errorf("request for the URL: got %s", w.Body)
	}
	for _, c := range []struct {
		name   string
		values []any
		why    string
	}{
		{"nobody", nil, `no route is named "nobody"`}, {"", nil, "no route"}, {"#0", []any{7, "a", "b"}, "no route"},
		{"file", []any{"x", "a", "b"}, "id"}, {"file", []any{7}, "1 values for 3 parameters"}, {"home", []any{"a/b", "x"}, "tenant"},
	} {
		if got, err := app.URL(c.name, c.values...); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("URL(%q, %v): got %q, error %v, want an error with %q", c.name, c.values, got, err, c.why)
		}
	}
}

func TestRoutesAndExplain(t *testing.T) {
	app, _ := newApp(dunlin.Config{})
	app.Get("/users/{id:int}", show).Name("user")
	app.Host("h.example").Version("v2").Handle("GET,PUT", "/x", show)
	app.Mount("/std", http.NotFoundHandler())
	var lines []string
	for _, r := range app.Routes() {
		line, place, _ := strings.Cut(r.String(), " at ")
		if !strings.Contains(place, "route_test.go:") || place != r.Place {
			t.Errorf("%s: got position %q", line, r.Place)
		}
		lines = append(lines, line)
	}
	if got, want := strings.Join(lines, "\n"), "GET /users/{id:int} «user» [id: int]\nGET,PUT h.example/x (version v2)\n* /std and below"; got != want {
		t.Errorf("routes:\n%s\nwant:\n%s", got, want)
	}
	wantContains(t, "explanation", app.Explain("GET", "/users/7"), "/users/{id:int}")
	wantContains(t, "explanation", app.Explain("GET", "/users/x?y"), "{id:int}", "not found")
	wantContains(t, "explanation", app.Explain("GET", "//h.example/x"), "h.example")
	wantContains(t, "explanation", app.Explain("GET", "/%zz"), "offset 1", "400")
	for _, odd := range []string{"", "//", "*", "//h", "?", "users"} {
		if app.Explain("GET", odd) == "" {
			t.Errorf("got no explanation for %q", odd)
		}
	}
}

// Programming errors panic at registration and name the source positions.
func TestRegistrationPanics(t *testing.T) {
	var noMiddleware dunlin.Middleware
	none := func(dunlin.Action) dunlin.Action { return nil }
	for name, c := range map[string]struct {
		register func(*dunlin.App)
		says     []string
	}{
		"nil action":            {func(a *dunlin.App) { a.Get("/x", nil) }, []string{"GET /x: nil action", "registered at"}},
		"nil in a group":        {func(a *dunlin.App) { a.Group("/g").Post("/x", nil) }, []string{"POST /g/x: nil action"}},
		"nil handler":           {func(a *dunlin.App) { a.Mount("/x", nil) }, []string{`Mount("/x"): nil handler`}},
		"nil FromStd":           {func(*dunlin.App) { dunlin.FromStd(nil) }, []string{"FromStd: nil handler"}},
		"nil NotFound":          {func(a *dunlin.App) { a.NotFound(nil) }, []string{"NotFound: nil action"}},
		"nil MethodNotAllowed":  {func(a *dunlin.App) { a.MethodNotAllowed(nil) }, []string{"MethodNotAllowed: nil action"}},
		"nil Use":               {func(a *dunlin.App) { a.Use(nil) }, []string{"Use: middleware 0 is nil"}},
		"nil in Group":          {func(a *dunlin.App) { a.Group("/g", noMiddleware) }, []string{"middleware 0 is nil"}},
		"nil route middleware":  {func(a *dunlin.App) { a.Get("/x", text(""), noMiddleware) }, []string{"GET /x", "middleware 0 is nil"}},
		"middleware makes nil":  {func(a *dunlin.App) { a.Get("/x", text(""), none) }, []string{"middleware 0 returned a nil action"}},
		"middleware of the app": {func(a *dunlin.App) { a.Use(none) }, []string{"middleware 0 returned a nil action"}},
		"duplicate":             {func(a *dunlin.App) { a.Get("/taken/{y}", text("")) }, []string{"/taken/{y}", "/taken/{x}", "route_test.go:"}},
		"duplicate by a group":  {func(a *dunlin.App) { a.Group("/taken").Get("/{x}", text("")) }, []string{"/taken/{x}"}},
		"no slash":              {func(a *dunlin.App) { a.Get("x", text("")) }, []string{`x`}},
		"empty pattern":         {func(a *dunlin.App) { a.Get("", text("")) }, nil},
		"open brace":            {func(a *dunlin.App) { a.Get("/{x", text("")) }, []string{"/{x"}},
		"unknown constraint":    {func(a *dunlin.App) { a.Get("/{x:(}", text("")) }, []string{"/{x:(}"}},
		"name twice":            {func(a *dunlin.App) { a.Get("/{x}/{x}", text("")) }, []string{"x"}},
		"empty methods":         {func(a *dunlin.App) { a.Handle("", "/x", text("")) }, nil},
		"small letters":         {func(a *dunlin.App) { a.Handle("get", "/x", text("")) }, []string{"method get must be written GET"}},
		"bad method":            {func(a *dunlin.App) { a.Handle("GET POST", "/x", text("")) }, []string{"GET POST"}},
		"group with a slash":    {func(a *dunlin.App) { a.Group("/g/") }, []string{`"/g/"`}},
		"group of a slash":      {func(a *dunlin.App) { a.Group("/") }, []string{`"/"`, `"" is none`}},
		"group without a slash": {func(a *dunlin.App) { a.Group("g") }, []string{`"g"`}},
		"no slash in a group":   {func(a *dunlin.App) { a.Group("/g").Get("x", text("")) }, []string{`"x"`, `"/g"`}},
		"host in a host":        {func(a *dunlin.App) { a.Host("a").Host("b") }, []string{`Host("b")`, `"a"`}},
		"bad version":           {func(a *dunlin.App) { a.Version("2").Get("/x", text("")) }, []string{`"2"`}},
		"taken name":            {func(a *dunlin.App) { a.Get("/x", text("")).Name("name") }, []string{`"name"`, "/taken/{x}"}},
		"empty name":            {func(a *dunlin.App) { a.Get("/x", text("")).Name("") }, []string{"empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			app, _ := newApp(dunlin.Config{})
			app.Get("/taken/{x}", text("taken")).Name("name").Critical()
			got := panicText(func() { c.register(app) })
			wantContains(t, "panic", got, append(c.says, "dunlin: ", "route_test.go:")...)
			if name == "duplicate" && strings.Count(got, "route_test.go:") != 2 {
				t.Errorf("got panic %s, want both positions in it", got)
			}
			// The app is unchanged and not locked.
			app.Get("/after", text("after"))
			if w := do(app, "GET", "/taken/1"); w.Body.String() != "taken" || do(app, "GET", "/after").Code != 200 {
				t.Errorf("request after the panic: got %d", w.Code)
			}
		})
	}
}

// Routes may be added while requests are answered. Run with -race.
func TestRoutesWhileServing(t *testing.T) {
	app, _ := newApp(dunlin.Config{})
	app.Get("/first", text("first"))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 200 {
				if do(app, "GET", "/first").Code != 200 {
					t.Error("a route is missing")
				}
				do(app, "GET", fmt.Sprintf("/r%d/x", i))
				_ = app.Routes()
				_, _ = app.URL("r7", "x")
			}
		})
	}
	for i := range 100 {
		app.Get(fmt.Sprintf("/r%d/{x}", i), show).Name(fmt.Sprintf("r%d", i))
		app.Group(fmt.Sprintf("/g%d", i)).Use(func(next dunlin.Action) dunlin.Action { return next })
	}
	wg.Wait()
	if w := do(app, "GET", "/r99/y"); w.Body.String() != "GET /r99/{x} x=y" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestRegistrationIsLogged(t *testing.T) {
	logs := new(logBuffer)
	app := dunlin.New(dunlin.Config{Logger: logs.Logger(-4)})
	app.Group("/g").Get("/x", text(""))
	wantLogged(t, logs, "route registered", "methods=GET", "pattern=/g/x", "route_test.go:")
}

func TestCustomFallbacks(t *testing.T) {
	app, _ := newApp(dunlin.Config{})
	app.Get("/x", text(""))
	app.NotFound(func(r *dunlin.Request) dunlin.Response { return dunlin.Text("no " + r.Path()).Status(404) })
	app.MethodNotAllowed(constant(dunlin.Text("not so").Status(405)))
	if w := do(app, "GET", "/y"); w.Code != 404 || w.Body.String() != "no /y" {
		t.Errorf("NotFound: got %d %s", w.Code, w.Body)
	}
	if w := do(app, "PUT", "/x"); w.Code != 405 || w.Body.String() != "not so" || w.Header().Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("MethodNotAllowed: got %d %v %s", w.Code, w.Header(), w.Body)
	}
	app.MethodNotAllowed(func(*dunlin.Request) dunlin.Response { return dunlin.Error(errors.New("secret")) })
	if w := do(app, "PUT", "/x"); w.Code != 500 || w.Body.String() != problem500Body {
		t.Errorf("failing MethodNotAllowed: got %d %s", w.Code, w.Body)
	}
}

func TestRouteInfo(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	if app.App() != app || app.Group("/x").App() != app {
		t.Error("App: got another app")
	}
	act := func(*dunlin.Request) dunlin.Response { return dunlin.Empty() }
	route := app.Host("{tenant}.example.com").WithTimeout(time.Second).Get("/f/{id:int}/{rest...}", act).MaxBody(7).Limit(3).LimitBy(nil, 2).Critical()
	i := route.Info()
	if i.Timeout != time.Second || i.MaxBody != 7 || !i.Limited || !i.LimitedBy || !i.Critical {
		t.Errorf("got info %+v", i)
	}
	if got, want := fmt.Sprint(i.Params), "[{tenant  true false} {id int false false} {rest  false true}]"; got != want {
		t.Errorf("got parameters %s, want %s", got, want)
	}
	if i := app.Get("/plain", act).Info(); i.MaxBody <= 0 || i.Limited || i.LimitedBy || i.Critical || i.About != nil {
		t.Errorf("plain route: got info %+v", i)
	}
}
