package suite

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

// Decoded values that take many times the memory of their text are charged to the request until it ends.
func TestDecodedValuesAreCharged(t *testing.T) {
	type wide struct {
		Text [16]string `json:"text,omitempty"`
	}
	type input struct{ Body []wide }
	type anything struct{ Body []any }
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var app *dunlin.App
		addr, _ := Start(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxMemoryPerConnection: 512 << 10}}, func(a *dunlin.App) {
			app = a
			a.Post("/any", func(r *dunlin.Request) dunlin.Response {
				if _, err := dunlin.Decode[any](r); err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Text(fmt.Sprint(app.Stats().Memory.HeldFor["body"] > 100<<10))
			})
			typed.Post(a, "/wide", func(*dunlin.Request, input) (typed.None, error) { return typed.None{}, nil })
			typed.Post(a, "/bag", func(*dunlin.Request, anything) (typed.None, error) { return typed.None{}, nil })
		})
		post := func(path, body string) (status int, text string) {
			conn := Dial(t, addr)
			Send(t, conn, Request("POST "+path, "Content-Type: application/json", "", body))
			return readWhole(t, conn)
		}
		objects := func(n int) string { return "[" + strings.Repeat(`{"a":1},`, n) + "1]" }
		if status, text := post("/any", objects(800)); status != http.StatusOK || text != "true" && !noNetwork(t) {
			t.Errorf("values with room: got %d %s", status, text)
		}
		for path, body := range map[string]string{"/any": objects(5000), "/bag": objects(5000), "/wide": "[" + strings.Repeat("{},", 10_000) + "{}]"} {
			if status, text := post(path, body); status != http.StatusRequestEntityTooLarge || !strings.Contains(text, "the decoded values of the request body are larger than the 524288 bytes") {
				t.Errorf("%s without room: got %d %s", path, status, text)
			}
			if status, text := post(path, "[{}]"); status >= 300 {
				t.Errorf("%s, a small body: got %d %s", path, status, text)
			}
		}
		Soon(t, "nothing is held", func() bool { return app.Stats().Memory.Held == 0 })
	})
}

// A parsed form is charged like its body.
func TestParsedFormsAreCharged(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		var app *dunlin.App
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(a *dunlin.App) {
			app = a
			a.Post("/form", func(r *dunlin.Request) dunlin.Response {
				if _, err := r.Form(); err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Text(fmt.Sprint(app.Stats().Memory.HeldFor["body"] >= 3*200_000))
			})
		})
		conn := Dial(t, addr)
		Send(t, conn, Request("POST /form", "Content-Type: application/x-www-form-urlencoded", "", url.Values{"a": {strings.Repeat("x", 200_000)}}.Encode()))
		if status, text := readWhole(t, conn); status != http.StatusOK || text != "true" && !noNetwork(t) {
			t.Errorf("a form: got %d %s", status, text)
		}
		Soon(t, "nothing is held", func() bool { return app.Stats().Memory.Held == 0 })
	})
}

// noNetwork reports whether a test runs without a network, where Stats does not report held memory.
func noNetwork(t *testing.T) bool { return strings.HasSuffix(t.Name(), "/memory") }
