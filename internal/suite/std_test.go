package suite

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// handle registers a standard handler for every method.
func handle(app *dunlin.App, path string, h http.HandlerFunc) {
	app.HandleStd("*", path, h)
}

func registerStd(app *dunlin.App) {
	app.Get("/probe", Text("probe"))
	handle(app, "/late", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-A", "1")
		w.WriteHeader(http.StatusCreated)
		w.Header().Set("X-A", "late")
		w.Header().Set("X-B", "late")
		_, _ = io.WriteString(w, "x")
	})
	handle(app, "/declared", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-T, X-Unset")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-T", "1")
	})
	handle(app, "/undeclared", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "body")
		w.Header().Set(http.TrailerPrefix+"X-T", "1")
	})
	handle(app, "/hints", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		_, _ = io.WriteString(w, "hinted")
	})
	handle(app, "/trailers", func(w http.ResponseWriter, r *http.Request) {
		before := fmt.Sprint(r.Trailer, r.Header["Trailer"])
		_, err := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprintf(w, "before %s after %v %v", before, r.Trailer, err)
	})
	handle(app, "/204 flush", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
		_ = http.NewResponseController(w).Flush()
		if _, err := io.WriteString(w, "x"); !errors.Is(err, http.ErrBodyNotAllowed) {
			panic(err)
		}
	})
	handle(app, "/head flush", func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "x")
	})
	handle(app, "/too much", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "2")
		_, _ = io.WriteString(w, "ab")
		if _, err := io.WriteString(w, "c"); !errors.Is(err, http.ErrContentLength) {
			panic(err)
		}
	})
	handle(app, "/too little", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "3")
		_, _ = io.WriteString(w, "ab")
	})
	handle(app, "/duplex", func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		if err := c.EnableFullDuplex(); err != nil {
			panic(err)
		}
		for br := bufio.NewReader(r.Body); ; {
			line, err := br.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(w, strings.ToUpper(line))
			_ = c.Flush()
		}
	})
	handle(app, "/impatient", func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
			panic(err)
		}
		_, err := io.ReadAll(r.Body)
		_, _ = fmt.Fprint(w, errors.Is(err, os.ErrDeadlineExceeded))
	})
}

func TestStd(t *testing.T) {
	const chunkedText = "HTTP/1.1 200 OK\nContent-Type: text/plain; charset=utf-8\n"
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, registerStd)
		for _, c := range []Case{
			{Name: "headers set too late", Send: Request("GET /late"), Want: "HTTP/1.1 201 Created\nContent-Length: 1\nContent-Type: text/plain; charset=utf-8\nX-A: 1\n\nx"},
			{Name: "request trailers", Send: Request("POST /trailers", "Trailer: x-a", "Transfer-Encoding: chunked", "", "3\r\nabc\r\n0\r\nX-A: 1\r\n\r\n"),
				Want: Plain("before map[X-A:[]] [] after map[X-A:[1]] <nil>")},
			{Name: "trailers of a large request", Send: Request("POST /trailers", "Trailer: X-A", "Transfer-Encoding: chunked", "", fmt.Sprintf("%x\r\n%s\r\n0\r\nX-A: 1\r\n\r\n", 100_000, strings.Repeat("x", 100_000))),
				Want: Plain("before map[X-A:[]] [] after map[X-A:[1]] <nil>")},
			{Name: "204 and Flush", Send: Request("GET /204%20flush"), Want: "HTTP/1.1 204 No Content\n\n"},
			{Name: "HEAD and Flush", Send: Request("HEAD /head%20flush"), Want: "HTTP/1.1 200 OK\n\n"},
			{Name: "more than announced", Send: Request("GET /too%20much"), Want: strings.Replace(Plain("ab"), "Content-Length: 2\n", "Content-Length: 2\n", 1)},
			{Name: "duplex", Send: Request("POST /duplex", "Transfer-Encoding: chunked", "", "4\r\nabc\n\r\n0\r\n\r\n"), Want: chunkedText + "Transfer-Encoding: chunked\n\nABC\n"},
		} {
			t.Run(c.Name, func(t *testing.T) {
				if got := Exchange(t, addr, c.Closes, c.Send)[0]; got != c.Want {
					t.Errorf("answer:\n%s\nwant:\n%s", Clip(got), Clip(c.Want))
				}
			})
		}
	})
}

// An ordinary client receives trailers and interim responses.
func TestStdTrailers(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, registerStd)
		for _, path := range []string{"/declared", "/undeclared"} {
			conn := Dial(t, addr)
			_, _ = io.WriteString(conn, Request("GET "+path)+Request("GET /probe"))
			br := bufio.NewReader(conn)
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil || string(body) != "body" || resp.Trailer.Get("X-T") != "1" || resp.Header.Get("X-T") != "" {
				t.Errorf("%s: got %q, %v, header %v, trailer %v", path, body, err, resp.Header, resp.Trailer)
			}
			if got, err := ReadAnswer(br, "GET"); err != nil || got != Plain("probe") {
				t.Errorf("after it: got %q, %v", got, err)
			}
		}
	})
}

func TestStdEarlyHints(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, registerStd)
		conn := Dial(t, addr)
		_, _ = io.WriteString(conn, Request("GET /hints"))
		br := bufio.NewReader(conn)
		const hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
		got := make([]byte, len(hints))
		if _, err := io.ReadFull(br, got); err != nil || string(got) != hints {
			t.Fatalf("got %q, %v", got, err)
		}
		if got, err := ReadAnswer(br, "GET"); err != nil || got != Plain("hinted") {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// A handler that writes less than its Content-Length must not leave a connection on which the next response would be taken for
// the rest.
func TestStdShort(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, registerStd)
		conn := Dial(t, addr)
		_, _ = io.WriteString(conn, Request("GET /too%20little"))
		got, err := io.ReadAll(conn)
		if err != nil || !bytes.HasSuffix(got, []byte("\r\n\r\nab")) {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// 100 Continue is sent when the handler reads the body, and not before.
func TestStdContinue(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		read := make(chan struct{})
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			handle(app, "/", func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusEarlyHints)
				<-read
				body, err := io.ReadAll(r.Body)
				_, _ = fmt.Fprintf(w, "%s %v", body, err)
			})
		})
		conn := Dial(t, addr)
		br := bufio.NewReader(conn)
		_, _ = io.WriteString(conn, Request("POST /", "Content-Length: 4", "Expect: 100-continue"))
		for i, want := range []string{"HTTP/1.1 103 Early Hints\r\n", "HTTP/1.1 100 Continue\r\n"} {
			if i == 1 {
				close(read)
			}
			line, err := br.ReadString('\n')
			blank, _ := br.ReadString('\n')
			if line != want || blank != "\r\n" {
				t.Fatalf("got %q %q, %v, want %q", line, blank, err, want)
			}
		}
		_, _ = io.WriteString(conn, "body")
		if got, err := ReadAnswer(br, "POST"); err != nil || got != Plain("body <nil>") {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestStdReadDeadline(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, registerStd)
		conn := Dial(t, addr)
		_, _ = io.WriteString(conn, Request("POST /impatient", "Content-Length: 100000"))
		got, err := ReadAnswer(bufio.NewReader(conn), "POST")
		if err != nil || !strings.HasSuffix(got, "\n\ntrue") {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// A hijacked connection belongs to the handler: data that arrived early can be read, and both directions work, also if the loop
// was taken over before.
func TestStdHijack(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		for _, early := range []string{"", "early\n"} {
			for _, wait := range []bool{false, true} {
				t.Run(fmt.Sprintf("early %q, taken over %v", early, wait), func(t *testing.T) {
					proceed := make(chan struct{})
					addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
						app.Get("/probe", Text("probe"))
						handle(app, "/", echoHijacked(t, proceed))
					})
					conn := Dial(t, addr)
					br := bufio.NewReader(conn)
					_, _ = io.WriteString(conn, Request("GET /", "Connection: Upgrade", "Upgrade: echo")+early)
					if wait {
						// Other requests are served while the handler waits, so its loop has continued.
						for range 4 {
							Exchange(t, addr, false, Request("GET /probe"))
						}
					}
					close(proceed)
					if line, err := br.ReadString('\n'); err != nil || line != "HTTP/1.1 101 Switching Protocols\r\n" {
						t.Fatalf("got %q, %v", line, err)
					}
					_, _ = br.ReadString('\n')
					sent := []string{"one\n", strings.Repeat("x", 200_000) + "\n"}
					for _, s := range sent {
						go func() { _, _ = io.WriteString(conn, s) }()
						want := early + s
						early = ""
						got := make([]byte, len(want))
						if _, err := io.ReadFull(br, got); err != nil || string(got) != want {
							t.Fatalf("%d bytes, %v: they differ from the sent ones", len(got), err)
						}
					}
					_, _ = io.WriteString(conn, "bye\n")
					if rest, err := io.ReadAll(br); err != nil || len(rest) > 0 {
						t.Errorf("at the end: got %q, %v", rest, err)
					}
				})
			}
		}
	})
}

// echoHijacked hijacks the connection and sends back each line until "bye".
func echoHijacked(t *testing.T, proceed <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		<-proceed
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if _, err := w.Write([]byte("x")); !errors.Is(err, http.ErrHijacked) {
			t.Errorf("Write after Hijack: %v", err)
		}
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\n\r\n")
		_ = rw.Flush()
		for {
			line, err := rw.ReadString('\n')
			if err != nil || line == "bye\n" {
				return
			}
			_, _ = rw.WriteString(line)
			if rw.Flush() != nil {
				return
			}
		}
	}
}

// A response has the correct length and is complete, whether the handler or the server determines the length.
func TestLengths(t *testing.T) {
	OnEngines(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Handle("*", "/{size}", func(r *dunlin.Request) dunlin.Response {
				size, err := dunlin.Param[int](r, "size")
				if err != nil {
					return dunlin.Error(err)
				}
				resp := dunlin.Bytes("text/x", bytes.Repeat([]byte("x"), size))
				if r.Query("more") != "" {
					resp = resp.Header("X-More", "1")
				}
				return resp
			})
		})
		for _, size := range []int{0, 1, 1000, 2046, 2047, 2048, 2049, 4095, 4096, 10_000} {
			for _, more := range []string{"", "?more=1"} {
				for _, method := range []string{http.MethodGet, http.MethodHead} {
					req, err := http.NewRequest(method, fmt.Sprintf("http://%s/%d%s", addr, size, more), nil)
					if err != nil {
						t.Fatal(err)
					}
					resp, err := http.DefaultClient.Do(req)
					if err != nil {
						t.Fatal(err)
					}
					body, err := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					want := size
					if method == http.MethodHead {
						want = 0
					}
					if err != nil || resp.ContentLength != int64(size) || len(body) != want || resp.Header.Get("Content-Type") != "text/x" {
						t.Errorf("%s of %d bytes%s: length %d, %d bytes, %v, %v", method, size, more, resp.ContentLength, len(body), resp.Header, err)
					}
				}
			}
		}
	})
}
