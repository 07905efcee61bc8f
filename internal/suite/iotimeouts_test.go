package suite

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// A body whose client stops sending ends the read with an error.
func TestBodyTimeout(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Body: 30 * time.Millisecond}}, func(app *dunlin.App) {
			app.Post("/bytes", func(r *dunlin.Request) dunlin.Response {
				if _, err := r.Bytes(); err != nil {
					return dunlin.Error(err)
				}
				return dunlin.Text("read")
			})
			app.HandleStd("POST", "/std", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := io.ReadAll(r.Body); err != nil {
					w.WriteHeader(http.StatusRequestTimeout)
				}
			}))
		})
		for _, path := range []string{"/bytes", "/std"} {
			for _, send := range []string{
				Request("POST "+path, "Content-Length: 100000") + strings.Repeat("x", 5000),
				Request("POST "+path, "Content-Length: 100000"),
				Request("POST "+path, "Transfer-Encoding: chunked") + "11170\r\n" + strings.Repeat("x", 69_000),
				Request("POST "+path, "Transfer-Encoding: chunked") + "1\r\nx\r\n0\r\n",
				Request("POST "+path, "Transfer-Encoding: chunked") + "1\r\nx\r\n0\r\nX-Trailer: a",
				Request("POST "+path, "Transfer-Encoding: chunked") + "1\r\nx\r\n0\r\nX-Trailer: a\r\n",
			} {
				conn := Dial(t, addr)
				_, _ = io.WriteString(conn, send)
				got, err := ReadAnswer(bufio.NewReader(conn), "POST")
				if err != nil || got[9:12] != "408" || !strings.Contains(got, "Connection: close\n") {
					t.Errorf("%.90q: got %q, %v", send, got, err)
				}
			}
		}
	})
}

// Timeouts.Body ends when the body is complete. The action may take longer, and so may the next request.
func TestBodyTimeoutEnds(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		Unhurried(t, 100*time.Millisecond, func(pause time.Duration) error {
			began := make(chan struct{}, 1)
			addr, _ := Start(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Body: pause}}, func(app *dunlin.App) {
				app.Post("/", func(r *dunlin.Request) dunlin.Response {
					began <- struct{}{}
					n, err := io.Copy(io.Discard, r.Body())
					if err != nil {
						return dunlin.Error(err)
					}
					select {
					case <-r.Context().Done():
						return dunlin.Error(errors.New("cancelled"))
					case <-time.After(2 * pause):
					}
					return dunlin.Text(fmt.Sprint(n))
				})
			})
			conn := Dial(t, addr)
			br := bufio.NewReader(conn)
			for range 2 {
				_, _ = io.WriteString(conn, Request("POST /", "Content-Length: 100000"))
				Await(t, "the action", began)
				_, _ = io.WriteString(conn, strings.Repeat("x", 100_000))
				got, err := ReadAnswer(br, "POST")
				if strings.HasPrefix(got, "HTTP/1.1 408 ") {
					return Late(got)
				}
				if err != nil || got != Plain("100000") {
					return fmt.Errorf("%q, %v", got, err)
				}
			}
			return nil
		})
	})
}

// A body that its action reads in part or not at all gets no more time than one that is read, regardless of the answer.
func TestBodyTimeoutUnread(t *testing.T) {
	long := strings.Repeat("long ", 20_000)
	stream := func(w io.Writer) error { _, err := io.WriteString(w, long); return err }
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		late := make(chan struct{})
		addr, _ := Start(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Body: 20 * time.Millisecond}}, func(app *dunlin.App) {
			app.Post("/short", Text("short"))
			app.Post("/long", Text(long))
			app.Post("/nothing", Constant(dunlin.NoContent()))
			app.Post("/stream", func(*dunlin.Request) dunlin.Response { return dunlin.Stream("text/plain", stream) })
			app.Post("/part", func(r *dunlin.Request) dunlin.Response {
				_, _ = io.ReadFull(r.Body(), make([]byte, 2))
				return dunlin.Text("part")
			})
			app.Post("/refused", readers["bytes"]).MaxBody(2)
			app.Post("/late", func(*dunlin.Request) dunlin.Response { <-late; return dunlin.Text("late") }).Timeout(time.Millisecond)
			app.Post("/abort", func(*dunlin.Request) dunlin.Response { panic(http.ErrAbortHandler) })
			app.Post("/goexit", func(*dunlin.Request) dunlin.Response { runtime.Goexit(); panic("unreachable") })
			app.HandleStd("POST", "/std", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = stream(w) }))
			app.HandleStd("POST", "/duplex", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
					t.Error(err)
				}
				_ = stream(w)
			}))
		})
		defer close(late)
		waiting := make(map[string]io.Reader)
		for _, path := range []string{"/short", "/long", "/nothing", "/stream", "/part", "/refused", "/late", "/std", "/duplex", "/abort", "/goexit"} {
			for _, sent := range []string{
				"Content-Length: 100\r\n\r\n", "Content-Length: 100\r\n\r\nabc", "Content-Length: 100000\r\n\r\nabc",
				"Transfer-Encoding: chunked\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n5\r\nabc",
				"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n",
			} {
				conn := Dial(t, addr)
				Send(t, conn, "POST "+path+" HTTP/1.1\r\nHost: x\r\n"+sent)
				waiting[path+" "+sent] = conn
			}
		}
		for sent, conn := range waiting {
			got, err := io.ReadAll(conn) // the end may be a reset
			if errors.Is(err, os.ErrDeadlineExceeded) || !strings.HasPrefix(string(got), "HTTP/1.1 ") && !strings.HasPrefix(sent, "/abort ") && !strings.HasPrefix(sent, "/goexit ") {
				t.Errorf("%q: got %.90q, %v; want an answer and the end", sent, got, err)
			}
		}
	})
}

// A complete body that its action left unread does not limit the time of the response or of the next request.
func TestBodyTimeoutEndsUnread(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		Unhurried(t, 100*time.Millisecond, func(pause time.Duration) error {
			addr, _ := Start(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Body: pause}}, func(app *dunlin.App) {
				app.Post("/", func(r *dunlin.Request) dunlin.Response {
					return dunlin.Stream("text/plain", func(w io.Writer) error {
						if err := dunlin.Flush(w); err != nil {
							return err
						}
						select {
						case <-r.Context().Done():
							return errors.New("cancelled")
						case <-time.After(2 * pause):
						}
						_, err := io.WriteString(w, "done")
						return err
					})
				})
			})
			began := time.Now()
			conn := Dial(t, addr)
			var received bytes.Buffer
			br := bufio.NewReader(io.TeeReader(conn, &received))
			for i := range 2 {
				received.Reset()
				_, _ = io.WriteString(conn, Request("POST /", "", strings.Repeat("x", 30_000))) // errors show in the response
				got, err := ReadAnswer(br, "POST")
				// A client that is cut off for its slow body sees only the end of the connection, and not before the timeout.
				due := max(pause/2, time.Duration(2*i)*pause) // a loop's clock may be a little behind; an answer takes twice the time
				if Ended(err) && time.Since(began) >= due && (received.Len() == 0 || strings.HasPrefix(received.String(), "HTTP/1.1 200 OK\r\n")) && !strings.Contains(received.String(), "done") {
					return Late(fmt.Sprintf("cut off at %q: %v", received.String(), err))
				}
				if err != nil || !strings.HasPrefix(got, "HTTP/1.1 200 ") || !strings.HasSuffix(got, "\n\ndone") {
					return fmt.Errorf("%q, %v at %q", got, err, received.String())
				}
			}
			return nil
		})
	})
}

// The longest durations do not overflow and expire at once.
func TestLongestTimeouts(t *testing.T) {
	const ever = math.MaxInt64
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		config := dunlin.Config{
			Engine: engine, Limits: dunlin.Limits{QueueTarget: ever}, Timeouts: dunlin.Timeouts{Action: ever, Head: ever, Body: ever, Write: ever, Idle: ever},
			Process: dunlin.ProcessConfig{DrainGrace: ever, DrainTimeout: ever},
		}
		addr, _ := Start(t, config, func(app *dunlin.App) {
			app.Post("/", readers["bytes"])
			app.Get("/", func(*dunlin.Request) dunlin.Response {
				<-time.After(200 * time.Millisecond) // some ticks of any clock
				return dunlin.Text("waited")
			}).Timeout(ever)
		})
		whole := Request("POST /", "", "body")
		rest := make(map[io.ReadWriter]string)
		for _, n := range []int{0, 3, len(whole) - 3} {
			conn := Dial(t, addr)
			Send(t, conn, whole[:n])
			rest[conn] = whole[n:]
		}
		waits := Dial(t, addr)
		Send(t, waits, Request("GET /"))
		Answered(t, bufio.NewReader(waits), 200, "waited")
		for conn, text := range rest {
			Send(t, conn, text)
			Answered(t, bufio.NewReader(conn), 200, "body")
		}
	})
}

// A client that does not read a long response is cut off.
func TestWriteTimeout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<30), f.Close()); err != nil {
		t.Fatal(err)
	}
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		ended := make(chan error, 1)
		addr, _ := Start(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Write: 30 * time.Millisecond}}, func(app *dunlin.App) {
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
			app.HandleStd("GET", "/piece", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, err := w.Write(make([]byte, 64<<20))
				ended <- err
			}))
			app.HandleStd("GET", "/file", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.ServeFile(w, r, path)
				ended <- errors.New("ServeFile does not say")
			}))
		})
		for _, path := range []string{"/stream", "/piece", "/file"} {
			conn := Dial(t, addr)
			_, _ = io.WriteString(conn, Request("GET "+path))
			select {
			case err := <-ended:
				if err == nil {
					t.Errorf("%s: no error", path)
				}
			case <-time.After(Patience):
				t.Errorf("%s: still waiting for the client", path)
			}
		}
	})
}
