package dunlin_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// A body whose client stops sending ends the read, not the patience of the server.
func TestBodyTimeout(t *testing.T) {
	config := dunlin.Config{BodyTimeout: 30 * time.Millisecond}
	onEngines(t, func(t *testing.T, engine dunlin.Engine) {
		config.Engine = engine
		addr, _ := start(t, config, func(app *dunlin.App) {
			app.Post("/bytes", func(r *dunlin.Request) dunlin.Response {
				if _, err := r.Bytes(); err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Text("read")
			})
			app.Post("/std", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.ReadAll(r.Body); err != nil {
					w.WriteHeader(http.StatusRequestTimeout)
				}
			})))
		})
		for _, path := range []string{"/bytes", "/std"} {
			for _, send := range []string{
				req("POST "+path, "Content-Length: 100000") + strings.Repeat("x", 5000),
				req("POST "+path, "Content-Length: 100000"),
				req("POST "+path, "Transfer-Encoding: chunked") + "11170\r\n" + strings.Repeat("x", 69_000),
			} {
				conn := dial(t, addr)
				_, _ = io.WriteString(conn, send)
				got, err := readAnswer(bufio.NewReader(conn), "POST")
				if err != nil || got[9:12] != "408" || !strings.Contains(got, "Connection: close\n") {
					t.Errorf("%.90q: %q, %v", send, got, err)
				}
			}
		}
	})
}

// The time for a body is over when the body is here: the action may take longer,
// and so may the next request.
func TestBodyTimeoutEnds(t *testing.T) {
	const pause = 20 * time.Millisecond
	onEngines(t, func(t *testing.T, engine dunlin.Engine) {
		began := make(chan struct{}, 1)
		addr, _ := start(t, dunlin.Config{Engine: engine, BodyTimeout: pause}, func(app *dunlin.App) {
			app.Post("/", func(r *dunlin.Request) dunlin.Response {
				began <- struct{}{}
				n, err := io.Copy(io.Discard, r.Body())
				if err != nil {
					return dunlin.Error(err)
				}
				select {
				case <-r.Context().Done():
					return dunlin.Error(errors.New("cancelled"))
				case <-time.After(4 * pause):
				}
				return dunlin.Text(fmt.Sprint(n))
			})
		})
		conn := dial(t, addr)
		br := bufio.NewReader(conn)
		for range 2 {
			_, _ = io.WriteString(conn, req("POST /", "Content-Length: 100000"))
			<-began
			_, _ = io.WriteString(conn, strings.Repeat("x", 100_000))
			got, err := readAnswer(br, "POST")
			if err != nil || got != plain("100000") {
				t.Fatalf("%q, %v", got, err)
			}
		}
	})
}

// A client that takes nothing of a long answer is given up.
func TestWriteTimeout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<30), f.Close()); err != nil {
		t.Fatal(err)
	}
	onEngines(t, func(t *testing.T, engine dunlin.Engine) {
		ended := make(chan error, 1)
		addr, _ := start(t, dunlin.Config{Engine: engine, WriteTimeout: 30 * time.Millisecond}, func(app *dunlin.App) {
			app.Get("/stream", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/plain", func(w io.Writer) error {
					piece := make([]byte, 10_000)
					for {
						if _, err := w.Write(piece); err != nil {
							ended <- err
							return err
						}
					}
				})
			})
			app.Get("/piece", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, err := w.Write(make([]byte, 64<<20))
				ended <- err
			})))
			app.Get("/file", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.ServeFile(w, r, path)
				ended <- errors.New("ServeFile does not say")
			})))
		})
		for _, path := range []string{"/stream", "/piece", "/file"} {
			conn := dial(t, addr)
			_, _ = io.WriteString(conn, req("GET "+path))
			select {
			case err := <-ended:
				if err == nil {
					t.Errorf("%s: no error", path)
				}
			case <-time.After(patience):
				t.Errorf("%s: still waiting for the client", path)
			}
		}
	})
}
