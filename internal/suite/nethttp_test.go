package suite

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// Tests of guarantees for standard handlers that few handlers rely on.

// answerOf returns the head and the body of a standard handler's response to one request, as received.
func answerOf(t *testing.T, engine dunlin.Engine, request string, h http.HandlerFunc) (head, body string) {
	t.Helper()
	addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) { app.Mount("/", h) })
	conn := AskConn(t, addr, request)
	if err := CloseWrite(conn); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ = strings.Cut(string(all), "\r\n\r\n")
	return head + "\r\n", body
}

func TestStdHeaders(t *testing.T) {
	for _, c := range []struct {
		name     string
		set      func(http.Header)
		status   int
		has, not []string
	}{
		{"an upgrade is required", func(h http.Header) { h.Set("Connection", "Upgrade"); h.Set("Upgrade", "TLS/1.2") },
			426, []string{"Connection: Upgrade\r\n", "Upgrade: TLS/1.2\r\n"}, nil},
		{"options beside close", func(h http.Header) { h.Set("Connection", "X-Hop, Close") },
			200, []string{"X-Hop", "lose\r\n"}, []string{"keep-alive"}},
		{"nil Date", func(h http.Header) { h["Date"] = nil }, 200, nil, []string{"Date:"}},
		{"nil Content-Type", func(h http.Header) { h["Content-Type"] = nil }, 200, []string{"Date:"}, []string{"Content-Type:"}},
		{"nil Content-Length", func(h http.Header) { h["Content-Length"] = nil }, 200, []string{"Transfer-Encoding: chunked\r\n"}, []string{"Content-Length:"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
				head, body := answerOf(t, engine, Request("GET /"), func(w http.ResponseWriter, _ *http.Request) {
					c.set(w.Header())
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, "text")
				})
				if !strings.HasPrefix(head, fmt.Sprintf("HTTP/1.1 %d ", c.status)) || !strings.Contains(body, "text") {
					t.Errorf("got %q %q", head, body)
				}
				WantContains(t, "the head", head, c.has...)
				WantLacks(t, "the head", head, c.not...)
			})
		})
	}
}

func TestStdWriter(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		head, body := answerOf(t, engine, Request("POST /", "Expect:", "", "abc"), func(w http.ResponseWriter, r *http.Request) {
			sent, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusAccepted)
			w.WriteHeader(0) // superfluous, so its value is not checked
			n, err := w.(io.StringWriter).WriteString("a string")
			if n != 8 || err != nil {
				t.Errorf("WriteString: got %d, %v", n, err)
			}
			_, _ = w.Write(sent)
		})
		if !strings.HasPrefix(head, "HTTP/1.1 202 ") || body != "a stringabc" {
			t.Errorf("got %q %q", head, body)
		}
	})
}

func TestStdCloseNotify(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		running, told := make(chan struct{}), make(chan bool, 2)
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c := w.(closeNotifier).CloseNotify()
				if again := w.(closeNotifier).CloseNotify(); again != c {
					t.Error("another channel")
				}
				if r.URL.Path == "/" {
					close(running)
					told <- <-c
				}
				w.Header().Set("Content-Type", "text/plain; charset=utf-8")
				_, _ = io.WriteString(w, "probe")
			}))
		})
		Exchange(t, addr, false, Request("GET /probe"))
		conn := AskConn(t, addr, Request("GET /"))
		<-running
		_ = conn.Close()
		if !Await(t, "CloseNotify", told) {
			t.Error("the channel was closed")
		}
	})
}

// A passed write deadline holds even if the socket has room.
func TestStdPastWriteDeadline(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		for _, flush := range []bool{false, true} {
			_, body := answerOf(t, engine, Request("GET /"), func(w http.ResponseWriter, _ *http.Request) {
				c := http.NewResponseController(w)
				_, _ = io.WriteString(w, "one")
				_ = c.Flush()
				if err := c.SetWriteDeadline(time.Now().Add(-time.Second)); err != nil {
					t.Error(err)
				}
				_, _ = io.WriteString(w, "two")
				if !flush {
					return
				}
				if err := c.Flush(); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("Flush: %v", err)
				}
			})
			if body != "3\r\none\r\n" {
				t.Errorf("flush %v: got %q", flush, body)
			}
		}
	})
}

// A deadline ends a call that is blocked already.
func TestStdDeadlineWakes(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		t.Run("Read", func(t *testing.T) {
			done := make(chan struct{})
			addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
				app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer close(done)
					c := http.NewResponseController(w)
					failed := make(chan error, 1)
					go func() {
						_, err := io.ReadAll(r.Body)
						failed <- err
					}()
					for _, at := range []time.Time{time.Now().Add(time.Hour), {}, time.Now().Add(-time.Second)} {
						if err := c.SetReadDeadline(at); err != nil {
							t.Error(err)
						}
					}
					if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("Read: %v", err)
					}
				}))
			})
			AskConn(t, addr, Request("POST /", "Content-Length: 100000"))
			<-done
		})
		t.Run("Write", func(t *testing.T) {
			done := make(chan struct{})
			addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
				app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					defer close(done)
					failed := make(chan error, 1)
					go func() {
						_, err := io.CopyN(w, endless{}, 1<<30)
						failed <- err
					}()
					if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(-time.Second)); err != nil {
						t.Error(err)
					}
					if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("Write: %v", err)
					}
				}))
			})
			AskConn(t, addr, Request("GET /"))
			<-done
		})
	})
}

// A passed read deadline can be extended without losing data of the body, except for chunked bodies, which cannot be read
// further.
func TestStdReadDeadlinePutOff(t *testing.T) {
	onFramings(t, func(t *testing.T, engine dunlin.Engine, head, first, rest string) {
		for _, end := range []string{"read on", "return"} {
			if end == "read on" && strings.HasPrefix(head, "Transfer-Encoding") {
				continue // neither net/http's chunk reader nor that of the event loops can continue
			}
			lapsed := make(chan struct{})
			addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
				app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodGet {
						_, _ = io.WriteString(w, "next")
						return
					}
					c := http.NewResponseController(w)
					body := bufio.NewReader(r.Body)
					line, err := body.ReadString('\n')
					if line != "one\n" || err != nil {
						t.Errorf("got %q, %v", line, err)
					}
					for range 2 {
						if err := c.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
							t.Error(err)
						}
						if _, err := body.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
							t.Errorf("in no time: %v", err)
						}
					}
					if end == "return" {
						return
					}
					if err := c.SetReadDeadline(time.Time{}); err != nil {
						t.Error(err)
					}
					close(lapsed)
					if line, err := io.ReadAll(body); string(line) != "two\n" || err != nil {
						t.Errorf("later %q, %v", line, err)
					}
				}))
			})
			conn := AskConn(t, addr, Request("POST /", head)+first)
			br := bufio.NewReader(conn)
			if end == "read on" {
				<-lapsed
				Send(t, conn, rest+Request("GET /"))
			}
			resp, err := http.ReadResponse(br, nil)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%s: got %v, %v", end, resp, err)
			}
			if resp.Close != (end == "return") {
				t.Errorf("%s: close %v", end, resp.Close)
			}
			if resp.Close {
				continue
			}
			if got, err := ReadAnswer(br, "GET"); err != nil || !strings.HasSuffix(got, "\n\nnext") {
				t.Errorf("the next request: got %q, %v", got, err)
			}
		}
	})
}

// If the client was told that the connection continues, it may send the rest of the body, even if the handler did not wait
// for it.
func TestStdReadDeadlineAndDuplex(t *testing.T) {
	onFramings(t, func(t *testing.T, engine dunlin.Engine, head, first, rest string) {
		if engine == dunlin.EngineStd {
			t.Skip("net/http takes the rest of the body for the next request")
		}
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					_, _ = io.WriteString(w, "next")
					return
				}
				c := http.NewResponseController(w)
				err := errors.Join(c.EnableFullDuplex(), c.Flush(), c.SetReadDeadline(time.Now().Add(-time.Second)))
				if err != nil {
					t.Error(err)
				}
				if _, err := io.ReadAll(r.Body); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("in no time: %v", err)
				}
			}))
		})
		conn := AskConn(t, addr, Request("POST /", head)+first)
		br := bufio.NewReader(conn)
		got, err := ReadAnswer(br, "POST")
		if err != nil || !strings.HasPrefix(got, "HTTP/1.1 200 ") || strings.Contains(got, "Connection:") {
			t.Fatalf("got %q, %v", got, err)
		}
		Send(t, conn, rest+Request("GET /"))
		if got, err := ReadAnswer(br, "GET"); err != nil || !strings.HasSuffix(got, "\n\nnext") {
			t.Errorf("the next request: got %q, %v", got, err)
		}
	})
}

// endless is a source of zeros.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// The files of a parsed form are removed with its request. The engines share the folder, so they run one after the other.
func TestStdFormFiles(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	var form bytes.Buffer
	mw := multipart.NewWriter(&form)
	part, err := mw.CreateFormFile("file", "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = part.Write(bytes.Repeat([]byte("x"), 300_000))
	_ = mw.Close()
	send := Request("POST /PATH", "Content-Type: "+mw.FormDataContentType(), "", form.String())
	files := func(t *testing.T) int {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	parse := func(t *testing.T, r *http.Request) {
		if err := r.ParseMultipartForm(1); err != nil {
			t.Error(err)
		}
		if files(t) != 1 {
			t.Errorf("there are %d files", files(t))
		}
	}
	check := func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Mount("/std", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { parse(t, r) }))
			app.Mount("/panic", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				parse(t, r)
				panic(http.ErrAbortHandler)
			}))
			app.Post("/action", func(r *dunlin.Request) dunlin.Response {
				parse(t, r.Std())
				return dunlin.Text("")
			})
			app.Mount("/hijacked", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				parse(t, r)
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_ = conn.Close()
			}))
		})
		for _, path := range []string{"std", "panic", "action", "hijacked"} {
			conn := AskConn(t, addr, strings.Replace(send, "PATH", path, 1))
			_ = CloseWrite(conn)
			_, _ = bufio.NewReader(conn).WriteTo(io.Discard)
			Soon(t, path+": all files are removed", func() bool { return files(t) == 0 })
		}
	}
	for _, a := range []Adapter{std, loop, loopOverTLS} {
		a.On(t, check)
	}
}

// closeNotifier is http.CloseNotifier, which is deprecated but used by old code.
type closeNotifier interface{ CloseNotify() <-chan bool }

// tellTarget responds with the target of the request.
func tellTarget(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprintf(w, "%s: %s %q %q", name, r.Method, r.URL.Path, r.Host)
	})
}

func TestMountConnect(t *testing.T) {
	// net/http of Go 1.27 closes the connection after a response to CONNECT and sends no length.
	ask := func(t *testing.T, addr, send string) string {
		t.Helper()
		got, err := ReadAnswer(bufio.NewReader(AskConn(t, addr, send)), http.MethodConnect)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/probe", Text("probe"))
			app.Get("/{rest...}", Text("not this"))
			app.Mount("/rpc", tellTarget("rpc"))
			app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = fmt.Fprintf(conn, "%s %s %q", r.Method, r.URL.Host, r.URL.Path)
				_ = conn.Close()
			}))
		})
		got := ask(t, addr, Request("CONNECT /rpc/x"))
		if want := `rpc: CONNECT "/rpc/x" "h.example"`; !strings.HasPrefix(got, "HTTP/1.1 200 OK\n") || !strings.HasSuffix(got, "\n\n"+want) {
			t.Errorf("%s\nwant 200 and %s", got, want)
		}
		got = ask(t, addr, "CONNECT /rpc/x HTTP/1.0\n\n") // as rpc.DialHTTP does
		if want := `rpc: CONNECT "/rpc/x" ""`; !strings.HasPrefix(got, "HTTP/1.0 200 OK\n") || !strings.HasSuffix(got, "\n\n"+want) {
			t.Errorf("%s\nwant 200 and %s", got, want)
		}
		for _, head := range []string{Request("CONNECT h.example:443"), "CONNECT h.example:443 HTTP/1.1\r\n\r\n"} {
			got, err := io.ReadAll(AskConn(t, addr, head))
			if want := `CONNECT h.example:443 ""`; err != nil || string(got) != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		}
		addr, _ = Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/probe", Text("probe"))
			app.Handle("*", "/{rest...}", Text("not this"))
			app.Mount("/a", tellTarget("a"))
		})
		if got := ask(t, addr, Request("CONNECT h.example:443")); !strings.HasPrefix(got, "HTTP/1.1 404 ") {
			t.Errorf("without a handler for all paths: got %s", got)
		}
	})
}

func TestMountUncleanPaths(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/probe", Text("probe"))
			app.Get("/own/{name}", Text("own"))
			app.Mount("/raw", tellTarget("raw")).UncleanPaths(dunlin.UncleanPathsServe)
			app.Mount("/{tenant}/deep", tellTarget("deep"), func(next dunlin.Action) dunlin.Action {
				return func(r *dunlin.Request) dunlin.Response {
					return next(r).Header("X-Seen", r.Path()+" "+r.Param("tenant"))
				}
			}).UncleanPaths(dunlin.UncleanPathsServe)
			app.Mount("/strict", tellTarget("strict")).UncleanPaths(dunlin.UncleanPathsRefuse)
			app.Mount("/plain", tellTarget("plain"))
		})
		for target, want := range map[string]string{
			"/raw//a/../b":         Plain(`raw: GET "/raw//a/../b" "h.example"`),
			"/x/../raw/%2e%2e/raw": Plain(`raw: GET "/x/../raw/../raw" "h.example"`),
			"/raw/a":               Plain(`raw: GET "/raw/a" "h.example"`),
			"/t//deep/x":           strings.Replace(Plain(`deep: GET "/t//deep/x" "h.example"`), "\n\n", "\nX-Seen: /t/deep/x t\n\n", 1),
			"/strict//a":           "HTTP/1.1 400 ",
			"/plain//a":            "HTTP/1.1 308 ",
			"/own//a":              "HTTP/1.1 308 ",
			"/raw/../own/a":        "HTTP/1.1 308 ", // the cleaned path is matched
			"/raw/../plain/a":      "HTTP/1.1 308 ",
			"/nowhere//a":          "HTTP/1.1 404 ",
		} {
			if got := Exchange(t, addr, false, Request("GET "+target))[0]; !strings.HasPrefix(got, want) {
				t.Errorf("%s:\n%s\nwant:\n%s", target, got, want)
			}
		}
	})
	app, _ := NewApp(dunlin.Config{UncleanPaths: dunlin.UncleanPathsServe})
	app.Mount("/m", tellTarget("m"))
	route := app.Get("/a", Text("a"))
	if w := Do(app, "GET", "http://h/m//x"); w.Code != 200 {
		t.Errorf("by Config: got %d", w.Code)
	}
	if w := Do(app, "GET", "http://h//a"); w.Code != 308 {
		t.Errorf("by Config, another route: got %d", w.Code)
	}
	WantContains(t, "the panic", PanicText(func() { route.UncleanPaths(dunlin.UncleanPathsServe) }), "UncleanPathsServe", "/a")
}
