package suite

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// Cases of parity with more than one request, or with the end of the connection.

func parityApp(t *testing.T, engine dunlin.Engine) (addr string, logs *LogBuffer) {
	t.Helper()
	return Start(t, dunlin.Config{Engine: engine, Limits: dunlin.Limits{MaxBody: MaxBody}}, Register)
}

// Pipelined requests: each response belongs to its request, in order.
func TestParityPipeline(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := parityApp(t, engine)
		conn := Dial(t, addr)
		var all strings.Builder
		var cases []Case
		for _, c := range Cases {
			if !c.Closes {
				cases = append(cases, c)
				all.WriteString(c.Send)
			}
		}
		sent := make(chan error, 1)
		go func() {
			_, err := io.WriteString(conn, all.String())
			sent <- err
		}()
		br := bufio.NewReader(conn)
		for _, c := range cases {
			got, err := ReadAnswer(br, MethodOf(c.Send))
			if err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			if got != c.Want {
				t.Errorf("%s:\n%s\nwant:\n%s", c.Name, Clip(got), Clip(c.Want))
			}
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
	})
}

// A request that arrives byte by byte is handled like any other.
func TestParityByteByByte(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := parityApp(t, engine)
		conn := Dial(t, addr)
		br := bufio.NewReader(conn)
		for _, send := range []string{
			Request("POST /echo?a=b", "Content-Type: text/x", "", "some bytes"),
			Request("POST /echo", "Transfer-Encoding: chunked", "Content-Type: text/x", "", "4\r\nsome\r\n6\r\n bytes\r\n0\r\n\r\n"),
		} {
			for i := range len(send) {
				if _, err := io.WriteString(conn, send[i:i+1]); err != nil {
					t.Fatal(err)
				}
			}
			got, err := ReadAnswer(br, "POST")
			if want := "HTTP/1.1 200 OK\nContent-Length: 10\nContent-Type: text/x\n\nsome bytes"; err != nil || got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		}
	})
}

// The status and the body of a refusal are the same on all engines. Whether the connection survives differs, since it depends
// on how much of the body has arrived.
func TestParityTooLarge(t *testing.T) {
	over := strings.Repeat("x", MaxBody+1)
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(over), over)
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := parityApp(t, engine)
		for _, c := range []struct{ name, send string }{
			{"announced", Request("POST /echo", "", over)},
			{"announced, through a reader", Request("POST /reader", "", over)},
			{"in chunks", Request("POST /echo", "Transfer-Encoding: chunked", "", chunk)},
			{"in chunks, through a reader", Request("POST /reader", "Transfer-Encoding: chunked", "", chunk)},
			{"announced, decoded", Request("POST /decode", "Content-Type: application/json", "", over)},
			{"announced, client waits", Request("POST /echo", "Content-Length: 5000", "Expect: 100-continue")},
		} {
			t.Run(c.name, func(t *testing.T) {
				conn := Dial(t, addr)
				if _, err := io.WriteString(conn, c.send); err != nil {
					t.Fatal(err)
				}
				got, err := ReadAnswer(bufio.NewReader(conn), "POST")
				got = strings.Replace(got, "Connection: close\n", "", 1)
				if err != nil || got != Problem413 {
					t.Errorf("%v, answer:\n%s\nwant:\n%s", err, got, Problem413)
				}
			})
		}
	})
}

func TestParityContinue(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := parityApp(t, engine)
		conn := Dial(t, addr)
		br := bufio.NewReader(conn)
		for _, expect := range []string{"100-continue", "100-continue, 100-continue"} { // as proxies join repeated lines
			_, _ = io.WriteString(conn, Request("POST /echo", "Content-Length: 4", "Content-Type: t/t", "Expect: "+expect))
			line, err := br.ReadString('\n')
			blank, _ := br.ReadString('\n')
			if line != "HTTP/1.1 100 Continue\r\n" || blank != "\r\n" {
				t.Fatalf("%s: before the body: got %q %q, %v", expect, line, blank, err)
			}
			_, _ = io.WriteString(conn, "body")
			got, err := ReadAnswer(br, "POST")
			if want := "HTTP/1.1 200 OK\nContent-Length: 4\nContent-Type: t/t\n\nbody"; err != nil || got != want {
				t.Errorf("%s: got %q, %v, want %q", expect, got, err, want)
			}
		}
	})
}

// Whether a connection survives an unread body with Expect: 100-continue depends only on whether the action has read the body
// to its end. The amount that arrived with the head does not matter.
func TestParityContinueUnread(t *testing.T) {
	const body = "0123456789"
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/probe", Text("probe"))
			app.Post("/{n:int}", func(r *dunlin.Request) dunlin.Response {
				n, _ := dunlin.Param[int](r, "n")
				b := make([]byte, n)
				read, err := io.ReadFull(r.Body(), b)
				return dunlin.Text(fmt.Sprint(string(b[:read]), err))
			})
		})
		for _, framing := range []string{"Content-Length: 10", "Transfer-Encoding: chunked"} {
			for _, c := range []struct {
				read  int
				want  string
				stays bool
			}{
				{0, "<nil>", false},
				{5, "01234<nil>", false},
				{11, "0123456789unexpected EOF", true},
			} {
				sent := body
				if framing != "Content-Length: 10" {
					sent = "a\r\n" + body + "\r\n0\r\n\r\n"
				}
				for _, early := range []int{0, 3, len(sent)} {
					if c.read > 0 && early < len(sent) && early < c.read {
						continue // the client would have to wait for the 100
					}
					t.Run(fmt.Sprint(framing, " read ", c.read, " early ", early), func(t *testing.T) {
						conn := Dial(t, addr)
						_, _ = io.WriteString(conn, Request(fmt.Sprint("POST /", c.read), framing, "Expect: 100-continue")+sent[:early])
						br := bufio.NewReader(conn)
						if start, _ := br.Peek(12); string(start) == "HTTP/1.1 100" { // may be left out for a body that has arrived
							_, _ = br.Discard(len("HTTP/1.1 100 Continue\r\n\r\n"))
						}
						got, err := ReadAnswer(br, "POST")
						if !strings.HasSuffix(got, "\n\n"+c.want) || strings.Contains(got, "\nConnection: close\n") == c.stays {
							t.Fatalf("got %q, %v; want %q, connection stays: %v", got, err, c.want, c.stays)
						}
						_, _ = io.WriteString(conn, Request("GET /probe"))
						if got, err := ReadAnswer(br, "GET"); c.stays != (err == nil) {
							t.Errorf("the next request: got %q, %v", got, err)
						}
					})
				}
			}
		}
	})
}

func TestParityAbort(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, logs := parityApp(t, engine)
		conn := Dial(t, addr)
		_, _ = io.WriteString(conn, Request("GET /abort"))
		if got, err := io.ReadAll(conn); len(got) > 0 {
			t.Errorf("http.ErrAbortHandler was answered with %q, %v; want no byte", got, err)
		}
		Exchange(t, addr, false, Request("GET /text")) // other connections are served
		WantLacks(t, "log", logs.String(), "panic")
	})
}

// A panic in a constraint of the app is a clean 500, and is logged.
func TestParityConstraintPanics(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, logs := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/probe", Text("probe"))
			app.ConstraintFunc("mine", func(value string) bool { return value != "x" || value[1] == 'y' })
			app.Get("/a/{id:mine}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Param("id")) })
		})
		got := Exchange(t, addr, false, Request("GET /a/x"), Request("GET /a/z"), Request("GET /a//x"))
		if got[0] != Problem500 || got[1] != Plain("z") || got[2] != Problem500 {
			t.Errorf("answers:\n%q", got)
		}
		WantLogged(t, logs, "panic in an action", "index out of range", "path=/a/x", "TestParityConstraintPanics")
	})
}

// Malformed HTTP gets a 4xx and a closed connection.
func TestParityRefused(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := parityApp(t, engine)
		for _, c := range []struct{ name, send, want string }{
			{"no HTTP", "hello\r\n\r\n", "400"},
			{"no Host", "GET /text HTTP/1.1\r\n\r\n", "400"},
			{"two Hosts", "GET /text HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"},
			{"bad escape", Request("GET /seg/%zz"), "400"},
			{"cut escape", Request("GET /seg/%4"), "400"},
			{"* for GET", Request("GET *"), "400"},
			{"space before the colon", Request("GET /text", "X : y"), "400"},
			{"bad length", Request("POST /echo", "Content-Length: x"), "400"},
			{"two lengths", Request("POST /echo", "Content-Length: 1", "Content-Length: 2"), "400"},
			{"unknown coding", Request("POST /echo", "Transfer-Encoding: gzip"), "501"},
			{"unknown coding before chunked", Request("POST /echo", "Transfer-Encoding: gzip, chunked") + "0\r\n\r\n", "501"},
			{"a coding that was withdrawn", Request("POST /echo", "Transfer-Encoding: identity"), "501"},
			{"unknown version", "GET /text HTTP/3.0\r\nHost: h\r\n\r\n", "505"},
		} {
			t.Run(c.name, func(t *testing.T) {
				conn := Dial(t, addr)
				_, _ = io.WriteString(conn, c.send)
				br := bufio.NewReader(conn)
				line, err := br.ReadString('\n')
				if err != nil || len(line) < 12 || line[9:12] != c.want {
					t.Errorf("answered with %q, %v, want %s", line, err, c.want)
				}
				if c.want != "501" {
					return
				}
				if _, err := io.ReadAll(br); errors.Is(err, os.ErrDeadlineExceeded) { // the end may be a reset
					t.Error("the connection stays open, although the end of the body is unknown")
				}
			})
		}
		Exchange(t, addr, false, Request("GET /text"))
	})
}
