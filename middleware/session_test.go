package middleware_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
)

// visit is the session value of the tests.
type visit struct {
	User string            `json:"user,omitempty"`
	N    int               `json:"n"`
	Note map[string]string `json:"note,omitempty"`
}

// visits returns an app with paths that read and change its sessions.
func visits(c middleware.SessionConfig) *dunlin.App {
	sessions := middleware.NewSessions[visit](c)
	app := dunlin.New(quiet)
	app.Use(sessions.Middleware())
	app.Get("/", func(r *dunlin.Request) dunlin.Response {
		v, ok, err := sessions.Get(r)
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(fmt.Sprintf("%s %d %t", v.User, v.N, ok))
	})
	app.Get("/plain", text("no session"))
	change := func(act func(*dunlin.Request, func(*visit) error) error, f func(*visit, string) error) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			if err := act(r, func(v *visit) error { return f(v, r.Param("x")) }); err != nil {
				return dunlin.Error(err)
			}
			v, _, _ := sessions.Get(r)
			return dunlin.Text(strconv.Itoa(v.N))
		}
	}
	app.Post("/add", change(sessions.Update, func(v *visit, _ string) error { v.N++; return nil }))
	app.Post("/note/{x}", change(sessions.Update, func(v *visit, x string) error {
		n, err := strconv.Atoi(x)
		v.Note = map[string]string{"long": strings.Repeat("x", n)}
		return err
	}))
	app.Post("/login/{x}", change(sessions.Login, func(v *visit, x string) error { v.User = x; return nil }))
	app.Post("/logout", func(r *dunlin.Request) dunlin.Response {
		if err := sessions.End(r); err != nil {
			return dunlin.Error(err)
		}
		return dunlin.NoContent()
	})
	return app
}

// A browser stores one cookie.
type browser struct {
	app    http.Handler
	cookie string // name=value
}

func (b *browser) do(method, path string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, nil)
	if b.cookie != "" {
		req.Header.Set("Cookie", b.cookie)
	}
	w := httptest.NewRecorder()
	b.app.ServeHTTP(w, req)
	for _, c := range w.Result().Cookies() {
		b.cookie = c.Name + "=" + c.Value
		if c.MaxAge < 0 {
			b.cookie = ""
		}
	}
	return w
}

func (b *browser) is(t *testing.T, when, want string) {
	t.Helper()
	if w := b.do("GET", "/"); w.Body.String() != want {
		t.Errorf("%s: got %d %q, want %q", when, w.Code, w.Body, want)
	}
}

// kinds returns a configuration for each place where sessions are stored.
func kinds() map[string]middleware.SessionConfig {
	return map[string]middleware.SessionConfig{
		"store":  {Store: store.NewMemory(store.MemoryConfig{})},
		"cookie": {Keys: middleware.NewKeyRing(secret(1))},
	}
}

func TestSessions(t *testing.T) {
	for name, config := range kinds() {
		t.Run(name, func(t *testing.T) {
			app := visits(config)
			b := &browser{app: app}
			if w := b.do("GET", "/plain"); len(w.Result().Cookies()) > 0 || w.Header().Get("Vary") != "" || w.Header().Get("Cache-Control") != "" {
				t.Errorf("response without a use of the session: got header %v", w.Header())
			}
			b.is(t, "a new client", " 0 false")
			if b.cookie != "" {
				t.Errorf("reading started a session: got cookie %s", b.cookie)
			}
			w := b.do("POST", "/add")
			cookies := w.Result().Cookies()
			if len(cookies) != 1 {
				t.Fatalf("cookies: got %v", cookies)
			}
			c := cookies[0]
			if c.Name != "__Host-session" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 0 {
				t.Errorf("Set-Cookie: got %s", c)
			}
			if w.Header().Get("Vary") != "Cookie" || w.Header().Get("Cache-Control") != "private" {
				t.Errorf("got header %v", w.Header())
			}
			b.do("POST", "/add")
			b.is(t, "after two updates", " 2 true")
			other := &browser{app: app}
			other.is(t, "another client", " 0 false")
			before := b.cookie
			b.do("POST", "/login/ada")
			b.is(t, "after login", "ada 2 true")
			if b.cookie == before {
				t.Error("login did not change the cookie")
			}
			b.do("POST", "/logout")
			if b.cookie != "" {
				t.Error("logout did not remove the cookie")
			}
			b.is(t, "after logout", " 0 false")
		})
	}
}

// A session name made up by an attacker, or issued to the attacker, gives no access after a victim has logged in with it.
func TestSessionFixation(t *testing.T) {
	app := visits(middleware.SessionConfig{Store: store.NewMemory(store.MemoryConfig{})})
	planted := "__Host-session=" + strings.Repeat("A", 43)
	victim := &browser{app: app, cookie: planted}
	victim.do("POST", "/login/ada")
	if victim.cookie == planted {
		t.Error("the server adopted a session name chosen by the client")
	}
	(&browser{app: app, cookie: planted}).is(t, "with the planted name", " 0 false")

	attacker := &browser{app: app}
	attacker.do("POST", "/add")
	victim = &browser{app: app, cookie: attacker.cookie}
	victim.do("POST", "/login/ada")
	victim.is(t, "the victim", "ada 1 true")
	attacker.is(t, "attacker with the old name", " 0 false")
	if w := attacker.do("POST", "/add"); w.Code != 409 || len(w.Result().Cookies()) > 0 {
		t.Errorf("update with the old name: got %d %s %v, want 409 without a cookie", w.Code, w.Body, w.Header())
	}
	victim.is(t, "the victim after the update with the old name", "ada 1 true")
}

// A response that sets or removes the cookie is not stored by shared caches, regardless of the action's Cache-Control.
func TestSessionCookieIsNotShared(t *testing.T) {
	for name, config := range kinds() {
		sessions := middleware.NewSessions[visit](config)
		app := dunlin.New(quiet)
		app.Use(sessions.Middleware())
		for path, call := range map[string]func(r *dunlin.Request) error{
			"/begin": func(r *dunlin.Request) error { return sessions.Update(r, func(v *visit) error { v.N++; return nil }) },
			"/end":   sessions.End,
			"/look":  func(r *dunlin.Request) error { _, _, err := sessions.Get(r); return err },
		} {
			app.Get(path, func(r *dunlin.Request) dunlin.Response {
				if err := call(r); err != nil {
					return dunlin.Error(err)
				}
				resp := dunlin.Text("x")
				for value := range strings.SplitSeq(r.RawQuery(), "&") {
					resp = resp.AddHeader("Cache-Control", strings.ReplaceAll(value, "%22", `"`))
				}
				return resp
			})
		}
		for query, want := range map[string]string{
			"public,max-age=60": "[private]", "max-age=60": "[private]", "s-maxage=60": "[private]", `private="Set-Cookie"&public`: "[private]",
			"no-store": "[no-store]", "private,max-age=5": "[private,max-age=5]", "max-age=60&private": "[max-age=60 private]", "no-store,must-understand,max-age=5": "[private]",
		} {
			query = strings.ReplaceAll(query, `"`, "%22")
			b := &browser{app: app}
			if w := b.do("GET", "/begin?"+query); fmt.Sprint(w.Header()["Cache-Control"]) != want || b.cookie == "" {
				t.Errorf("%s: response that starts a session, with Cache-Control %s: got %v, want %s", name, query, w.Header(), want)
			}
			if w := b.do("GET", "/look?"+query); fmt.Sprint(w.Header()["Cache-Control"]) == "[private]" {
				t.Errorf("%s: response that sets no cookie, with Cache-Control %s: got %v", name, query, w.Header())
			}
			if w := b.do("GET", "/end?"+query); fmt.Sprint(w.Header()["Cache-Control"]) != want || b.cookie != "" {
				t.Errorf("%s: response that ends a session, with Cache-Control %s: got %v, want %s", name, query, w.Header(), want)
			}
		}
	}
}

// A request sent before a login with the old cookie starts no session: its cookie would replace that of the login.
func TestSessionOldCookieAfterLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := visits(middleware.SessionConfig{Store: store.NewMemory(store.MemoryConfig{})})
		owner := &browser{app: app}
		owner.do("POST", "/add")
		old := owner.cookie
		owner.do("POST", "/login/ada")
		for _, after := range []time.Duration{0, 10 * time.Second, 9 * time.Second} {
			<-time.After(after)
			late := &browser{app: app, cookie: old}
			if w := late.do("POST", "/add"); w.Code != 409 || len(w.Result().Cookies()) > 0 {
				t.Errorf("update with the old cookie: got %d %s %v, want 409 without a cookie", w.Code, w.Body, w.Header())
			}
			late.is(t, "read with the old cookie", " 0 false")
		}
		late := &browser{app: app, cookie: old}
		if w := late.do("POST", "/logout"); w.Code != 204 || late.cookie != "" {
			t.Errorf("logout with the old cookie: got %d %s, cookie %s", w.Code, w.Body, late.cookie)
		}
		late.cookie = old
		if w := late.do("POST", "/add"); w.Code != 409 {
			t.Errorf("update with the old cookie after a logout with it: got %d %s, want 409", w.Code, w.Body)
		}
		if w := late.do("POST", "/login/ada"); w.Code != 200 || late.cookie == old {
			t.Errorf("second login with the old cookie: got %d %s", w.Code, w.Body)
		}
		late.is(t, "after the second login", "ada 0 true")
		owner.is(t, "the first login", "ada 1 true")
		<-time.After(2 * time.Second)
		forgotten := &browser{app: app, cookie: old}
		if w := forgotten.do("POST", "/add"); w.Code != 200 || w.Body.String() != "1" {
			t.Errorf("update with the old cookie after the tombstone has expired: got %d %s", w.Code, w.Body)
		}
	})
}

func TestSessionBadCookies(t *testing.T) {
	for name, config := range kinds() {
		app := visits(config)
		good := &browser{app: app}
		good.do("POST", "/login/ada")
		value := strings.TrimPrefix(good.cookie, "__Host-session=")
		flip := []byte(value)
		flip[len(flip)/2] ^= 1
		for what, cookie := range map[string]string{
			"empty": "", "short": "A", "long": strings.Repeat("A", 60_000), "changed": string(flip), "cut": value[:len(value)-1],
			"longer": value + "A", "other letters": strings.Repeat("!", len(value)), "quoted twice": `""` + value + `""`,
			"bytes": "\x80\xff", "spaces": " " + value[1:], "path": "../../" + value, "of nobody": strings.Repeat("B", 42) + "A",
		} {
			b := &browser{app: app, cookie: "__Host-session=" + cookie}
			b.is(t, name+": cookie is "+what, " 0 false")
			if w := b.do("POST", "/add"); w.Code != 200 || w.Body.String() != "1" {
				t.Errorf("%s: cookie is %s: got %d %s, want a new session", name, what, w.Code, w.Body)
			}
		}
		good.is(t, "the unmodified cookie", "ada 0 true")
	}
	// A session sealed by the same keys for another cookie is not accepted.
	ring := middleware.NewKeyRing(secret(1))
	one := visits(middleware.SessionConfig{Keys: ring, Cookie: "one"})
	two := visits(middleware.SessionConfig{Keys: ring, Cookie: "two"})
	b := &browser{app: one}
	b.do("POST", "/login/ada")
	b = &browser{app: two, cookie: strings.Replace(b.cookie, "one=", "two=", 1)}
	b.is(t, "a cookie of another name", " 0 false")
}

// After a change of the value's type, clients with an unreadable session can still log in and out.
func TestSessionTypeChange(t *testing.T) {
	for kind, config := range kinds() {
		before := middleware.NewSessions[struct{ N string }](config)
		old := dunlin.New(quiet)
		old.Post("/login", func(r *dunlin.Request) dunlin.Response {
			if err := before.Login(r, func(v *struct{ N string }) error { v.N = "one"; return nil }); err != nil {
				return dunlin.Error(err)
			}
			return dunlin.NoContent()
		}, before.Middleware())
		app := visits(config)
		for _, c := range []struct {
			path  string
			codes [3]int // the read before, the path, the read after
			want  string
		}{
			{"/login/ann", [3]int{500, 200, 200}, "ann 0 true"}, {"/logout", [3]int{500, 204, 200}, " 0 false"}, {"/add", [3]int{500, 500, 500}, ""},
		} {
			b := &browser{app: old}
			b.do("POST", "/login")
			b.app = app
			planted := b.cookie
			if w := b.do("GET", "/"); w.Code != c.codes[0] {
				t.Errorf("%s: a session of another type is sampledShards at: got %d %s", kind, w.Code, w.Body)
			}
			if w := b.do("POST", c.path); w.Code != c.codes[1] {
				t.Errorf("%s: %s with a session of another type: got %d %s", kind, c.path, w.Code, w.Body)
			}
			if w := b.do("GET", "/"); w.Code != c.codes[2] || c.want != "" && w.Body.String() != c.want {
				t.Errorf("%s: after %s: got %d %s", kind, c.path, w.Code, w.Body)
			}
			if kind == "store" && c.want != "" {
				(&browser{app: app, cookie: planted}).is(t, "the old name after "+c.path, " 0 false")
			}
		}
	}
}

func TestSessionLifetimes(t *testing.T) {
	for name := range kinds() {
		synctest.Test(t, func(t *testing.T) {
			config := kinds()[name]
			config.Idle, config.Absolute = time.Hour, 5*time.Hour
			app := visits(config)
			b := &browser{app: app}
			b.do("POST", "/add")
			<-time.After(59 * time.Minute)
			b.is(t, name+": before the idle time", " 1 true")
			<-time.After(59 * time.Minute)
			b.is(t, name+": each read restarts the idle time", " 1 true")
			<-time.After(time.Hour)
			b.is(t, name+": after the idle time", " 0 false")

			b = &browser{app: app}
			b.do("POST", "/add")
			for range 9 {
				<-time.After(30 * time.Minute)
				b.do("POST", "/add")
			}
			b.is(t, name+": before the absolute limit", " 10 true")
			<-time.After(30 * time.Minute)
			b.is(t, name+": after the absolute limit, though in use", " 0 false")

			b = &browser{app: app}
			b.do("POST", "/add")
			for range 9 {
				<-time.After(30 * time.Minute)
				b.do("POST", "/add")
			}
			b.do("POST", "/login/ada")
			<-time.After(30 * time.Minute)
			b.is(t, name+": a login restarts the absolute limit", "ada 10 true")
		})
	}
}

// Concurrent updates of a session lose no change, even during a login.
func TestSessionConcurrentUpdates(t *testing.T) {
	updates := 10_000
	if testing.Short() || invariants.Enabled {
		updates = 1000
	}
	app := visits(middleware.SessionConfig{Store: store.NewMemory(store.MemoryConfig{})})
	first := &browser{app: app}
	first.do("POST", "/login/ada")
	const clients = 50
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			b := &browser{app: app, cookie: first.cookie}
			for range updates / clients {
				if w := b.do("POST", "/add"); w.Code != 200 {
					t.Errorf("update: got %d %s", w.Code, w.Body)
				}
			}
		})
	}
	wg.Wait()
	first.is(t, "after all updates", fmt.Sprintf("ada %d true", updates))
}

func TestSessionLoginDuringUpdates(t *testing.T) {
	memory := store.NewMemory(store.MemoryConfig{})
	app := visits(middleware.SessionConfig{Store: memory})
	for range 100 {
		owner := &browser{app: app}
		owner.do("POST", "/add")
		var done atomic.Int64
		var wg sync.WaitGroup
		for range 3 {
			b := &browser{app: app, cookie: owner.cookie}
			wg.Go(func() {
				w := b.do("POST", "/add")
				if n, _ := strconv.Atoi(w.Body.String()); w.Code == 200 && n > 1 { // counted in the session, not in a new one
					done.Add(1)
				}
			})
		}
		owner.do("POST", "/login/ada")
		wg.Wait()
		owner.is(t, "after a login during updates", fmt.Sprintf("ada %d true", 1+done.Load()))
		owner.do("POST", "/logout")
	}
}

func TestSessionTooLarge(t *testing.T) {
	for name, config := range kinds() {
		config.MaxBytes = 8000
		app := visits(config)
		b := &browser{app: app}
		b.do("POST", "/login/ada")
		if w := b.do("POST", "/note/1000"); w.Code != 200 {
			t.Errorf("%s: 1000 bytes: got %d %s", name, w.Code, w.Body)
		}
		if w := b.do("POST", "/note/9000"); w.Code != 500 {
			t.Errorf("%s: 9000 bytes: got %d %s", name, w.Code, w.Body)
		}
		if w := b.do("POST", "/note/4000"); (w.Code == 200) != (name == "store") {
			t.Errorf("%s: 4000 bytes: got %d %s", name, w.Code, w.Body)
		}
		b.is(t, name+": after a value that was too large", "ada 0 true")
	}
}

// A store outage causes a fast 503. The session is available again when the store is back.
func TestSessionWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &unresponsiveStore{Store: store.NewMemory(store.MemoryConfig{})}
		app := visits(middleware.SessionConfig{Store: store.Guard(inner, store.GuardConfig{Timeout: 50 * time.Millisecond})})
		b := &browser{app: app}
		b.do("POST", "/login/ada")
		inner.away.Store(true)
		began := time.Now()
		for _, path := range []string{"/add", "/login/eve", "/logout"} {
			if w := b.do("POST", path); w.Code != 503 || w.Header().Get("Retry-After") != "1" {
				t.Errorf("POST %s: got %d %s", path, w.Code, w.Body)
			}
		}
		if w := b.do("GET", "/"); w.Code != 503 {
			t.Errorf("GET /: got %d %s", w.Code, w.Body)
		}
		if w := b.do("GET", "/plain"); w.Code != 200 {
			t.Errorf("path without a session: got %d %s", w.Code, w.Body)
		}
		if took := time.Since(began); took > 200*time.Millisecond {
			t.Errorf("four requests took %v", took)
		}
		inner.away.Store(false)
		b.is(t, "after the outage", "ada 0 true")
	})
}

// A streaming response can read and change its session, but cannot start one.
func TestSessionInStream(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		sessions := middleware.NewSessions[visit](middleware.SessionConfig{Store: store.NewMemory(store.MemoryConfig{})})
		app.Use(sessions.Middleware())
		app.Get("/", func(r *dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error {
				err := sessions.Update(r, func(v *visit) error { v.N++; return nil })
				_, _ = fmt.Fprint(w, errors.Is(err, middleware.ErrSessionTooLate))
				return nil
			})
		})
		if _, body := exchangeRaw(t, serve(), "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); body != "true" {
			t.Errorf("stream: got %q", body)
		}
	})
	sessions := middleware.NewSessions[visit](middleware.SessionConfig{Keys: middleware.NewKeyRing(secret(1))})
	w := send(newApp(func(r *dunlin.Request) dunlin.Response {
		_, _, err := sessions.Get(r)
		return dunlin.Text(fmt.Sprint(err))
	}), "GET")
	if !strings.Contains(w.Body.String(), "middleware is missing") {
		t.Errorf("without the middleware: got %s", w.Body)
	}
}

func TestSessionPersistent(t *testing.T) {
	app := visits(middleware.SessionConfig{Keys: middleware.NewKeyRing(secret(1)), Persistent: true, Insecure: true, Absolute: time.Hour, SameSite: http.SameSiteStrictMode})
	c := (&browser{app: app}).do("POST", "/add").Result().Cookies()[0]
	if c.Name != "session" || c.Secure || c.MaxAge < 3500 || c.MaxAge > 3600 || c.SameSite != http.SameSiteStrictMode {
		t.Errorf("Set-Cookie: got %s", c)
	}
}

func TestSessionSettings(t *testing.T) {
	ring := middleware.NewKeyRing(secret(1))
	for what, c := range map[string]middleware.SessionConfig{
		"neither store nor keys": {},
		"a negative time":        {Keys: ring, Idle: -1},
		"invalid cookie name":    {Keys: ring, Cookie: "a b"},
		"__Host- without TLS":    {Keys: ring, Cookie: "__Host-x", Insecure: true},
		"None without TLS":       {Keys: ring, SameSite: http.SameSiteNoneMode, Insecure: true},
		"a negative size":        {Keys: ring, MaxBytes: -1},
	} {
		mustPanic(t, "NewSessions with "+what, func() { middleware.NewSessions[visit](c) })
	}
}

func TestSessionAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates on its own")
	}
	sessions := middleware.NewSessions[visit](middleware.SessionConfig{Keys: middleware.NewKeyRing(secret(1))})
	app, w, req := newApp(text("hello"), sessions.Middleware()), void{http.Header{}}, httptest.NewRequest("GET", "/items/7", nil)
	if n := testing.AllocsPerRun(1000, func() { app.ServeHTTP(w, req) }); n != 0 {
		t.Errorf("got %v allocations for a request that does not use its session", n)
	}
}

func ExampleSessions() {
	type visit struct {
		User string
		Cart []string
	}
	sessions := middleware.NewSessions[visit](middleware.SessionConfig{Store: store.NewMemory(store.MemoryConfig{})})
	app := dunlin.New(quiet)
	app.Use(sessions.Middleware())
	app.Post("/login", dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) {
		return dunlin.NoContent(), sessions.Login(r, func(v *visit) error { v.User = "ada"; return nil })
	}))
	app.Post("/cart/{item}", dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) {
		return dunlin.NoContent(), sessions.Update(r, func(v *visit) error { v.Cart = append(v.Cart, r.Param("item")); return nil })
	}))
	app.Get("/cart", dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) {
		v, ok, err := sessions.Get(r)
		if !ok || err != nil {
			return dunlin.Redirect("/login"), err
		}
		return dunlin.JSON(v), nil
	}))

	b := &browser{app: app}
	fmt.Println(b.do("GET", "/cart").Code)
	b.do("POST", "/login")
	b.do("POST", "/cart/tea")
	b.do("POST", "/cart/milk")
	fmt.Println(b.do("GET", "/cart").Body)
	// Output:
	// 303
	// {"User":"ada","Cart":["tea","milk"]}
}
