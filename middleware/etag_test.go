package middleware_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

func TestETagOfBody(t *testing.T) {
	tagOf := func(method, body string) string {
		w := send(newApp(text(body), middleware.ETag()), method)
		if w.Code != 200 {
			t.Errorf("%s with body %q: got status %d, want 200", method, body, w.Code)
		}
		return w.Header().Get("ETag")
	}
	tag := tagOf("GET", "hello")
	if len(tag) != 24 || tag[0] != '"' || tag[23] != '"' || strings.Count(tag, `"`) != 2 {
		t.Errorf("got ETag %s, want 22 characters in quotes", tag)
	}
	if again := tagOf("GET", "hello"); again != tag {
		t.Errorf("got ETags %s and %s for the same body", tag, again)
	}
	if head := tagOf("HEAD", "hello"); head != tag {
		t.Errorf("got ETag %s for HEAD and %s for GET", head, tag)
	}
	if other := tagOf("GET", "hellp"); other == tag {
		t.Errorf("got ETag %s for two bodies", tag)
	}
}

func TestETagIfNoneMatch(t *testing.T) {
	strong := send(newApp(text("hello"), middleware.ETag()), "GET").Header().Get("ETag")
	given := func(tag string) dunlin.Action {
		return func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello").Header("ETag", tag) }
	}
	for _, test := range []struct {
		name string
		act  dunlin.Action
		sent []string // values of If-None-Match, one for each line
		want int
	}{
		{"the same", text("hello"), []string{strong}, 304},
		{"weak comparison", text("hello"), []string{"W/" + strong}, 304},
		{"any", text("hello"), []string{"*"}, 304},
		{"any, with space", text("hello"), []string{" * "}, 304},
		{"in a list", text("hello"), []string{`"a", W/"b",` + strong + `, "c"`}, 304},
		{"empty list elements", text("hello"), []string{", ,\t" + strong}, 304},
		{"on the second line", text("hello"), []string{`"a"`, strong}, 304},
		{"another", text("hello"), []string{`"a"`}, 200},
		{"without quotes", text("hello"), []string{strings.Trim(strong, `"`)}, 200},
		{"half a tag", text("hello"), []string{strings.TrimSuffix(strong, `"`)}, 200},
		{"inside another tag", text("hello"), []string{`"x` + strings.Trim(strong, `"`) + `"`}, 200},
		{"* in a list", text("hello"), []string{`"a", *`}, 200},
		{"lower-case mark", text("hello"), []string{"w/" + strong}, 200},
		{"empty", text("hello"), []string{""}, 200},
		{"set by the action", given(`"v1"`), []string{`"v1"`}, 304},
		{"set by the action, weak", given(`W/"v1"`), []string{`"v1"`}, 304},
		{"set by the action, changed", given(`"v2"`), []string{`"v1"`}, 200},
		{"tag with a comma", given(`"a,b"`), []string{`"x", "a,b"`}, 304},
		{"part of a tag with a comma", given(`"b"`), []string{`"a,b"`}, 200},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			var headers []string
			for _, line := range test.sent {
				headers = append(headers, "If-None-Match", line)
			}
			w := send(newApp(test.act, middleware.ETag()), method, headers...)
			if w.Code != test.want {
				t.Errorf("%s: %s with %q: got status %d, want %d", test.name, method, test.sent, w.Code, test.want)
			}
			if w.Header().Get("ETag") == "" {
				t.Errorf("%s: %s: got no ETag, want that of the 200", test.name, method)
			}
			if w.Code == 304 && w.Body.Len() > 0 {
				t.Errorf("%s: got a 304 with body %q", test.name, w.Body)
			}
		}
	}
}

func TestETagNotAdded(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		act    dunlin.Action
		status int
	}{
		"a POST":        {"POST", text("hello"), 200},
		"a 404":         {"GET", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello").Status(404) }, 404},
		"a 206":         {"GET", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello").Status(206) }, 206},
		"an empty body": {"HEAD", func(*dunlin.Request) dunlin.Response { return dunlin.Empty() }, 200},
	} {
		w := send(newApp(test.act, middleware.ETag()), test.method, "If-None-Match", "*")
		if tag := w.Header().Get("ETag"); w.Code != test.status || tag != "" {
			t.Errorf("%s: got status %d and ETag %q, want %d and no ETag", name, w.Code, tag, test.status)
		}
	}
}

// A 304 repeats the headers of the 200 (RFC 9110 section 15.4.5).
func TestETagKeepsHeaders(t *testing.T) {
	act := func(*dunlin.Request) dunlin.Response {
		return dunlin.JSON("hello").Header("ETag", `"v1"`).Header("Cache-Control", "max-age=60").Header("Vary", "Accept")
	}
	w := send(newApp(act, middleware.ETag()), "GET", "If-None-Match", `"v1"`)
	for name, want := range map[string]string{"ETag": `"v1"`, "Cache-Control": "max-age=60", "Vary": "Accept", "Content-Length": ""} {
		if got := w.Header().Get(name); w.Code != 304 || got != want {
			t.Errorf("got status %d and %s %q, want 304 with %q", w.Code, name, got, want)
		}
	}
}

func ExampleETag() {
	app := dunlin.New(dunlin.Config{})
	app.Use(middleware.ETag())
	app.Get("/price", func(*dunlin.Request) dunlin.Response { return dunlin.Text("12.50") })

	first := httptest.NewRecorder()
	app.ServeHTTP(first, httptest.NewRequest("GET", "/price", nil))
	fmt.Println(first.Code, first.Body)

	again := httptest.NewRequest("GET", "/price", nil)
	again.Header.Set("If-None-Match", first.Header().Get("ETag"))
	second := httptest.NewRecorder()
	app.ServeHTTP(second, again)
	fmt.Println(second.Code, second.Body.Len(), "bytes")
	// Output:
	// 200 12.50
	// 304 0 bytes
}
