package templates_test

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/templates"
)

func get(t testing.TB, app *dunlin.App, path string) (*http.Response, string) {
	resp, err := dunlintest.NewClient(app).Get("http://test.example" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func ExampleComponent() {
	pages := template.Must(template.New("hello").Parse(`<h1>Hello, {{.}}</h1>`))
	app := dunlin.New(dunlin.Config{})
	app.Get("/{name}", func(r *dunlin.Request) dunlin.Response {
		return dunlin.Render(r, templates.Component(pages, "hello", r.Param("name")))
	})
	resp, body := get(&testing.T{}, app, "/%3Cada%3E")
	fmt.Println(resp.Header.Get("Content-Type"))
	fmt.Println(body)
	// Output:
	// text/html; charset=utf-8
	// <h1>Hello, &lt;ada&gt;</h1>
}

// A component as templ generates them: it writes to the writer and has the context of the request.
type greeting string

var userKey = struct{ name string }{"user"}

func (g greeting) Render(ctx context.Context, w io.Writer) error {
	_, err := io.WriteString(w, string(g)+fmt.Sprint(ctx.Value(userKey)))
	return err
}

type broken struct{ err error }

func (b broken) Render(_ context.Context, w io.Writer) error {
	_, _ = io.WriteString(w, strings.Repeat("<p>half a page", 10_000))
	if b.err == nil {
		panic("broken component")
	}
	return b.err
}

type keeper struct{ w io.Writer }

func (k *keeper) Render(_ context.Context, w io.Writer) error {
	k.w = w
	_, err := w.Write([]byte("kept"))
	return err
}

func TestRender(t *testing.T) {
	kept := &keeper{}
	dunlintest.OnEngines(t, dunlin.Config{Logger: slog.New(slog.DiscardHandler)}, func(t *testing.T, app *dunlin.App) {
		app.Get("/greeting", func(r *dunlin.Request) dunlin.Response {
			r.SetContext(context.WithValue(context.Background(), userKey, "ada"))
			return dunlin.Render(r, greeting("hello ")).Status(201).Header("X-A", "b")
		})
		app.Get("/error", func(r *dunlin.Request) dunlin.Response { return dunlin.Render(r, broken{errors.New("no data")}) })
		app.Get("/problem", func(r *dunlin.Request) dunlin.Response {
			return dunlin.Render(r, broken{&dunlin.ProblemDetails{Status: 404}})
		})
		app.Get("/panic", func(r *dunlin.Request) dunlin.Response { return dunlin.Render(r, broken{}) })
		app.Get("/kept", func(r *dunlin.Request) dunlin.Response { return dunlin.Render(r, kept) })
		app.Get("/template", func(r *dunlin.Request) dunlin.Response {
			return dunlin.Render(r, templates.Component(template.Must(template.New("t").Parse(`<p>{{.A}}</p>{{.B.C}}`)), "", map[string]any{"A": 1}))
		})
		addr := "http://" + dunlintest.Serve(t, app)
		for path, want := range map[string]int{"/greeting": 201, "/error": 500, "/problem": 404, "/panic": 500, "/kept": 200, "/template": 200} {
			resp, err := http.Get(addr + path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.StatusCode != want {
				t.Errorf("%s: got %d, %v", path, resp.StatusCode, err)
			}
			page := resp.Header.Get("Content-Type") == "text/html; charset=utf-8"
			if page != (want < 400) || strings.Contains(string(body), "half a page") {
				t.Errorf("%s: %s: got %.100s", path, resp.Header.Get("Content-Type"), body)
			}
			if path == "/greeting" && (string(body) != "hello ada" || resp.Header.Get("X-A") != "b") {
				t.Errorf("got %s %v", body, resp.Header)
			}
		}
		if _, err := io.WriteString(kept.w, "late"); err == nil {
			t.Error("a component wrote to the body of another answer")
		}
	})
}
