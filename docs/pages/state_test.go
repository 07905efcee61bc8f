package pages

import (
	"bytes"
	"crypto/rand"
	"embed"
	"errors"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
)

func sessionsOfClients(_ *testing.T, app *dunlin.App) {
	var st store.Store = store.NewMemory(store.MemoryConfig{})
	type account struct{ ID int64 }
	check := func(*dunlin.Request) (account, error) { return account{7}, nil }

	type visit struct {
		UserID int64
		Cart   []string
	}

	sessions := middleware.NewSessions[visit](middleware.SessionConfig{Store: st})
	app.Use(sessions.Middleware())

	app.Post("/login", dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) {
		user, err := check(r)
		if err != nil {
			return dunlin.Response{}, err
		}
		return dunlin.Redirect("/"), sessions.Login(r, func(v *visit) error { v.UserID = user.ID; return nil })
	}))

	newSecret, oldSecret := make([]byte, 32), make([]byte, 32)
	_, _ = rand.Read(newSecret) // never fails
	_, _ = rand.Read(oldSecret)
	keys := middleware.NewKeyRing(newSecret, oldSecret) // 32 random bytes each
	middleware.NewSessions[visit](middleware.SessionConfig{Keys: keys})
}

//go:embed dist
var dist embed.FS

func staticFiles(t *testing.T, app *dunlin.App) {
	register := func() error {
		files, err := fs.Sub(dist, "dist")
		if err != nil {
			return err
		}
		assets, err := middleware.Static(middleware.StaticConfig{FS: files, Fallback: "index.html"})
		if err != nil {
			return err
		}
		app.Get("/{path...}", assets) // for paths that no other route takes, whenever those are registered
		return nil
	}
	if err := register(); err != nil {
		t.Fatal(err)
	}
	browser := dunlintest.NewClient(app)
	for path, want := range map[string]int{"/": 200, "/app.4f3a09bc.js": 200, "/links/7": 200, "/none.js": 404} {
		req, _ := http.NewRequest("GET", "https://links.example"+path, nil)
		if path == "/links/7" {
			req.Header.Set("Sec-Fetch-Mode", "navigate")
		}
		resp, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

func templates(t *testing.T, app *dunlin.App) {
	pages := template.Must(template.New("hello").Parse("<h1>Hello, {{.}}!</h1>"))

	app.Get("/hello/{name}", func(r *dunlin.Request) dunlin.Response {
		name := r.Param("name")
		return dunlin.Stream("text/html; charset=utf-8", func(w io.Writer) error {
			return pages.ExecuteTemplate(w, "hello", name)
		})
	})

	app.Get("/none", func(*dunlin.Request) dunlin.Response {
		return dunlin.Stream("text/html; charset=utf-8", func(w io.Writer) error {
			return pages.ExecuteTemplate(w, "none", nil)
		})
	})
	for path, want := range map[string]int{"/hello/Ada": 200, "/none": 500} {
		resp, err := dunlintest.NewClient(app).Get("https://links.example" + path)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

func problemsAsPages(t *testing.T, app *dunlin.App) {
	var causes atomic.Int64
	app.OnAnswer(func(info *dunlin.AnswerInfo) {
		if info.Err() != nil && info.Err().Error() == "why" {
			causes.Add(1)
		}
	})
	pages := template.Must(template.New("problem").Parse("<h1>{{.}}</h1>"))

	forPeople := func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			resp := next(r)
			if resp.Get("Content-Type") != "application/problem+json" {
				return resp
			}
			resp = resp.AddHeader("Vary", "Accept")
			if !strings.Contains(r.Header("Accept"), "text/html") {
				return resp
			}
			var page bytes.Buffer
			if err := pages.ExecuteTemplate(&page, "problem", resp.StatusCode()); err != nil {
				return dunlin.Error(err)
			}
			return resp.WithBody(page.Bytes()).Header("Content-Type", "text/html; charset=utf-8")
		}
	}
	app.Use(forPeople) // in front of what refuses

	limit := middleware.RateLimit(middleware.Rate{Limit: 1, Window: time.Hour})
	app.Get("/limited", hello, limit)
	app.Get("/fails", func(*dunlin.Request) dunlin.Response { return dunlin.Error(errors.New("why")) })
	app.Get("/panics", func(*dunlin.Request) dunlin.Response { panic("why") })
	app.Get("/limited/too", dunlin.FromStd(http.NotFoundHandler()))
	client := dunlintest.NewClient(app)
	for _, c := range []struct {
		method, path, accept, body, header string
		status                             int
	}{
		{"GET", "/limited", "text/html", "hello", "", 200},
		{"GET", "/limited", "text/html", "<h1>429</h1>", "Retry-After", 429},
		{"GET", "/limited", "application/json", `"status":429`, "Retry-After", 429},
		{"GET", "/none", "text/html,*/*", "<h1>404</h1>", "Vary", 404},
		{"POST", "/fails", "text/html", "<h1>405</h1>", "Allow", 405},
		{"GET", "/fails", "text/html", "<h1>500</h1>", "", 500},
		{"GET", "/panics", "text/html", "<h1>500</h1>", "", 500},
		{"GET", "/limited/too", "text/html", "404 page not found", "", 404},
	} {
		req, _ := http.NewRequest(c.method, "https://links.example"+c.path, nil)
		req.Header.Set("Accept", c.accept)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != c.status || !strings.Contains(string(body), c.body) || c.header != "" && resp.Header.Get(c.header) == "" {
			t.Errorf("%s %s: %d %s %v", c.method, c.path, resp.StatusCode, body, resp.Header)
		}
	}
	if causes.Load() != 1 {
		t.Error("the cause of the 500 is lost")
	}
}

func ownState(t *testing.T, _ *dunlin.App) {
	t.Setenv("DUNLIN_STORE", "")
	open := func() error {
		st, err := store.Open(os.Getenv("DUNLIN_STORE")) // "" is memory
		if err != nil {
			return err
		}
		defer st.Close()
		return nil
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
}
