package suite

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
)

type inContext struct{}

// Headers that middleware sets in place of the client's are visible to the middleware and the action inside it, and to no other
// code.
func TestWithHeaders(t *testing.T) {
	seen := func(r *dunlin.Request) string {
		all := ""
		for name, value := range r.Headers() {
			if name != "Host" && name != "User-Agent" && name != "Accept-Encoding" {
				all += name + "=" + value + " "
			}
		}
		std := r.Std().Header
		return fmt.Sprintf("%s| %s %s %s | %s %s %s", all, r.Header("x-a"), r.HeaderList("X-B"), r.Header("X-C"), std.Get("X-A"), std.Values("X-B"), std.Get("X-C"))
	}
	byHTTP1And2(t, func(app *dunlin.App) {
		other := func(next dunlin.Action) dunlin.Action {
			return func(r *dunlin.Request) dunlin.Response {
				resp := ext.WithHeaders(r, map[string]string{"x-b": "", "X-C": "3", "X-D": "4"}, next)
				if r.Header("X-C") != "c" || r.HeaderList("X-B") != "b" || r.Header("X-D") != "" {
					t.Errorf("after that: got %s", seen(r))
				}
				return resp
			}
		}
		app.Get("/action", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(seen(r)) }, other)
		app.Get("/context", func(r *dunlin.Request) dunlin.Response {
			before := r.Std()
			r.SetContext(context.WithValue(r.Context(), inContext{}, "value"))
			std := r.Std()
			return dunlin.Text(fmt.Sprint(before.Context().Value(inContext{}), std.Context().Value(inContext{}), std.Header.Get("X-C")))
		}, other)
		app.Get("/std", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, "%s %s %s %s", r.Header.Get("X-A"), r.Header.Values("X-B"), r.Header.Get("X-C"), r.Header.Get("X-D"))
		})), other)
	}, func(t *testing.T, get func(path string, headers ...string) (*http.Response, string)) {
		for path, want := range map[string]string{
			"/action":  "X-A=a X-C=3 X-D=4 | a  3 | a [] 3",
			"/std":     "a [] 3 4",
			"/context": "<nil>value3",
		} {
			if _, got := get(path, "X-A", "a", "X-B", "b", "X-C", "c"); got != want {
				t.Errorf("%s: got %q, want %q", path, got, want)
			}
		}
	})
}

// A response with its own Date keeps it, once. Other responses get the current time.
func TestDateOfAnswer(t *testing.T) {
	const date = "Thu, 01 Jan 2026 00:00:00 GMT"
	block := dunlin.NewHeaderBlock("Date", date, "X-A", "1")
	byHTTP1And2(t, func(app *dunlin.App) {
		app.Get("/header", func(*dunlin.Request) dunlin.Response { return dunlin.Text("x").Header("date", date) })
		app.Get("/block", func(*dunlin.Request) dunlin.Response { return dunlin.Text("x").With(block) })
		app.Get("/both", func(*dunlin.Request) dunlin.Response {
			return dunlin.Text("x").With(block).Header("X-B", "2").Header("Date", date)
		})
		app.Get("/stream", func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/plain", func(w io.Writer) error { _, err := w.Write(make([]byte, 64<<10)); return err }).Header("Date", date)
		})
		app.Get("/std", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", date) })))
		app.Get("/std/long", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", date)
			_, _ = w.Write(make([]byte, 64<<10))
		})))
		app.Get("/std/wrong", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", "yesterday") })))
	}, func(t *testing.T, get func(path string, headers ...string) (*http.Response, string)) {
		for _, path := range []string{"/header", "/block", "/both", "/stream", "/std", "/std/long"} {
			if resp, _ := get(path); fmt.Sprint(resp.Header["Date"]) != "["+date+"]" {
				t.Errorf("%s: Date is %q", path, resp.Header["Date"])
			}
		}
		resp, _ := get("/std/wrong")
		if _, err := http.ParseTime(resp.Header.Get("Date")); err != nil || len(resp.Header["Date"]) != 1 {
			t.Errorf("a handler that sets no date: Date is %q", resp.Header["Date"])
		}
	})
}

// White space around a field value is not part of the value. RFC 9113, section 8.2.1, calls it malformed, but grpc-go sends it
// in User-Agent.
func TestWhiteSpaceAroundValues(t *testing.T) {
	byHTTP1And2(t, func(app *dunlin.App) {
		app.Install(dunlin.Hooks{Headers: stamp})
		for _, name := range []string{"X-Key", "User-Agent"} {
			app.Get("/"+name, func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Header(name)) })
			app.Get("/std/"+name, dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Header.Get(name)) })))
		}
	}, func(t *testing.T, get func(path string, headers ...string) (*http.Response, string)) {
		for _, name := range []string{"X-Key", "User-Agent"} {
			for _, value := range []string{"key ", " key", "key\t", " ", " \ta key\t "} {
				for _, path := range []string{"/", "/std/"} {
					if resp, body := get(path+name, name, value); resp.StatusCode != 200 || body != strings.Trim(value, " \t") {
						t.Errorf("%s, %s%s: %q: got %s %q", resp.Proto, path, name, value, resp.Status, body)
					}
				}
			}
		}
	})
}

// An invalid host over HTTP/2 gets a response and not a reset: a reverse proxy forwards hosts unchanged, and retries streams that
// are reset.
func TestInvalidHostByHTTP2(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine, H2C: dunlin.H2CPriorKnowledge}, func(app *dunlin.App) {
			app.Install(dunlin.Hooks{Headers: stamp})
			app.Get("/", Text("ok"))
		})
		var protocols http.Protocols
		protocols.SetUnencryptedHTTP2(true)
		transport := &http.Transport{Protocols: &protocols}
		defer transport.CloseIdleConnections()
		for host, want := range map[string]int{"a:x": 400, "a:": 200, "a:80": 200} {
			req, err := http.NewRequest("GET", "http://"+addr+"/", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatalf("%s: %v", host, err)
			}
			resp.Body.Close()
			if resp.StatusCode != want || resp.Header.Get("X-Policy") == "" {
				t.Errorf("%s: got %s %v, want %d", host, resp.Status, resp.Header, want)
			}
		}
	})
}

// byHTTP1And2 serves an app on each engine and sends requests by both protocols.
func byHTTP1And2(t *testing.T, register func(*dunlin.App), f func(t *testing.T, get func(path string, headers ...string) (*http.Response, string))) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine, H2C: dunlin.H2CPriorKnowledge}, register)
		for _, version := range []int{1, 2} {
			t.Run(fmt.Sprint("HTTP/", version), func(t *testing.T) {
				var protocols http.Protocols
				protocols.SetHTTP1(version == 1)
				protocols.SetUnencryptedHTTP2(version == 2)
				transport := &http.Transport{Protocols: &protocols}
				defer transport.CloseIdleConnections()
				f(t, func(path string, headers ...string) (*http.Response, string) {
					req, err := http.NewRequest("GET", "http://"+addr+path, nil)
					if err != nil {
						t.Fatal(err)
					}
					for i := 0; i < len(headers); i += 2 {
						req.Header.Set(headers[i], headers[i+1])
					}
					resp, err := transport.RoundTrip(req)
					if err != nil {
						t.Fatal(err)
					}
					defer resp.Body.Close()
					body, err := io.ReadAll(resp.Body)
					if err != nil || resp.ProtoMajor != version {
						t.Fatalf("%s: got %s, %v", path, resp.Proto, err)
					}
					return resp, string(body)
				})
			})
		}
	})
}
