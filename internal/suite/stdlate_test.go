package suite

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// A handler that uses its writer after it has returned does not affect later requests on the connection.
func TestWriterFailsAfterHandlerReturns(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		kept := make(chan http.ResponseWriter, 2)
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.HandleStd("GET", "/keep", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				kept <- w
				_, _ = io.WriteString(w, "short")
			}))
			app.HandleStd("GET", "/flushed", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				kept <- w
				_, _ = io.WriteString(w, "begun")
				_ = http.NewResponseController(w).Flush()
			}))
			app.Get("/next", func(*dunlin.Request) dunlin.Response {
				w := <-kept // while this request uses the connection
				if n, err := io.WriteString(w, strings.Repeat("late", 100_000)); n != 0 || err == nil {
					t.Errorf("a late write: got %d, %v", n, err)
				}
				c := http.NewResponseController(w)
				if err := c.Flush(); err == nil {
					t.Error("a late flush succeeded")
				}
				if _, _, err := c.Hijack(); err == nil {
					t.Error("a late hijack succeeded")
				}
				w.WriteHeader(http.StatusTeapot)
				return dunlin.Text("mine")
			})
		})
		conn := Dial(t, addr)
		br := bufio.NewReader(conn)
		for _, path := range []string{"/keep", "/flushed"} {
			for _, send := range []string{path, "/next"} {
				if _, err := io.WriteString(conn, Request("GET "+send)); err != nil {
					t.Fatal(err)
				}
				got, err := ReadAnswer(br, "GET")
				want := "mine"
				if send != "/next" {
					want = map[string]string{"/keep": "short", "/flushed": "begun"}[send]
				}
				if err != nil || !strings.HasPrefix(got, "HTTP/1.1 200 OK\n") || !strings.HasSuffix(got, want) {
					t.Fatalf("%s: %v\n%s", send, err, got)
				}
			}
		}
	})
}

// The Content-Length that a handler sets for an omitted body is sent unchanged, and none is added.
func TestLengthOfHead(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Handle("HEAD", "/{length}", func(r *dunlin.Request) dunlin.Response {
				length := r.Param("length")
				return dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					switch length {
					case "unknown":
					case "written":
						_, _ = io.WriteString(w, "seven b")
					default:
						w.Header().Set("Content-Length", length)
					}
				}))(r)
			})
		})
		for path, want := range map[string]int64{"/unknown": -1, "/written": 7, "/0": 0, "/1234567": 1234567} {
			resp, err := http.Head("http://" + addr + path)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.ContentLength != want {
				t.Errorf("%s: Content-Length %d, want %d", path, resp.ContentLength, want)
			}
		}
	})
}
