package suite

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// After a body has failed because it was too slow, further reads fail as well and do not report io.EOF.
func TestTruncatedBodyErrorIsSticky(t *testing.T) {
	OnBothEngines(t, func(t *testing.T, engine dunlin.Engine) {
		const size = 1 << 40
		again := make(chan string, 1)
		read := func(body io.Reader) {
			_, err := io.Copy(io.Discard, body)
			n, then := body.Read(make([]byte, 100))
			again <- fmt.Sprint(dunlin.Error(err).StatusCode(), " ", n, " ", then != nil)
		}
		config := dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Body: 50 * time.Millisecond}, Limits: dunlin.Limits{MinBodyRate: 1 << 30, MaxBody: size}}
		addr, _ := Start(t, config, func(app *dunlin.App) {
			app.Post("/own", func(r *dunlin.Request) dunlin.Response {
				read(r.Body())
				return dunlin.Text("read")
			})
			app.HandleStd("POST", "/std", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { read(r.Body) }))
		})
		for _, path := range []string{"/own", "/std"} {
			conn := Dial(t, addr)
			Send(t, conn, Request("POST "+path, fmt.Sprintf("Content-Length: %d", int64(size))))
			sent := make(chan struct{})
			go func() { // small pieces, so that the body never ends
				defer close(sent)
				for {
					if _, err := io.WriteString(conn, strings.Repeat("x", 100)); err != nil {
						return
					}
				}
			}()
			if got := Await(t, "the second read", again); got != "408 0 true" {
				t.Errorf("%s: got %q, want 408, then nothing but an error", path, got)
			}
			_ = conn.Close()
			<-sent
		}
	})
}

// Errors that wrap io.EOF mean that the body is complete. A truncated body fails with io.ErrUnexpectedEOF, also in standard
// handlers.
func TestTruncatedBodyIsUnexpectedEOF(t *testing.T) {
	data := strings.Repeat("x", 70_000) // more than is buffered before the action begins
	chunk := fmt.Sprintf("%x\r\n%s\r\n", len(data), data)
	onAll(t, Adapters, func(t *testing.T, engine dunlin.Engine) {
		a := adapterOf(t)
		begun, errs := make(chan struct{}, 1), make(chan error, 2)
		read := func(body io.Reader) {
			begun <- struct{}{}
			_, err := io.Copy(io.Discard, body)
			_, again := body.Read(make([]byte, 1))
			errs <- err
			errs <- again
		}
		byStd := func(_ http.ResponseWriter, r *http.Request) { read(r.Body) }
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Post("/own", func(r *dunlin.Request) dunlin.Response {
				read(r.Body())
				return dunlin.Text("read")
			})
			app.HandleStd("POST", "/std", http.HandlerFunc(byStd))
			app.Mount("/behind", http.HandlerFunc(byStd), func(next dunlin.Action) dunlin.Action {
				return func(r *dunlin.Request) dunlin.Response { return next(r) }
			})
		})
		for _, path := range []string{"/own", "/std", "/behind"} {
			for _, c := range []struct{ name, framing, sent string }{
				{"in a length", "Content-Length: 1048576", data},
				{"in a chunk", "Transfer-Encoding: chunked", "100000\r\n" + data},
				{"behind a chunk", "Transfer-Encoding: chunked", chunk},
				{"in the size of a chunk", "Transfer-Encoding: chunked", chunk + "1"},
				{"in the last chunk", "Transfer-Encoding: chunked", chunk + "0\r\n"},
			} {
				conn := Dial(t, addr)
				Send(t, conn, "POST "+path+" HTTP/1.1\r\nHost: h.example\r\n"+c.framing+"\r\n\r\n"+c.sent)
				Await(t, "the handler", begun) // an HTTP/2 stream that ends earlier does not reach the handler
				_ = conn.Close()
				err := Await(t, "the error", errs)
				again := Await(t, "the error of another read", errs)
				if err == nil || errors.Is(err, io.EOF) || !a.Memory && errors.Is(again, io.EOF) { // in memory, net/http reads the body for the test
					t.Errorf("%s, broken off %s: %v and then %v, which says that it is complete", path, c.name, err, again)
				}
				if strings.HasSuffix(c.sent, "0\r\n") && a.Name == "std_by_TLS" {
					continue // net/http has an error of its own for trailers
				}
				if !a.Memory && (!errors.Is(err, io.ErrUnexpectedEOF) || !a.H2 && path != "/own" && err != io.ErrUnexpectedEOF) {
					t.Errorf("%s, broken off %s: %v, want io.ErrUnexpectedEOF", path, c.name, err)
				}
			}
		}
	})
}

// Handlers recognize a passed read deadline by a type assertion to net.Error.
func TestReadPastDeadlineIsNetError(t *testing.T) {
	for _, adapter := range Adapters {
		if adapter.Memory {
			continue // there are no deadlines
		}
		adapter.On(t, func(t *testing.T, engine dunlin.Engine) {
			errs := make(chan error, 1)
			passed := func(w http.ResponseWriter, r *http.Request) {
				c := http.NewResponseController(w)
				if err := c.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
					t.Error(err)
				}
				_, err := io.Copy(io.Discard, r.Body)
				errs <- err
			}
			slow := func(_ http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, r.Body)
				errs <- err
			}
			addr, _ := Start(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Body: 50 * time.Millisecond}}, func(app *dunlin.App) {
				app.HandleStd("POST", "/passed", http.HandlerFunc(passed))
				app.HandleStd("POST", "/slow", http.HandlerFunc(slow))
				app.Post("/own", func(r *dunlin.Request) dunlin.Response {
					slow(nil, &http.Request{Body: io.NopCloser(r.Body())})
					return dunlin.Text("read")
				})
			})
			for _, path := range []string{"/passed", "/slow", "/own"} {
				conn := Dial(t, addr)
				Send(t, conn, Request("POST "+path, "Content-Length: 1048576"))
				err := Await(t, "the handler", errs)
				if timeout, is := err.(net.Error); !is || !timeout.Timeout() {
					t.Errorf("%s: got %T %v, want a net.Error that is a timeout", path, err, err)
				}
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: %v, want os.ErrDeadlineExceeded", path, err)
				}
				_ = conn.Close()
			}
		})
	}
}

// A form whose body is complete but ends inside a part is an error, too.
func TestMalformedFormIsAnError(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		errs := make(chan error, 1)
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Post("/parts", func(r *dunlin.Request) dunlin.Response {
				var last error
				for part, err := range r.Parts() {
					if last = err; err == nil {
						_, last = io.Copy(io.Discard, part)
					}
				}
				errs <- last
				return dunlin.Text("read")
			})
		})
		_ = AskConn(t, addr, Request("POST /parts", multi, "", strings.TrimSuffix(parts("a=1", "b=2"), "--b d--\r\n")))
		if err := Await(t, "the action", errs); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%v, which says that it is complete", err)
		}
	})
}
