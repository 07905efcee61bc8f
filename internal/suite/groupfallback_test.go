package suite

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// A group's NotFound answers requests below its prefix that match no route, inside the group's middleware.
func TestGroupFallback(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine, UncleanPaths: dunlin.UncleanPathsRefuse}, func(app *dunlin.App) {
			names := func(name string) dunlin.Middleware {
				return func(next dunlin.Action) dunlin.Action {
					return func(r *dunlin.Request) dunlin.Response { return next(r).AddHeader("X-Of", name+r.Param("org")) }
				}
			}
			says := func(what string) dunlin.Action {
				return func(r *dunlin.Request) dunlin.Response { return dunlin.Text(what + r.Param("org")).Status(404) }
			}
			app.Use(names("app"))
			api := app.Group("/api", names("api"))
			api.NotFound(says("api"))
			api.Use(names("later"))
			api.Get("/here", Text("here"))
			app.Version("v1").Group("/api").Get("/version", Text("one"))
			inner := api.Group("/inner", names("inner"))
			inner.MethodNotAllowed(func(r *dunlin.Request) dunlin.Response { return dunlin.Text("inner").Status(405) })
			inner.Get("/here", Text("here"))
			plain := app.Group("/plain", names("plain"))
			plain.Get("/here", Text("here"))
			org := app.Group("/orgs/{org}", names("org"))
			org.NotFound(says("org"))
			org.Get("/here", Text("here"))
			host := app.Host("{org}.example.com", names("host"))
			host.NotFound(says("host"))
			std := app.Group("/std")
			std.UseStd(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("X-Of", "std")
					next.ServeHTTP(w, r)
				})
			})
			std.NotFound(says("std"))
			app.NotFound(says("app"))
		})
		for _, c := range []struct{ request, host, want string }{
			{"GET /none", "h", "404 app of app"},
			{"GET /api/none", "h", "404 api of later, api, app"},
			{"GET /api", "h", "404 api of later, api, app"},
			{"GET /apis", "h", "404 app of app"},
			{"POST /api/here", "h", `405 {"title":"Method Not Allowed","status":405,"detail":"the path takes GET, HEAD, OPTIONS, not POST"} of later, api, app allows GET, HEAD, OPTIONS`},
			{"GET /api/version", "h", `406 {"title":"Not Acceptable","status":406,"detail":"the path exists, but not in a version that Accept requests","versions":["v1"]} of later, api, app`},
			{"GET /api//here", "h", `400 {"title":"Bad Request","status":400,"detail":"the path has an empty segment, or one that is «.» or «..»"} of later, api, app`},
			{"GET /api/inner/none", "h", "404 api of inner, later, api, app"},
			{"POST /api/inner/here", "h", "405 inner of inner, later, api, app allows GET, HEAD, OPTIONS"},
			{"GET /plain/none", "h", "404 app of app"},
			{"GET /orgs/acme/none", "h", "404 orgacme of orgacme, appacme"},
			{"POST /orgs/acme/here", "h", `405 {"title":"Method Not Allowed","status":405,"detail":"the path takes GET, HEAD, OPTIONS, not POST"} of orgacme, appacme allows GET, HEAD, OPTIONS`},
			{"GET /none", "acme.example.com", "404 hostacme of hostacme, appacme"},
			{"GET /orgs/acme/none", "other.example.com", "404 hostother of hostother, appother"},
			{"GET /std/none", "h", "404 std of std, app"},
		} {
			method, path, _ := strings.Cut(c.request, " ")
			resp, body := askStd(t, method, "http://"+addr+path, "", "Host", c.host, "Accept", "application/vnd.x.v9+json")
			got := resp.Status[:4] + body + " of " + strings.Join(resp.Header.Values("X-Of"), ", ")
			if allow := resp.Header.Get("Allow"); allow != "" {
				got += " allows " + allow
			}
			if got != c.want {
				t.Errorf("%s of %s: got %s, want %s", c.request, c.host, got, c.want)
			}
		}
	})
}

// Two groups cannot have a fallback for the same prefix. The app's constraints hold for prefixes, too.
func TestGroupFallbackRegistration(t *testing.T) {
	app, _ := NewApp(dunlin.Config{})
	app.Constraint("abc", "[abc]+")
	app.ConstraintFunc("short", func(value string) bool { return len(value) < 4 })
	own := func(*dunlin.Request) dunlin.Response { return dunlin.Text("own").Status(404) }
	app.Group("/x/{id:abc}").NotFound(own)
	app.Group("/y/{id:short}").NotFound(own)
	for path, want := range map[string]string{"/x/abc/none": "own", "/y/abc/none": "own", "/x/xyz/none": Problem404, "/y/long/none": Problem404} {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if !strings.HasSuffix(want, w.Body.String()) {
			t.Errorf("%s: got %s, want %s", path, w.Body, want)
		}
	}
	api := app.Group("/api")
	api.NotFound(own)
	api.NotFound(own) // a second time for the same group
	again := PanicText(func() { app.Group("/api").NotFound(own) })
	WantContains(t, "panic", again, "NotFound", "/api", "groupfallback_test.go")
	WantContains(t, "panic", PanicText(func() { api.MethodNotAllowed(nil) }), "MethodNotAllowed: nil action", "groupfallback_test.go")
	app.Get("/after", own) // the app is not locked yet
}
