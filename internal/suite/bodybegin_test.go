package suite

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// Tests of actions that start before the request body is complete.

// framings are the ways to send a small body in two parts.
var framings = map[string]struct{ head, first, rest string }{
	"length":  {"Content-Length: 8", "one\n", "two\n"},
	"chunked": {"Transfer-Encoding: chunked", "4\r\none\n\r\n", "4\r\ntwo\n\r\n0\r\n\r\n"},
}

func onFramings(t *testing.T, f func(t *testing.T, engine dunlin.Engine, head, first, rest string)) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		for name, c := range framings {
			t.Run(name, func(t *testing.T) { f(t, engine, c.head, c.first, c.rest) })
		}
	})
}

// A handler receives the first part before the second is sent, and responds to each.
func TestBodyIsStreamed(t *testing.T) {
	onFramings(t, func(t *testing.T, engine dunlin.Engine, head, first, rest string) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				c := http.NewResponseController(w)
				if err := c.EnableFullDuplex(); err != nil {
					t.Error(err)
				}
				for lines := bufio.NewReader(r.Body); ; {
					line, err := lines.ReadString('\n')
					if err != nil {
						return
					}
					_, _ = io.WriteString(w, strings.ToUpper(line))
					if err := c.Flush(); err != nil {
						t.Error(err)
					}
				}
			}))
		})
		conn := AskConn(t, addr, Request("POST /", head)+first)
		br := bufio.NewReader(conn)
		resp, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer := bufio.NewReader(resp.Body)
		for i, want := range []string{"ONE\n", "TWO\n"} {
			if i == 1 {
				Send(t, conn, rest)
			}
			if line, err := answer.ReadString('\n'); line != want || err != nil {
				t.Fatalf("got %q, %v, want %q", line, err, want)
			}
		}
		if rest, err := io.ReadAll(answer); err != nil || len(rest) > 0 || resp.Close {
			t.Errorf("at the end %q, %v, close %v", rest, err, resp.Close)
		}
		Send(t, conn, Request("GET /"))
		if _, err := http.ReadResponse(br, nil); err != nil {
			t.Errorf("the next request: %v", err)
		}
	})
}

// The rest of a long body with a length stays readable for the action while it responds.
func TestLongBodyReadWhileAnswering(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Mount("/std", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(w, r.Body) // an error shows in the answer
			}))
			app.Post("/stream", func(r *dunlin.Request) dunlin.Response {
				body := r.Body()
				return dunlin.Stream("text/plain", func(w io.Writer) error {
					_, err := io.Copy(w, body)
					return err
				})
			})
		})
		body := strings.Repeat("0123456789abcde\n", 16<<10)
		for _, path := range []string{"/std", "/stream"} {
			conn := Dial(t, addr)
			sent := make(chan error, 1)
			go func() {
				_, err := io.WriteString(conn, Request("POST "+path, "", body))
				sent <- err
			}()
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			got, err := io.ReadAll(resp.Body)
			if string(got) != body || err != nil {
				t.Errorf("%s: got %d bytes of %d, %v", path, len(got), len(body), err)
				_ = conn.Close() // otherwise sending may block
			}
			if err := <-sent; err != nil && !t.Failed() {
				t.Errorf("%s: send: %v", path, err)
			}
		}
	})
}

// A handler that reads the body while it responds, without having enabled full duplex, gets the complete body or an error. A
// reverse proxy works this way. net/http reads the body and discards it; the rest must not look like the complete body.
func TestBodyReadDuringResponse(t *testing.T) {
	const pieces = 20
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		begun, read := make(chan error), make(chan error)
		var lines int
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := bufio.NewReader(r.Body)
				_, err := body.ReadString('\n')
				begun <- err
				end := make(chan error)
				go func() {
					for lines = 0; ; lines++ {
						if _, err := body.ReadString('\n'); err != nil {
							end <- err
							return
						}
					}
				}()
				_ = http.NewResponseController(w).Flush()
				read <- <-end
			}))
		})
		for range 20 {
			conn := AskConn(t, addr, Request("POST /", "Transfer-Encoding: chunked")+"4\r\none\n\r\n")
			if err := <-begun; err != nil {
				t.Fatal(err)
			}
			for range pieces {
				Send(t, conn, "5\r\nmore\n\r\n")
			}
			Send(t, conn, "0\r\n\r\n")
			if err := <-read; lines != pieces && (err == io.EOF || engine == dunlin.EngineLoop) {
				t.Errorf("the handler reads %d of %d lines, and %v", lines, pieces, err)
			}
			_ = conn.Close()
		}
	})
}

// All kinds of actions get the complete body if it arrives in two parts.
func TestBodyInTwoReads(t *testing.T) {
	onFramings(t, func(t *testing.T, engine dunlin.Engine, head, first, rest string) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			for name, read := range readers {
				app.Post("/"+name, read)
			}
		})
		for _, name := range []string{"bytes", "body", "std", "bytes"} {
			conn := AskConn(t, addr, Request("POST /"+name, head)+first)
			time.AfterFunc(5*time.Millisecond, func() { _, _ = io.WriteString(conn, rest) }) // any time will do
			if got, err := ReadAnswer(bufio.NewReader(conn), "POST"); err != nil || !strings.HasSuffix(got, "\n\none\ntwo\n") {
				t.Errorf("%s: got %q, %v", name, got, err)
			}
		}
	})
}

// A reader of a body learns that the body arrives too slowly, and may respond itself.
func TestActionSeesSlowBody(t *testing.T) {
	onFramings(t, func(t *testing.T, engine dunlin.Engine, head, first, _ string) {
		addr, _ := Start(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Body: 100 * time.Millisecond}}, func(app *dunlin.App) {
			app.Post("/", func(r *dunlin.Request) dunlin.Response {
				b, err := io.ReadAll(r.Body())
				return dunlin.Text(fmt.Sprintf("%q %d", b, dunlin.Error(err).StatusCode())).Status(http.StatusAccepted)
			})
		})
		got, err := ReadAnswer(bufio.NewReader(AskConn(t, addr, Request("POST /", head)+first)), "POST")
		if err != nil || !strings.HasPrefix(got, "HTTP/1.1 202 ") || !strings.HasSuffix(got, `"one\n" 408`) {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// The connection is kept if the response says so, regardless of the unread part of a chunked body.
func TestUnreadChunks(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/probe", Text("probe"))
			app.Post("/", Text("ignored"))
			app.HandleStd("POST", "/std", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, strings.Repeat("ignored", 10_000))
			}))
		})
		for _, path := range []string{"/", "/std"} {
			for _, size := range []int{10, 60_000, 70_000, 200_000, 1_000_000} {
				conn := Dial(t, addr)
				go func() {
					_, _ = io.WriteString(conn, Request("POST "+path, "Transfer-Encoding: chunked"))
					for left := size; left > 0; left -= 5_000 {
						n := min(left, 5_000)
						_, _ = fmt.Fprintf(conn, "%x\r\n%s\r\n", n, strings.Repeat("x", n))
					}
					_, _ = io.WriteString(conn, "0\r\n\r\n"+Request("GET /probe"))
				}()
				br := bufio.NewReader(conn)
				resp, err := http.ReadResponse(br, nil)
				if err != nil {
					t.Fatalf("%s, %d bytes: %v", path, size, err)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					t.Fatalf("%s, %d bytes: %v", path, size, err)
				}
				if resp.Close {
					continue
				}
				if got, err := ReadAnswer(br, "GET"); got != Plain("probe") {
					t.Errorf("%s, %d bytes: keep-alive was promised, but then came %q, %v", path, size, got, err)
				}
			}
		}
	})
}
