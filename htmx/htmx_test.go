package htmx_test

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/htmx"
)

func ask(act dunlin.Action, headers map[string]string) *httptest.ResponseRecorder {
	app := dunlin.New(dunlin.Config{})
	app.Get("/", act)
	r := httptest.NewRequest("GET", "/", nil)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	app.ServeHTTP(w, r)
	return w
}

func Example() {
	show := func(r *dunlin.Request) dunlin.Response {
		if htmx.Partial(r) {
			return htmx.Vary(htmx.Trigger(dunlin.HTML("<li>Tea</li>"), htmx.Event{Name: "itemAdded", Detail: 7}))
		}
		return htmx.Vary(dunlin.HTML("<!DOCTYPE html><ul><li>Tea</li></ul>"))
	}
	w := ask(show, map[string]string{"HX-Request": "true"})
	fmt.Println(w.Header().Get("HX-Trigger"), w.Body)
	fmt.Println(ask(show, nil).Body)
	// Output:
	// {"itemAdded":7} <li>Tea</li>
	// <!DOCTYPE html><ul><li>Tea</li></ul>
}

func TestRequestHeaders(t *testing.T) {
	for _, c := range []struct {
		header, value string
		read          func(*dunlin.Request) string
	}{
		{"HX-Current-URL", "https://example.com/a?b=c%20d", htmx.CurrentURL},
		{"HX-Prompt", "yes", htmx.Prompt},
		{"HX-Target", "list", htmx.Target},
		{"HX-Trigger", "button-1", htmx.TriggerID},
		{"HX-Trigger-Name", "save", htmx.TriggerName},
	} {
		read := func(r *dunlin.Request) dunlin.Response { return dunlin.Text(c.read(r)) }
		if got := ask(read, map[string]string{c.header: c.value}).Body.String(); got != c.value {
			t.Errorf("%s: got %q", c.header, got)
		}
		if got := ask(read, map[string]string{c.header: "%C3%A4+b", c.header + "-URI-AutoEncoded": "true"}).Body.String(); got != "ä+b" {
			t.Errorf("%s, encoded: got %q", c.header, got)
		}
		if got := ask(read, nil).Body.String(); got != "" {
			t.Errorf("%s is absent: got %q", c.header, got)
		}
	}
	for _, c := range []struct {
		headers map[string]string
		want    string // Is, Partial, Boosted, HistoryRestore
	}{
		{nil, "false false false false"},
		{map[string]string{"HX-Request": "true"}, "true true false false"},
		{map[string]string{"HX-Request": "true", "HX-Boosted": "true"}, "true false true false"},
		{map[string]string{"HX-Request": "true", "HX-History-Restore-Request": "true"}, "true false false true"},
	} {
		got := ask(func(r *dunlin.Request) dunlin.Response {
			return dunlin.Text(fmt.Sprint(htmx.Is(r), htmx.Partial(r), htmx.Boosted(r), htmx.HistoryRestore(r)))
		}, c.headers).Body.String()
		if got != c.want {
			t.Errorf("%v: got %s, want %s", c.headers, got, c.want)
		}
	}
}

func TestResponseHeaders(t *testing.T) {
	page := dunlin.HTML("<p>")
	for _, c := range []struct {
		header, want string
		resp         dunlin.Response
	}{
		{"HX-Redirect", "/login", htmx.Redirect("/login")},
		{"HX-Refresh", "true", htmx.Refresh()},
		{"HX-Location", `{"path":"/test"}`, htmx.Location{Path: "/test"}.Response()},
		{"HX-Location", `{"path":"/test","target":"#testdiv","values":{"a":1}}`, htmx.Location{Path: "/test", Target: "#testdiv", Values: map[string]any{"a": 1}}.Response()},
		{"HX-Push-Url", "/users/7", htmx.PushURL(page, "/users/7")},
		{"HX-Replace-Url", "false", htmx.ReplaceURL(page, "false")},
		{"HX-Reswap", "outerHTML swap:1s", htmx.Reswap(page, "outerHTML swap:1s")},
		{"HX-Retarget", "#errors", htmx.Retarget(page, "#errors")},
		{"HX-Reselect", "#row", htmx.Reselect(page, "#row")},
		{"HX-Trigger", "myEvent", htmx.Trigger(page, htmx.Event{Name: "myEvent"})},
		{"HX-Trigger", `{"event1":null,"event2":null}`, htmx.Trigger(page, htmx.Event{Name: "event1"}, htmx.Event{Name: "event2"})},
		{"HX-Trigger", `{"showMessage":{"level":"info","message":"Here Is A Message"}}`, htmx.Trigger(page, htmx.Event{Name: "showMessage", Detail: map[string]string{"level": "info", "message": "Here Is A Message"}})},
		{"HX-Trigger-After-Swap", `{"a,b":null}`, htmx.TriggerAfterSwap(page, htmx.Event{Name: "a,b"})},
		{"HX-Trigger-After-Settle", `{"say":"gr\u00fc\u00df \ud83d\ude00\n"}`, htmx.TriggerAfterSettle(page, htmx.Event{Name: "say", Detail: "grüß 😀\n"})},
		{"HX-Trigger", "", htmx.Trigger(page)},
		{"Vary", "HX-Request", htmx.Vary(page)},
		{"Content-Type", "text/html; charset=utf-8", htmx.Vary(htmx.Reswap(page, "none"))},
		{"Content-Type", "application/problem+json", htmx.Retarget(page, "#a\r\nSet-Cookie: b=c")},
		{"Content-Type", "application/problem+json", htmx.Trigger(page, htmx.Event{Name: "nan", Detail: math.NaN()})},
	} {
		w := ask(func(*dunlin.Request) dunlin.Response { return c.resp }, nil)
		if got := w.Header().Get(c.header); got != c.want {
			t.Errorf("%s: got %s, want %s", c.header, got, c.want)
		}
	}
	w := ask(func(*dunlin.Request) dunlin.Response {
		return htmx.Vary(page.Header("Vary", "Accept")).Status(htmx.StopPolling)
	}, nil)
	if w.Code != 286 || fmt.Sprint(w.Header()["Vary"]) != "[Accept HX-Request]" {
		t.Errorf("got %d %v", w.Code, w.Header())
	}
	if http.StatusText(w.Code) != "" {
		t.Error("got a body with status 286")
	}
}
