package pages

import (
	"crypto/rand"
	"embed"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"os"
	"testing"

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
