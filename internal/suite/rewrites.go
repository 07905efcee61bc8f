package suite

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/dunlinhttp/dunlin"
)

// Rewritten paths are routed like their targets, with all settings of those routes, and only once.
func runRewrites(t *testing.T, engine dunlin.Engine) {
	addr, _ := Start(t, dunlin.Config{Engine: engine, RedirectSlash: true}, func(app *dunlin.App) {
		app.Get("/probe", Text("probe"))
		app.Rewrite("/old/{path...}", "/new/{path...}")
		app.Rewrite("/u/{name}/{id:int}", "/people/{id}/by/{name}")
		app.Rewrite("/a", "/b")
		app.Rewrite("/b", "/a") // a cycle if rewrites were repeated
		app.Rewrite("/std/{path...}", "/mounted/{path...}")
		app.Rewrite("/gone", "/nowhere")
		app.Rewrite("/back-door", "/secret")
		say := func(r *dunlin.Request) dunlin.Response {
			return dunlin.Text(fmt.Sprint(r.Route(), " ", r.Path(), " ", r.SentPath(), " ", r.Param("path"), " ", r.RawQuery()))
		}
		app.Handle("GET,POST", "/new/{path...}", say)
		app.Get("/old/{path...}", Text("never"))
		app.Get("/a", say)
		app.Get("/b", say)
		app.Get("/people/{id}/by/{name}", func(r *dunlin.Request) dunlin.Response {
			return dunlin.Text(r.Param("id") + " " + r.Param("name") + " " + r.Std().URL.String() + " " + r.Std().RequestURI)
		})
		app.Mount("/mounted", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = fmt.Fprint(w, r.URL.Path, " ", r.URL.RawPath, " ", r.RequestURI)
		}))
		app.Get("/slashed/{x}/", say)
		app.Rewrite("/s/{path...}", "/slashed/{path...}")
		app.Rewrite("/one", "/slashed/1")
		app.Get("/files/{path...}", dunlin.Files(fstest.MapFS{"docs/index.html": {Data: []byte("index")}, "page": {Data: []byte("page")}}))
		app.Rewrite("/f/{path...}", "/files/{path...}")
		app.Rewrite("/manual", "/files/docs")
		private := app.Group("", func(dunlin.Action) dunlin.Action {
			return func(*dunlin.Request) dunlin.Response { return dunlin.Text("who are you") }
		})
		private.Get("/secret", Text("told"))
	})
	for _, c := range []struct{ send, want string }{
		{Request("GET /old/x/y?q=1"), "/new/{path...} /new/x/y /old/x/y x/y q=1"},
		{Request("POST /old/"), "/new/{path...} /new/ /old/  "},
		{Request("GET /old/caf%C3%A9/a%2Fb%25"), "/new/{path...} /new/café/a%2Fb%25 /old/café/a%2Fb%25 café/a/b% "},
		{Request("GET /new/x"), "/new/{path...} /new/x /new/x x "},
		{Request("GET /a"), "/b /b /a  "},
		{Request("GET /b"), "/a /a /b  "},
		{Request("GET /u/ada/7?q"), "7 ada /people/7/by/ada?q /u/ada/7?q"},
		{Request("GET /u/a%2Fb/7"), "7 a/b /people/7/by/a%2Fb /u/a%2Fb/7"},
		{Request("GET /std/x%2Fy"), "/mounted/x/y /mounted/x%2Fy /std/x%2Fy"},
		{Request("GET /back-door"), "who are you"},
	} {
		if got := Exchange(t, addr, false, c.send)[0]; got != Plain(c.want) {
			t.Errorf("%q:\n%s\nwant:\n%s", c.send, got, Plain(c.want))
		}
	}
	// A redirect names a path of the client's namespace that leads to the target.
	for send, want := range map[string]string{
		Request("GET /s/a%2Fb?q=1"):  "/s/a%2Fb/?q=1",
		Request("GET /one"):          "/slashed/1/",
		Request("GET /f/docs?q"):     "/f/docs/?q",
		Request("GET /f/page/"):      "/f/page",
		Request("GET /manual"):       "/files/docs/",
		Request("GET /files/docs?q"): "./docs/?q",
	} {
		if got := Exchange(t, addr, false, send)[0]; !strings.Contains(got, " 308 ") || !strings.Contains(got, "\nLocation: "+want+"\n") {
			t.Errorf("%q:\n%s\nwant a redirect to %s", send, got, want)
		}
	}
	for send, want := range map[string]string{
		Request("GET /gone"):          "404",
		Request("GET /u/ada/x"):       "404",
		Request("GET /old/../secret"): "308",
		Request("PUT /old/x"):         "405",
	} {
		if got := Exchange(t, addr, false, send)[0]; !strings.Contains(strings.SplitN(got, "\n", 2)[0], want) {
			t.Errorf("%q:\n%s\nwant %s", send, got, want)
		}
	}
}
