package typed_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

// serveOn serves an app on an engine and returns its address.
func serveOn(t *testing.T, engine dunlin.Engine, register func(*dunlin.App)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	app := dunlin.New(dunlin.Config{Engine: engine, Logger: slog.New(slog.DiscardHandler)})
	register(app)
	served := make(chan error, 1)
	go func() { served <- app.Serve(ln) }()
	t.Cleanup(func() {
		if err := app.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		<-served
	})
	return "http://" + ln.Addr().String()
}

// Both engines give the same answers.
func TestEngines(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the loop engine needs Linux")
	}
	register := func(app *dunlin.App) {
		typed.Post(app, "/orders", func(_ *dunlin.Request, in takeOrder) (order, error) { return in.Body, nil })
		typed.Get(app, "/things/{id:int}/{rest...}", func(_ *dunlin.Request, in everyParam) (map[string]any, error) {
			return map[string]any{"id": in.ID, "rest": in.Rest, "tags": in.Tags, "limit": in.Limit, "theme": in.Theme, "list": in.Accept}, nil
		})
		typed.Post(app, "/files", func(_ *dunlin.Request, in upload) (string, error) { return in.Name + string(in.Avatar.Data), nil })
		typed.Post(app, "/parts", func(_ *dunlin.Request, in struct{ Body typed.Parts }) (int, error) {
			n := 0
			for part, err := range in.Body.All() {
				if err != nil {
					return 0, err
				}
				size, err := io.Copy(io.Discard, part)
				if err != nil {
					return 0, err
				}
				n += int(size)
			}
			return n, nil
		})
		give(app, "/fault", typed.None{}, taken.With("by you")).Faults(taken)
		give(app, "/lines", typed.Lines[int](func(yield func(int, error) bool) {
			for i := 0; i < 3000 && yield(i, nil); i++ {
			}
		}), nil)
		give(app, "/seq", typed.Seq[item](func(yield func(item, error) bool) {
			for i := 0; i < 3000 && yield(item{ID: i}, nil); i++ {
			}
		}), nil)
		typed.Post(app, "/small", func(*dunlin.Request, takeOrder) (typed.None, error) { return typed.None{}, nil }).Route().MaxBody(10)
	}
	kind, body := form(t, "name=Ann", "avatar@a.png;image/png="+pngSignature)
	bigKind, big := form(t, "a="+strings.Repeat("x", 300_000), "b@f;a/b="+strings.Repeat("y", 100_000))
	const json = "application/json"
	var first []string
	for _, engine := range []dunlin.Engine{dunlin.EngineStd, dunlin.EngineLoop} {
		base := serveOn(t, engine, register)
		for i, c := range []struct{ method, path, kind, body string }{
			{"POST", "/orders", json, `{"name":"n","count":2,"lines":[{"city":"x"}],"any":[1,{"a":"b"}],"mail":null}`},
			{"POST", "/orders", json, `{"name":"","count":3,"lines":[{}],"x":1}`},
			{"POST", "/orders", json, `{"name":"n","count":2.0,"at":"2026-01-02T03:04:05Z"}`},
			{"POST", "/orders", json, `{"name":"n"`},
			{"POST", "/orders", json, ``},
			{"POST", "/orders", "text/plain", `x`},
			{"POST", "/orders", json, `{"name":"n","count":2,"any":"` + strings.Repeat("long ", 50_000) + `"}`},
			{"POST", "/small", json, `{"name":"n","count":2}`},
			{"GET", "/things/7/a%2Fb/c?tag=aa&tag=b%26&limit=7", "", ""},
			{"GET", "/things/7/?limit=0&dry=x", "", ""},
			{"GET", "/things/x/", "", ""},
			{"POST", "/files", kind, body},
			{"POST", "/files", kind, body[:40]},
			{"POST", "/parts", bigKind, big},
			{"GET", "/fault", "", ""},
			{"GET", "/lines", "", ""},
			{"GET", "/seq", "", ""},
		} {
			r, err := http.NewRequest(c.method, base+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if c.kind != "" {
				r.Header.Set("Content-Type", c.kind)
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatalf("%v: %s %s: %v", engine, c.method, c.path, err)
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			line := resp.Status + " " + resp.Header.Get("Content-Type") + " " + string(got)
			if engine == dunlin.EngineStd {
				first = append(first, line)
			} else if first[i] != line {
				t.Errorf("%s %s: different answers\nstd:  %.300s\nloop: got %.300s", c.method, c.path, first[i], line)
			}
			if resp.StatusCode == 500 {
				t.Errorf("%v: %s %s: got %s", engine, c.method, c.path, line)
			}
		}
		http.DefaultClient.CloseIdleConnections()
	}
}
