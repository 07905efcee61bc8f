package middleware_test

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

func greetUser(r *dunlin.Request) dunlin.Response { return dunlin.Text("hello " + middleware.User(r)) }

func basic(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }

func TestBasicAuth(t *testing.T) {
	app := newApp(greetUser, middleware.BasicAuth(middleware.BasicAuthConfig{Realm: `the "back" office`, Check: middleware.Passwords(map[string]string{"ada": "pass:word", "bob": "höchst geheim"})}))
	for header, want := range map[string]string{
		basic("ada:pass:word"):     "ada",
		basic("bob:höchst geheim"): "bob",
		strings.Replace(basic("ada:pass:word"), "Basic ", "bAsIc  ", 1): "ada",
		"":                                 "",
		"Basic":                            "",
		"Basic ":                           "",
		"Basic !!!":                        "",
		basic("ada"):                       "",
		basic("ada:"):                      "",
		basic("ada:wrong"):                 "",
		basic("eve:pass:word"):             "",
		basic("bob:pass:word"):             "",
		basic(":"):                         "",
		basic("ada:pass:word\x00"):         "",
		basic("ada:pass:word") + "\n":      "",
		basic("ada:pass:word") + "=":       "",
		"Bearer " + basic("ada:pass:word"): "",
		"Basic" + basic("ada:pass:word"):   "",
		basic("ada:" + strings.Repeat("x", 10_000)):    "",
		"Basic " + strings.Repeat("YWRhOg==", 100_000): "",
	} {
		headers := []string{"Authorization", header}
		w := send(app, "GET", headers...)
		if want != "" && (w.Code != 200 || w.Body.String() != "hello "+want) {
			t.Errorf("Authorization %.40q: got %d %s, want %s", header, w.Code, w.Body, want)
		}
		if want == "" && (w.Code != 401 || w.Header().Get("WWW-Authenticate") != `Basic realm="the \"back\" office", charset="UTF-8"` || w.Header().Get("Cache-Control") != "no-store") {
			t.Errorf("Authorization %.40q: got %d %v, want 401", header, w.Code, w.Header())
		}
	}
	mustPanic(t, "nil check", func() { middleware.BasicAuth(middleware.BasicAuthConfig{Realm: "x", Check: nil}) })
	mustPanic(t, "realm", func() {
		middleware.BasicAuth(middleware.BasicAuthConfig{Realm: "a\nb", Check: middleware.Passwords(nil)})
	})
	mustPanic(t, "name", func() { middleware.Passwords(map[string]string{"a:b": "x"}) })
	mustPanic(t, "empty password", func() { middleware.Passwords(map[string]string{"a": ""}) })
}

func TestKeyAuth(t *testing.T) {
	const key = "k-0123456789abcdef"
	check := middleware.Keys(map[string]string{"billing": key, "search": "another-key-0123456789"})
	for _, c := range []struct {
		config          middleware.KeyAuthConfig
		header, value   string
		user, challenge string
	}{
		{middleware.KeyAuthConfig{}, "Authorization", "Bearer " + key, "billing", ""},
		{middleware.KeyAuthConfig{}, "Authorization", "bearer " + key, "billing", ""},
		{middleware.KeyAuthConfig{}, "Authorization", "Bearer x" + key, "", `Bearer error="invalid_token"`},
		{middleware.KeyAuthConfig{Realm: "api"}, "Authorization", "Bearer x", "", `Bearer realm="api", error="invalid_token"`},
		{middleware.KeyAuthConfig{Realm: "api"}, "Authorization", key, "", `Bearer realm="api"`},
		{middleware.KeyAuthConfig{}, "Authorization", "", "", "Bearer"},
		{middleware.KeyAuthConfig{}, "Authorization", "Bearer " + strings.Repeat("x", 100_000), "", "Bearer"},
		{middleware.KeyAuthConfig{Scheme: "Token"}, "Authorization", "Token " + key, "billing", ""},
		{middleware.KeyAuthConfig{Scheme: "Token"}, "Authorization", "Bearer " + key, "", "Token"},
		{middleware.KeyAuthConfig{Header: "X-API-Key"}, "X-API-Key", key, "billing", ""},
		{middleware.KeyAuthConfig{Header: "X-API-Key"}, "X-API-Key", "x", "", `Key header="X-API-Key"`},
		{middleware.KeyAuthConfig{Header: "X-API-Key", Realm: "api"}, "Authorization", "Bearer " + key, "", `Key realm="api", header="X-API-Key"`},
	} {
		c.config.Check = check
		w := send(newApp(greetUser, middleware.KeyAuth(c.config)), "GET", c.header, c.value)
		if c.user != "" && (w.Code != 200 || w.Body.String() != "hello "+c.user) {
			t.Errorf("%s: %.40q: got %d %s, want %s", c.header, c.value, w.Code, w.Body, c.user)
		}
		if got := w.Header().Get("WWW-Authenticate"); c.user == "" && (w.Code != 401 || got != c.challenge) {
			t.Errorf("%s: %.40q: got %d %s, want 401 and %s", c.header, c.value, w.Code, got, c.challenge)
		}
	}
	for name, f := range map[string]func(){
		"nil Check":   func() { middleware.KeyAuth(middleware.KeyAuthConfig{}) },
		"bad header":  func() { middleware.KeyAuth(middleware.KeyAuthConfig{Check: check, Header: "X Key"}) },
		"bad scheme":  func() { middleware.KeyAuth(middleware.KeyAuthConfig{Check: check, Scheme: "a b"}) },
		"a short key": func() { middleware.Keys(map[string]string{"a": "short"}) },
		"equal keys":  func() { middleware.Keys(map[string]string{"a": key, "b": key}) },
	} {
		mustPanic(t, name, f)
	}
}

// A response to an authenticated request reaches only the owner of the key, even with a cache in front of the authentication.
func TestKeyAuthWithCache(t *testing.T) {
	keys := map[string]string{"a": "0123456789abcdef", "b": "fedcba9876543210"}
	for header, prefix := range map[string]string{"X-API-Key": "", "Authorization": "Bearer "} {
		app := newApp(func(r *dunlin.Request) dunlin.Response {
			return dunlin.Text("for "+middleware.User(r)).Header("Cache-Control", "max-age=60").Header("Vary", "Accept")
		}, middleware.NewCache(middleware.CacheConfig{}).Middleware(), middleware.KeyAuth(middleware.KeyAuthConfig{Header: header, Check: middleware.Keys(keys)}))
		for range 2 {
			for user, key := range keys {
				if w := send(app, "GET", header, prefix+key); w.Body.String() != "for "+user {
					t.Errorf("%s with the key of %s: got %d %s", header, user, w.Code, w.Body)
				}
			}
			if w := send(app, "GET"); w.Code != 401 {
				t.Errorf("without %s: got %d %s, want 401", header, w.Code, w.Body)
			}
		}
	}
}

// Two lines with credentials are refused: an upstream server may read the other line, or both.
func TestAuthRefusesTwoCredentials(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		const key = "k-0123456789abcdef"
		check := middleware.Keys(map[string]string{"billing": key})
		app.Get("/basic", text("in"), middleware.BasicAuth(middleware.BasicAuthConfig{Realm: "r", Check: middleware.Passwords(map[string]string{"ann": "secret"})}))
		app.Get("/bearer", text("in"), middleware.KeyAuth(middleware.KeyAuthConfig{Check: check}))
		app.Get("/key", text("in"), middleware.KeyAuth(middleware.KeyAuthConfig{Header: "X-API-Key", Check: check}))
		addr := serve()
		for path, line := range map[string]string{
			"/basic": "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("ann:secret")), "/bearer": "Authorization: Bearer " + key, "/key": "X-API-Key: " + key,
		} {
			name, _, _ := strings.Cut(line, ":")
			for more, want := range map[string]int{"": 200, name + ": Basic cm9vdDp4\r\n": 401, "Accept: a\r\n" + strings.ToLower(line) + "\r\n": 401, name + ":\r\n": 401} {
				for _, lines := range []string{line + "\r\n" + more, more + line + "\r\n"} {
					resp, body := exchangeRaw(t, addr, "GET "+path+" HTTP/1.1\r\nHost: x\r\n"+lines+"Connection: close\r\n\r\n")
					if resp.StatusCode != want {
						t.Errorf("%s with %q: got %d %s, want %d", path, lines, resp.StatusCode, body, want)
					}
				}
			}
		}
	})
}

func ExampleBasicAuth() {
	app := dunlin.New(dunlin.Config{})
	app.Use(middleware.BasicAuth(middleware.BasicAuthConfig{Realm: "the back office", Check: middleware.Passwords(map[string]string{"ada": "correct horse"})}))
	app.Get("/", func(r *dunlin.Request) dunlin.Response { return dunlin.Text("hello " + middleware.User(r)) })

	req := httptest.NewRequest("GET", "/", nil)
	w := httptest.NewRecorder()
	app.ServeHTTP(w, req)
	fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))

	req.SetBasicAuth("ada", "correct horse")
	w = httptest.NewRecorder()
	app.ServeHTTP(w, req)
	fmt.Println(w.Code, w.Body)
	// Output:
	// 401 Basic realm="the back office", charset="UTF-8"
	// 200 hello ada
}

func ExampleKeyAuth() {
	app := dunlin.New(dunlin.Config{})
	api := app.Group("/api", middleware.KeyAuth(middleware.KeyAuthConfig{
		Check: middleware.Keys(map[string]string{"billing": "k-0123456789abcdef"}),
	}))
	api.Get("/", func(r *dunlin.Request) dunlin.Response { return dunlin.Text("hello " + middleware.User(r)) })

	req := httptest.NewRequest("GET", "/api/", nil)
	req.Header.Set("Authorization", "Bearer k-0123456789abcdef")
	w := httptest.NewRecorder()
	app.ServeHTTP(w, req)
	fmt.Println(w.Body)
	// Output: hello billing
}

func TestOptionalKey(t *testing.T) {
	greetUser := func(r *dunlin.Request) dunlin.Response { return dunlin.Text("user " + middleware.User(r)) }
	check := middleware.Keys(map[string]string{"ada": "0123456789abcdef"})
	for _, c := range []struct {
		config  middleware.KeyAuthConfig
		headers []string
		want    string
	}{
		{middleware.KeyAuthConfig{}, nil, "200 user "},
		{middleware.KeyAuthConfig{}, []string{"Authorization", "Bearer 0123456789abcdef"}, "200 user ada"},
		{middleware.KeyAuthConfig{}, []string{"Authorization", "Bearer 0123456789abcdeX"}, "401"},
		{middleware.KeyAuthConfig{}, []string{"Authorization", "Bearer"}, "401"},
		{middleware.KeyAuthConfig{}, []string{"Authorization", "Basic YTpi"}, "401"},
		{middleware.KeyAuthConfig{}, []string{"Authorization", "", "Authorization", "Bearer 0123456789abcdeX"}, "401"},
		{middleware.KeyAuthConfig{Header: "X-API-Key"}, nil, "200 user "},
		{middleware.KeyAuthConfig{Header: "X-API-Key"}, []string{"X-Api-Key", "0123456789abcdef"}, "200 user ada"},
		{middleware.KeyAuthConfig{Header: "X-API-Key"}, []string{"X-Api-Key", "0"}, "401"},
	} {
		c.config.Check, c.config.Optional = check, true
		w := send(newApp(greetUser, middleware.KeyAuth(c.config)), "GET", c.headers...)
		got := fmt.Sprint(w.Code, " ", w.Body)
		if w.Code == 401 {
			got = "401"
		}
		if name := cmp.Or(c.config.Header, "Authorization"); got != c.want || w.Code == 200 && w.Header().Get("Vary") != name {
			t.Errorf("headers %q, %s: got %s with Vary %q, want %s", c.headers, name, got, w.Header().Get("Vary"), c.want)
		}
	}
}

func TestSetUser(t *testing.T) {
	own := func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			middleware.SetUser(r, "ada")
			return next(r)
		}
	}
	w := send(newApp(func(r *dunlin.Request) dunlin.Response { return dunlin.Text(middleware.User(r)) }, own), "GET")
	if w.Body.String() != "ada" {
		t.Errorf("got user %q", w.Body)
	}
}
