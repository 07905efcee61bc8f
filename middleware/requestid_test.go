package middleware_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

func TestRequestID(t *testing.T) {
	app := newApp(func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.ID()) }, middleware.RequestID("X-Request-ID"))
	for name, test := range map[string]struct {
		sent  string
		taken bool
	}{
		"a uuid":             {"0b7f7fa2-8a3c-4a2e-9f36-4e1b1c0a7f55", true},
		"one byte":           {"x", true},
		"the longest":        {strings.Repeat("a", 128), true},
		"every visible byte": {`!"#$%&'()*+,-./09:;<=>?@AZ[\]^_az{|}~`, true},
		"none":               {"", false},
		"too long":           {strings.Repeat("a", 129), false},
		"a space":            {"a b", false},
		"a tab":              {"a\tb", false},
		"a line break":       {"a\r\nb", false},
		"a control byte":     {"a\x7f", false},
		"not ASCII":          {"naïve", false},
	} {
		w := send(app, "GET", "X-Request-ID", test.sent)
		id := w.Header().Get("X-Request-ID")
		if id == "" || id != w.Body.String() {
			t.Errorf("%s: the header says %q, the action saw %q: want the same ID", name, id, w.Body)
		}
		if taken := id == test.sent; taken != test.taken {
			t.Errorf("%s: sent %q, got %q: taken over is %v, want %v", name, test.sent, id, taken, test.taken)
		}
	}
}

func TestRequestIDsDiffer(t *testing.T) {
	app := newApp(text("hello"), middleware.RequestID("X-Request-ID"))
	first, second := send(app, "GET").Header().Get("X-Request-ID"), send(app, "GET").Header().Get("X-Request-ID")
	if first == "" || first == second {
		t.Errorf("two requests have the IDs %q and %q: want two different ones", first, second)
	}
}

func TestRequestIDKeepsTheActions(t *testing.T) {
	app := newApp(func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello").Header("X-Trace", "mine") },
		middleware.RequestID("x-trace"))
	w := send(app, "GET", "X-Trace", "theirs")
	if got := w.Header().Values("X-Trace"); len(got) != 1 || got[0] != "mine" {
		t.Errorf("X-Trace is %q, want the action's own", got)
	}
}

func TestRequestIDBadHeader(t *testing.T) {
	for _, name := range []string{"", "X Request", "X-Request-ID:", "Content-Length"} {
		mustPanic(t, fmt.Sprintf("RequestID(%q)", name), func() { middleware.RequestID(name) })
	}
}

func ExampleRequestID() {
	app := dunlin.New(dunlin.Config{})
	app.Use(middleware.RequestID("X-Request-ID"))
	app.Get("/", func(r *dunlin.Request) dunlin.Response { return dunlin.Text("this is " + r.ID()) })

	req := httptest.NewRequest("GET", "/", nil)
	req.Header.Set("X-Request-ID", "order-7-try-2")
	w := httptest.NewRecorder()
	app.ServeHTTP(w, req)
	fmt.Println(w.Body)
	fmt.Println(w.Header().Get("X-Request-ID"))
	// Output:
	// this is order-7-try-2
	// order-7-try-2
}
