package dunlintest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

// failing is a test whose end by Fatalf is seen.
type failing struct {
	testing.TB
	text string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	panic(f.text)
}

func TestJSON(t *testing.T) {
	type note struct{ Text string }
	app := dunlin.New(dunlin.Config{})
	app.Post("/notes", func(r *dunlin.Request) dunlin.Response {
		if r.Header("Authorization") != "Bearer x" {
			return dunlin.Error(&dunlin.ProblemDetails{Status: http.StatusUnauthorized})
		}
		in, err := dunlin.Decode[note](r)
		if err != nil {
			return dunlin.Error(err)
		}
		in.Text += r.Query("more")
		return dunlin.JSON(in)
	})
	app.Get("/none", func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() })
	app.Get("/text", func(*dunlin.Request) dunlin.Response { return dunlin.Text("plain") })
	signIn := func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }

	var out note
	if status := dunlintest.JSON(t, app, "POST", "/notes?more=!", note{"hi"}, &out, signIn); status != http.StatusOK || out.Text != "hi!" {
		t.Errorf("got %d %v", status, out)
	}
	var problem struct{ Title string }
	if status := dunlintest.JSON(t, app, "POST", "https://notes.example/notes", note{"hi"}, &problem); status != http.StatusUnauthorized || problem.Title != "Unauthorized" {
		t.Errorf("got %d %v", status, problem)
	}
	if status := dunlintest.JSON(t, app, "GET", "/none", nil, &out); status != http.StatusNoContent {
		t.Errorf("got %d", status)
	}
	if status := dunlintest.JSON(t, app, "GET", "/text", nil, nil); status != http.StatusOK {
		t.Errorf("got %d", status)
	}
	f := &failing{TB: t}
	func() {
		defer func() { _ = recover() }()
		dunlintest.JSON(f, app, "GET", "/text", nil, &out)
	}()
	if !strings.Contains(f.text, "decode the answer 200 of GET /text") {
		t.Errorf("answer other than JSON: got failure %q", f.text)
	}
}
