package dunlin_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

func TestConstructors(t *testing.T) {
	for _, c := range []struct {
		name        string
		build       func() dunlin.Response
		status      int
		contentType string
		body        string
	}{
		{"Text", func() dunlin.Response { return dunlin.Text("é") }, 200, "text/plain; charset=utf-8", "é"},
		{"HTML", func() dunlin.Response { return dunlin.HTML("<b>") }, 200, "text/html; charset=utf-8", "<b>"},
		{"Bytes", func() dunlin.Response { return dunlin.Bytes("image/x", []byte{0, 1}) }, 200, "image/x", "\x00\x01"},
		{"Bytes of no type", func() dunlin.Response { return dunlin.Bytes("", []byte("b")) }, 200, "application/octet-stream", "b"},
		{"Bytes of nil", func() dunlin.Response { return dunlin.Bytes("text/plain", nil) }, 200, "text/plain", ""},
		{"JSON", func() dunlin.Response { return dunlin.JSON([]string{"<"}) }, 200, "application/json", `["\u003c"]`},
		{"JSON without HTML escapes", func() dunlin.Response { return dunlin.JSON("<&>", dunlin.JSONNoEscapeHTML) }, 200, "application/json", `"<&>"`},
		{"JSON of nil", func() dunlin.Response { return dunlin.JSON[any](nil) }, 200, "application/json", `null`},
		{"JSONSeq", func() dunlin.Response {
			return dunlin.JSONSeq(slices.Values([]string{"a", "<"}), dunlin.JSONNoEscapeHTML)
		}, 200, "application/json", `["a","<"]`},
		{"JSONSeq of nothing", func() dunlin.Response { return dunlin.JSONSeq(slices.Values([]int(nil))) }, 200, "application/json", `[]`},
		{"Empty", dunlin.Empty, 200, "", ""},
		{"NoContent", dunlin.NoContent, 204, "", ""},
		{"Created", func() dunlin.Response { return dunlin.Created("/7") }, 201, "", ""},
		{"Redirect", func() dunlin.Response { return dunlin.Redirect("/7") }, 303, "", ""},
		{"NotFound", dunlin.NotFound, 404, "application/problem+json", `{"title":"Not Found","status":404}`},
		{"Problem", func() dunlin.Response { return dunlin.Problem(&dunlin.ProblemDetails{Status: 409}) }, 409, "application/problem+json", `{"title":"Conflict","status":409}`},
		{"Error", func() dunlin.Response { return dunlin.Error(errors.New("x")) }, 500, "application/problem+json", `{"title":"Internal Server Error","status":500}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.build()
			if r.StatusCode() != c.status || r.Get("Content-Type") != c.contentType || string(r.Body()) != c.body || r.Len() != len(c.body) {
				t.Errorf("response: got %d %q %q, Len %d", r.StatusCode(), r.Get("Content-Type"), r.Body(), r.Len())
			}
			w, _ := respondWith(t, func() dunlin.Response { return r })
			if w.Code != c.status || w.Header().Get("Content-Type") != c.contentType || w.Body.String() != c.body {
				t.Errorf("sent response: got %d %q %q", w.Code, w.Header().Get("Content-Type"), w.Body)
			}
		})
	}
}

func TestResponseString(t *testing.T) {
	for want, r := range map[string]dunlin.Response{
		"no response":                             {},
		"200 text/plain; charset=utf-8 5 bytes":   dunlin.Text("hello"),
		"201 application/json 2 bytes":            dunlin.JSON(17).Status(201),
		"204 0 bytes":                             dunlin.NoContent(),
		"200 text/csv 1 bytes":                    dunlin.Text("x").Header("Content-Type", "text/csv"),
		"404 application/problem+json 34 bytes":   dunlin.NotFound(),
		"409 application/problem+json 33 bytes (": dunlin.Error(&dunlin.ProblemDetails{Status: 409, Cause: errors.New("why")}),
	} {
		if got := fmt.Sprint(r); got != want && !(strings.HasSuffix(want, "(") && strings.HasPrefix(got, want) && strings.Contains(got, "why")) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Modifiers do not change their receiver, in any order of calls.
func TestModifiersBranch(t *testing.T) {
	show := func(r dunlin.Response) string {
		return fmt.Sprintf("%d A=%v B=%v C=%v %s", r.StatusCode(), r.Values("A"), r.Values("B"), r.Get("Cache-Control"), r.Body())
	}
	for name, make := range map[string]func() dunlin.Response{
		"plain": func() dunlin.Response { return dunlin.Text(`"x"`) },
		"JSON":  func() dunlin.Response { return dunlin.JSON("x") },
		"block": func() dunlin.Response { return dunlin.Text(`"x"`).With(dunlin.NewHeaderBlock("Vary", "a")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := make()
			a := r.Header("A", "1")
			b := r.Header("B", "2")
			ab := a.Header("B", "3").Status(201)
			aa := a.AddHeader("a", "4").Cache(time.Second)
			a2 := aa.Header("A", "5")
			bb := b.AddHeader("B", "6")
			c := r.Cache(0)
			for _, check := range []struct {
				r    dunlin.Response
				want string
			}{
				{r, `200 A=[] B=[] C= "x"`}, {a, `200 A=[1] B=[] C= "x"`}, {b, `200 A=[] B=[2] C= "x"`},
				{ab, `201 A=[1] B=[3] C= "x"`}, {aa, `200 A=[1 4] B=[] C=private, max-age=1 "x"`},
				{a2, `200 A=[5] B=[] C=private, max-age=1 "x"`}, {bb, `200 A=[] B=[2 6] C= "x"`}, {c, `200 A=[] B=[] C=no-store "x"`},
			} {
				if got := show(check.r); got != check.want {
					t.Errorf("got %s, want %s", got, check.want)
				}
			}
			// The sent response equals the one shown above.
			w, logged := respondWith(t, func() dunlin.Response { return aa })
			if fmt.Sprint(w.Header()["A"]) != "[1 4]" || w.Header().Get("B") != "" || w.Body.String() != `"x"` || logged != "" {
				t.Errorf("got header %v, body %s, log %s", w.Header(), w.Body, logged)
			}
		})
	}
}

// Responses derived from one response each get more headers than a pooled response has room for.
func TestManyHeaders(t *testing.T) {
	r := dunlin.JSON(1)
	var trunk []dunlin.Response
	for i := range 60 {
		r = r.AddHeader("X-Many", fmt.Sprint(i))
		trunk = append(trunk, r)
	}
	for i, r := range trunk {
		branch := r.AddHeader("X-Many", "branch")
		if got := branch.Values("X-Many"); len(got) != i+2 || got[i] != fmt.Sprint(i) || got[i+1] != "branch" {
			t.Fatalf("branch of %d: got %v", i, got)
		}
		if got := r.Values("x-many"); len(got) != i+1 {
			t.Fatalf("%d has %d values", i, len(got))
		}
	}
	w, _ := respondWith(t, func() dunlin.Response { return trunk[59] })
	if got := w.Header()["X-Many"]; len(got) != 60 || got[59] != "59" {
		t.Errorf("sent %v", got)
	}

	w, logged := respondWith(t, func() dunlin.Response {
		r := dunlin.Empty()
		for range 300 {
			r = r.AddHeader("X", "y")
		}
		return r
	})
	if w.Code != 500 {
		t.Errorf("300 headers: got status %d", w.Code)
	}
	wantContains(t, "log", logged, "more than 255 headers")
}

var sharedPlain = map[string]dunlin.Response{
	"text":    dunlin.Text("shared"),
	"html":    dunlin.HTML("shared").Status(202),
	"block":   dunlin.Text("shared").With(dunlin.NewHeaderBlock("X-A", "1")),
	"blocks":  dunlin.Text("shared").With(dunlin.NewHeaderBlock("X-A", "0")).With(dunlin.NewHeaderBlock("X-A", "1", "X-B", "2")),
	"cache":   dunlin.Bytes("", []byte("shared")).Cache(time.Minute),
	"cached2": dunlin.Text("shared").With(dunlin.NewHeaderBlock("Vary", "x")).Cache(0).Cache(time.Hour),
}

// Any number of goroutines may retain, return and extend a plain response.
func TestPlainResponsesAreShared(t *testing.T) {
	app, logs := newApp(dunlin.Config{})
	for name, resp := range sharedPlain {
		app.Get("/"+name, func(r *dunlin.Request) dunlin.Response {
			if v := r.Query("v"); v != "" {
				return resp.Header("X-V", v)
			}
			return resp
		})
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for range 50 {
				for name, resp := range sharedPlain {
					w := do(app, "GET", "/"+name)
					wv := do(app, "GET", fmt.Sprintf("/%s?v=%d", name, g))
					if w.Body.String() != "shared" || w.Code != resp.StatusCode() || w.Header().Get("X-V") != "" || wv.Header().Get("X-V") != fmt.Sprint(g) {
						t.Errorf("%s: got %d %v %q; %v", name, w.Code, w.Header(), w.Body, wv.Header())
						return
					}
				}
			}
		})
	}
	wg.Wait()
	if w := do(app, "GET", "/blocks"); fmt.Sprint(w.Header()["X-A"], w.Header()["X-B"]) != "[1] [2]" {
		t.Errorf("got header %v", w.Header())
	}
	wantLacks(t, "log", logs.String(), "level=")
}

// A response that owns memory may be returned once. The second return is reported as an error.
func TestOwningResponseTwice(t *testing.T) {
	for name, resp := range map[string]dunlin.Response{
		"JSON":    dunlin.JSON("secret"),
		"header":  dunlin.Text("secret").Header("X-A", "secret"),
		"problem": dunlin.NotFound(),
		"failed":  dunlin.Text("secret").Header("", ""),
		"created": dunlin.Created("secret"),
	} {
		t.Run(name, func(t *testing.T) {
			app, logs := newApp(dunlin.Config{})
			app.Get("/kept", constant(resp))
			app.Get("/further", func(*dunlin.Request) dunlin.Response { return resp.Header("X-B", "1").Status(200) })
			first := do(app, "GET", "/kept")
			if first.Code != resp.StatusCode() {
				t.Errorf("first request: got %d, want %d", first.Code, resp.StatusCode())
			}
			for _, target := range []string{"/kept", "/further", "/kept"} {
				w := do(app, "GET", target)
				if w.Code != 500 || w.Body.String() != `{"title":"Internal Server Error","status":500}` || strings.Contains(fmt.Sprint(w.Header()), "secret") {
					t.Errorf("second request of %s: got %d %v %q", target, w.Code, w.Header(), w.Body)
				}
			}
			wantLogged(t, logs, "response used again after it was sent", "route=/kept", "route=/further")
		})
	}
}

// For a response that is returned a second time, features see a 500, once, and not the response that was already sent.
func TestFeaturesAndOwningResponseTwice(t *testing.T) {
	var seen []string
	app, _ := newApp(dunlin.Config{})
	app.Install(dunlin.Hooks{Headers: func(i *dunlin.AnswerInfo, resp dunlin.Response) dunlin.Response {
		seen = append(seen, fmt.Sprint(i.Status(), " ", i.Err()))
		return resp.Header("X-Feature", "1")
	}})
	app.Get("/kept", constant(dunlin.Error(errors.New("of the first request"))))
	do(app, "GET", "/kept")
	if len(seen) != 1 || !strings.Contains(seen[0], "of the first request") {
		t.Fatalf("first request: got %q", seen)
	}
	seen = nil
	w := do(app, "GET", "/kept")
	if len(seen) != 1 || !strings.Contains(seen[0], "response used again after it was sent") || w.Header().Get("X-Feature") != "1" {
		t.Errorf("second request: feature got %q, header %v", seen, w.Header())
	}
}

func TestStatusRange(t *testing.T) {
	for _, code := range []int{-1, 0, 99, 100, 101, 199, 600, 1000, 200 + 1<<16} {
		w, logged := respondWith(t, func() dunlin.Response { return dunlin.Text("x").Status(code).Status(200) })
		if w.Code != 500 {
			t.Errorf("Status(%d): got %d, want 500", code, w.Code)
		}
		wantContains(t, "log", logged, fmt.Sprintf("response status %d is not between 200 and 599", code))
	}
	for _, code := range []int{200, 226, 300, 451, 599} {
		if w, _ := respondWith(t, func() dunlin.Response { return dunlin.Empty().Status(code) }); w.Code != code {
			t.Errorf("Status(%d): got %d", code, w.Code)
		}
	}
}

// A location is sent as a URI reference; one with a control character is a failure.
func TestLocationIsAURIReference(t *testing.T) {
	for location, want := range map[string]string{
		"/items/1?a=b#c":             "/items/1?a=b#c",
		"https://[::1]:80/a%2Fb":     "https://[::1]:80/a%2Fb",
		"/items/ä b":                 "/items/%C3%A4%20b",
		"/100%/%41":                  "/100%25/%41",
		`/\example.com/{a|b}`:        "/%5Cexample.com/%7Ba%7Cb%7D",
		"/a\r\nSet-Cookie: user=eve": "",
	} {
		for status, answer := range map[int]func(string) dunlin.Response{303: dunlin.Redirect, 201: dunlin.Created} {
			if want == "" {
				status = 500
			}
			w, _ := respondWith(t, func() dunlin.Response { return answer(location) })
			if w.Code != status || w.Header().Get("Location") != want {
				t.Errorf("%q: got %d, Location %q", location, w.Code, w.Header().Get("Location"))
			}
		}
	}
}

// A failure keeps its status and media type when middleware changes the response, and must not be cached. It accepts headers
// that do not describe the content.
func TestFailureModifiers(t *testing.T) {
	failed := func() dunlin.Response { return dunlin.JSON(make(chan int)) }
	for name, r := range map[string]dunlin.Response{
		"status":       failed().Status(200),
		"content type": failed().Header("Content-Type", "text/csv").AddHeader("content-type", "text/x"),
		"cache":        failed().Cache(time.Hour).Header("Cache-Control", "public").Header("ETag", `"1"`).Header("expires", "x"),
		"block":        failed().With(cachedBlock),
		"location":     failed().Status(201).Header("Location", "/7"),
		"second":       failed().Header("", "").Status(1),
	} {
		w, logged := respondWith(t, func() dunlin.Response { return r })
		if w.Code != 500 || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got %d %v", name, w.Code, w.Header())
		}
		for _, h := range []string{"Cache-Control", "Etag", "Expires", "Location"} {
			if v := w.Header().Get(h); v != "" {
				t.Errorf("%s: got %s: %s on a failure", name, h, v)
			}
		}
		wantContains(t, "log of "+name, logged, "chan int")
	}
	w, _ := respondWith(t, func() dunlin.Response {
		return failed().Header("Access-Control-Allow-Origin", "*").With(dunlin.NewHeaderBlock("X-A", "1", "X-A", "2", "Expires", "x"))
	})
	if h := w.Header(); h.Get("Access-Control-Allow-Origin") != "*" || fmt.Sprint(h["X-A"]) != "[1 2]" {
		t.Errorf("failure: got header %v", h)
	}
}

func TestHeadersAreRead(t *testing.T) {
	r := dunlin.Text("x").With(varyBlock).AddHeader("vary", "Origin").AddHeader("X-Two", "1").AddHeader("x-two", "2")
	for _, c := range []struct{ name, get, values string }{
		{"Vary", "Accept", "[Accept Origin]"}, {"x-TWO", "1", "[1 2]"}, {"Content-Type", "text/plain; charset=utf-8", "[text/plain; charset=utf-8]"}, {"None", "", "[]"}, {"", "", "[]"},
	} {
		if got := r.Get(c.name); got != c.get {
			t.Errorf("Get(%q): got %q, want %q", c.name, got, c.get)
		}
		if got := fmt.Sprint(r.Values(c.name)); got != c.values {
			t.Errorf("Values(%q): got %v, want %v", c.name, got, c.values)
		}
	}
	if err := r.Err(); err != nil {
		t.Errorf("Err(): got %v", err)
	}
	if err := r.Header("\n", "").Err(); err == nil || !strings.Contains(err.Error(), `"\n"`) {
		t.Errorf("Err() of a failure: got %v", err)
	}
}

func TestCookies(t *testing.T) {
	for name, c := range map[string]*http.Cookie{
		"nil": nil, "no name": {Value: "x"}, "bad name": {Name: "a b"}, "line break in the name": {Name: "a\r\nX: y"},
		"bad value": {Name: "a", Value: "b;c"}, "line break in the value": {Name: "a", Value: "b\r\nX: y"},
		"bad path": {Name: "a", Path: "/;x"}, "bad domain": {Name: "a", Domain: "-"}, "old": {Name: "a", Expires: time.Date(1500, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		w, logged := respondWith(t, func() dunlin.Response { return dunlin.Text("x").Cookie(c) })
		if w.Code != 500 || w.Header().Get("Set-Cookie") != "" {
			t.Errorf("%s: got %d %v", name, w.Code, w.Header())
		}
		wantContains(t, "log", logged, "response cookie")
	}
	w, _ := respondWith(t, func() dunlin.Response {
		return dunlin.Text("x").Cookie(&http.Cookie{Name: "a", Value: "1"}).Cookie(&http.Cookie{Name: "a", Value: "2", Path: "/", MaxAge: -1, SameSite: http.SameSiteLaxMode})
	})
	if got := fmt.Sprintf("%q", w.Header()["Set-Cookie"]); got != `["a=1" "a=2; Path=/; Max-Age=0; SameSite=Lax"]` {
		t.Errorf("Set-Cookie: got %s", got)
	}
}

func TestCache(t *testing.T) {
	for scope, cache := range map[string]func(dunlin.Response, time.Duration) dunlin.Response{"private": dunlin.Response.Cache, "public": dunlin.Response.CachePublic} {
		for d, want := range map[time.Duration]string{
			0: "no-store", -time.Second: "no-store", 1: scope + ", max-age=1", 30 * time.Second: scope + ", max-age=30",
			1500 * time.Millisecond: scope + ", max-age=2", 365 * 24 * time.Hour: scope + ", max-age=31536000",
		} {
			if got := cache(dunlin.Text(""), d).Get("Cache-Control"); got != want {
				t.Errorf("%s, for %v: got %q, want %q", scope, d, got, want)
			}
		}
		for i := range 1000 { // more than are cached
			d := time.Duration(i+1) * time.Second
			if got, want := cache(dunlin.Text(""), d).Get("Cache-Control"), fmt.Sprintf("%s, max-age=%d", scope, i+1); got != want {
				t.Fatalf("%s, for %v: got %q", scope, d, got)
			}
		}
	}
}
