package suite

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
)

var userKey = dunlin.NewKey[string]("user")

type stdKey struct{}

// stdAuth is typical middleware for net/http: it changes the request, its context and the headers of the response.
func stdAuth(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user := r.Header.Get("X-User")
		if user == "" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		w.Header().Set("X-Auth", "checked")
		r = r.WithContext(context.WithValue(r.Context(), stdKey{}, user))
		r.Header.Set("X-Seen", "yes")
		next.ServeHTTP(w, r)
	})
}

// stdGzip is middleware that wraps the ResponseWriter.
func stdGzip(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gz := gzip.NewWriter(w)
		next.ServeHTTP(gzipWriter{w, gz}, r)
		_ = gz.Close()
	})
}

type gzipWriter struct {
	http.ResponseWriter
	gz *gzip.Writer
}

func (w gzipWriter) WriteHeader(status int) {
	w.Header().Del("Content-Length")
	w.Header().Set("Content-Encoding", "gzip")
	w.ResponseWriter.WriteHeader(status)
}

func (w gzipWriter) Write(p []byte) (int, error) { return w.gz.Write(p) }

// askStd sends a request and returns the response and its complete body.
func askStd(t *testing.T, method, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Transport: ClosingTransport(), Timeout: Patience}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp, Body(t, resp)
}

func TestUseStdReachesTheAction(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var seen atomic.Int64 // status and length seen by outer middleware
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Use(func(next dunlin.Action) dunlin.Action {
				return func(r *dunlin.Request) dunlin.Response {
					ext.SetID(r, "id-7")
					resp := next(r)
					seen.Store(int64(resp.StatusCode()*1000 + resp.Len()))
					user, _ := userKey.Get(r)
					return resp.Header("X-User-Was", user)
				}
			})
			app.UseStd(stdAuth)
			app.Post("/users/{id:int}/{rest...}", func(r *dunlin.Request) dunlin.Response {
				body, err := r.Bytes()
				if err != nil {
					return dunlin.Error(err)
				}
				user, _ := r.Context().Value(stdKey{}).(string)
				userKey.Set(r, user)
				return dunlin.Text(fmt.Sprintf("%s %s %s %s %s %s q=%s seen=%s %s",
					user, r.ID(), r.Route(), r.Param("id"), r.Param("rest"), r.Path(), r.Query("q"), r.Header("X-Seen"), body)).
					Status(http.StatusAccepted).Header("X-Action", "ran")
			})
		})
		resp, got := askStd(t, "POST", "http://"+addr+"/users/42/a%20b?q=1", "content", "X-User", "ada")
		const want = "ada id-7 /users/{id:int}/{rest...} 42 a b /users/42/a b q=1 seen=yes content"
		if got != want || resp.StatusCode != http.StatusAccepted {
			t.Errorf("got %d %q, want 202 %q", resp.StatusCode, got, want)
		}
		for name, want := range map[string]string{"X-Auth": "checked", "X-Action": "ran", "X-User-Was": "ada", "Content-Type": "text/plain; charset=utf-8"} {
			if resp.Header.Get(name) != want {
				t.Errorf("%s: got %q, want %q", name, resp.Header.Get(name), want)
			}
		}
		if want := int64(202_000 + len(want)); seen.Load() != want {
			t.Errorf("middleware before it saw %d, want %d", seen.Load(), want)
		}

		resp, got = askStd(t, "POST", "http://"+addr+"/users/42/x", "content")
		if resp.StatusCode != http.StatusUnauthorized || got != "who are you?\n" {
			t.Errorf("without a user: got %d %q", resp.StatusCode, got)
		}
	})
}

func TestUseStdWrapsTheWriter(t *testing.T) {
	long := strings.Repeat("0123456789", 20_000)
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.UseStd(stdGzip)
			app.Get("/short", Text("short"))
			app.Get("/long", Text(long))
			app.Get("/stream", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error {
					_, err := io.WriteString(w, long)
					return err
				})
			})
		})
		for path, want := range map[string]string{"/short": "short", "/long": long, "/stream": long} {
			resp, got := askStd(t, "GET", "http://"+addr+path, "", "Accept-Encoding", "gzip")
			if resp.Header.Get("Content-Encoding") != "gzip" || len(got) >= 10_000 {
				t.Fatalf("%s: got %v, %d bytes", path, resp.Header, len(got))
			}
			gz, err := gzip.NewReader(strings.NewReader(got))
			if err != nil {
				t.Fatal(err)
			}
			if plain, err := io.ReadAll(gz); err != nil || string(plain) != want {
				t.Errorf("%s: got %d bytes, %v", path, len(plain), err)
			}
		}
	})
}

// Standard middleware is created once, wraps groups like other middleware, and handles requests without a route where the app
// uses it.
func TestUseStdRegistration(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var made, calls atomic.Int64
		counting := func(next http.Handler) http.Handler {
			made.Add(1)
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Add("X-Order", "first")
				calls.Add(1)
				next.ServeHTTP(w, r)
			})
		}
		second := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Add("X-Order", "second")
				next.ServeHTTP(w, r)
			})
		}
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/before", Text("before")).Critical() // may precede UseStd
			app.UseStd(counting, second)
			app.Get("/a", Text("a"))
			g := app.Group("/g")
			g.UseStd(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Add("X-Order", "group")
					next.ServeHTTP(w, r)
				})
			})
			g.Get("/b/{name}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Param("name")) })
		})
		for _, c := range []struct {
			path, body, order string
			status            int
		}{
			{"/before", "before", "", 200},
			{"/a", "a", "first second", 200},
			{"/g/b/x", "x", "first second group", 200},
			{"/none", `{"title":"Not Found","status":404}`, "first second", 404},
		} {
			resp, got := askStd(t, "GET", "http://"+addr+c.path, "")
			order := strings.Join(resp.Header["X-Order"], " ")
			if got != c.body || order != c.order || resp.StatusCode != c.status {
				t.Errorf("%s: got %d %q %q, want %d %q %q", c.path, resp.StatusCode, got, order, c.status, c.body, c.order)
			}
		}
		if made.Load() != 1 || calls.Load() != 3 {
			t.Errorf("made %d times, called %d times; want 1 and 3", made.Load(), calls.Load())
		}
	})
}

// An action abandoned by http.TimeoutHandler continues with its own request, and its result is ignored.
func TestUseStdAbandonedAction(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		const tries = 1000
		release, done := make(chan struct{}), make(chan error, tries)
		entered := make(chan struct{}, tries)
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/quick", Text("quick")).Critical()
			app.UseStd(func(next http.Handler) http.Handler {
				return http.TimeoutHandler(next, time.Millisecond, "too late")
			})
			app.Post("/slow/{id}", func(r *dunlin.Request) dunlin.Response {
				entered <- struct{}{}
				<-r.Context().Done()
				<-release
				userKey.Set(r, "late")
				body, err := io.ReadAll(r.Body())
				switch {
				case err != nil:
					err = nil
				case engine == dunlin.EngineLoop:
					err = errors.New("the body was read after the answer")
				case string(body) != "some content":
					// net/http closes the body only after the response was sent: it may still be readable, but then it is the
					// body of this request.
					err = fmt.Errorf("the late action reads %q", body)
				}
				if id, method := r.Param("id"), r.Method(); id != "7" || method != "POST" {
					err = fmt.Errorf("the late action sees %s %q", method, id)
				}
				done <- err
				return dunlin.Text("late: " + r.ID())
			})
		})
		conn := "http://" + addr
		for range tries { // the timeout may expire before the action starts
			if len(entered) > 0 {
				break
			}
			resp, got := askStd(t, "POST", conn+"/slow/7", "some content")
			if resp.StatusCode != http.StatusServiceUnavailable || got != "too late" {
				t.Fatalf("got %d %q", resp.StatusCode, got)
			}
		}
		if len(entered) == 0 {
			t.Fatal("no action has begun")
		}
		for range 20 { // other requests reuse the memory of the first
			if _, got := askStd(t, "GET", conn+"/quick", ""); got != "quick" {
				t.Errorf("another request got %q", got)
			}
		}
		close(release)
		for range len(entered) {
			if err := Await(t, "the end of an abandoned action", done); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestUseStdFailures(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, logs := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			g := app.Group("")
			g.UseStd(stdGzip)
			g.Get("/panic", func(*dunlin.Request) dunlin.Response { panic("in the action") })
			h := app.Group("")
			h.UseStd(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					next.ServeHTTP(w, r.WithContext(context.Background()))
				})
			})
			h.Get("/lost", Text("never"))
			limited := app.Group("")
			limited.UseStd(func(next http.Handler) http.Handler { return http.MaxBytesHandler(next, 5) })
			limited.Post("/limited", func(r *dunlin.Request) dunlin.Response {
				b, err := io.ReadAll(r.Body())
				if err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Text(string(b))
			})
		})
		resp, _ := askStd(t, "GET", "http://"+addr+"/panic", "", "Accept-Encoding", "gzip")
		if resp.StatusCode != 500 || resp.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("panic: got %d %v", resp.StatusCode, resp.Header)
		}
		resp, _ = askStd(t, "GET", "http://"+addr+"/lost", "")
		if resp.StatusCode != 500 {
			t.Errorf("lost: got %d", resp.StatusCode)
		}
		WantLogged(t, logs, "in the action", "does not derive")
		resp, got := askStd(t, "POST", "http://"+addr+"/limited", "123456")
		if resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(got, "limit of 5 bytes") {
			t.Errorf("over the limit: got %d %s", resp.StatusCode, got)
		}
		if resp, got = askStd(t, "POST", "http://"+addr+"/limited", "12345"); got != "12345" {
			t.Errorf("within the limit: got %d %s", resp.StatusCode, got)
		}
	})
}

// A host that middleware replaces does not change the parameters from the original host.
func TestUseStdHostParameters(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.UseStd(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					r.Host = "x"
					next.ServeHTTP(w, r)
				})
			})
			app.Host("{tenant}.example.com").Get("/", func(r *dunlin.Request) dunlin.Response {
				return dunlin.Text(r.Param("tenant") + " at " + r.Host())
			})
			app.Get("/", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Host()) })
		})
		if _, got := askStd(t, "GET", "http://"+addr+"/", "", "Host", "acme.example.com"); got != "acme at acme.example.com" {
			t.Errorf("with a parameter: got %q", got)
		}
		if _, got := askStd(t, "GET", "http://"+addr+"/", "", "Host", "other.example.org"); got != "x" {
			t.Errorf("without: got %q", got)
		}
	})
}

func TestUseStdRefusesNil(t *testing.T) {
	app, _ := NewApp(dunlin.Config{})
	got := PanicText(func() { app.UseStd(stdAuth, nil) })
	WantContains(t, "the panic", got, "UseStd: middleware 1 is nil", "usestd_test.go:")
	got = PanicText(func() { app.UseStd(func(http.Handler) http.Handler { return nil }) })
	WantContains(t, "the panic", got, "middleware 0 is nil or returned a nil handler")
}

// hiding is middleware whose writer hides the Flush method of the inner writer; open lets ResponseController find it by Unwrap.
func hiding(open bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if open {
				next.ServeHTTP(openWriter{struct{ http.ResponseWriter }{w}, w}, r)
				return
			}
			next.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
		})
	}
}

type openWriter struct {
	http.ResponseWriter
	below http.ResponseWriter
}

func (w openWriter) Unwrap() http.ResponseWriter { return w.below }

// A Flush inside standard middleware reaches the client, or returns an error.
func TestUseStdFlush(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		proceed := make(chan struct{}, 1)
		flushed := make(chan error, 1)
		stream := func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error {
				_, _ = io.WriteString(w, "first")
				flushed <- dunlin.Flush(w)
				<-proceed
				_, err := io.WriteString(w, "second")
				return err
			})
		}
		std := dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "first")
			flushed <- http.NewResponseController(w).Flush()
			<-proceed
			_, _ = io.WriteString(w, "second")
		}))
		events := func(*dunlin.Request) dunlin.Response {
			return dunlin.SSE(func(e *dunlin.Events) error { return e.Send(dunlin.Event{Data: "x"}) })
		}
		addr, logs := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			for name, open := range map[string]bool{"open": true, "hidden": false} {
				g := app.Group("/" + name)
				g.UseStd(hiding(open))
				g.Get("/stream", stream)
				g.Get("/std", std)
				g.Get("/events", events)
			}
		})
		for _, path := range []string{"/stream", "/std"} {
			resp, err := http.Get("http://" + addr + "/open" + path)
			if err != nil {
				t.Fatal(err)
			}
			first := make([]byte, 5)
			if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "first" {
				t.Errorf("%s: got %q, %v", path, first, err)
			}
			proceed <- struct{}{}
			rest, err := io.ReadAll(resp.Body)
			if err != nil || string(rest) != "second" || <-flushed != nil {
				t.Errorf("%s: got %q, %v", path, rest, err)
			}
			_ = resp.Body.Close()

			proceed <- struct{}{}
			if _, got := askStd(t, "GET", "http://"+addr+"/hidden"+path, ""); got != "firstsecond" {
				t.Errorf("hidden %s: got %q", path, got)
			}
			if err := <-flushed; !errors.Is(err, http.ErrNotSupported) {
				t.Errorf("hidden %s: Flush returned %v", path, err)
			}
		}
		if _, got := askStd(t, "GET", "http://"+addr+"/open/events", ""); got != "data: x\n\n" {
			t.Errorf("events: got %q", got)
		}
		if resp, err := http.Get("http://" + addr + "/hidden/events"); err == nil {
			if _, err := io.ReadAll(resp.Body); err == nil {
				t.Error("events that cannot be sent ended well")
			}
			_ = resp.Body.Close()
		}
		WantLogged(t, logs, "stream failed", "neither Flush nor Unwrap")
	})
}
