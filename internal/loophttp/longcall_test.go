//go:build linux

package loophttp_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// registerLasting registers routes whose answers last longer than their actions and use the request late: with describe, and in
// the way of their names.
func registerLasting(app *dunlin.App) {
	describe := func(r *dunlin.Request) string {
		return fmt.Sprintln(r.Method(), r.Path(), r.RawQuery(), r.Host(), r.Header("X-A"), r.Param("id"), r.Query("q"))
	}
	body := func(r *dunlin.Request) string {
		b, err := r.Bytes()
		return fmt.Sprintf("%s %v", b, err)
	}
	app.Get("/text/{id}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(describe(r)) })
	stream := func(early func(*dunlin.Request) any, late func(*dunlin.Request, any) string) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			seen := early(r)
			return dunlin.Stream("text/plain", func(w io.Writer) error {
				if err := dunlin.Flush(w); err != nil {
					return err
				}
				_, err := io.WriteString(w, describe(r)+late(r, seen))
				return err
			})
		}
	}
	nothing := func(*dunlin.Request) any { return nil }
	app.Handle("*", "/unread/{id}", stream(nothing, func(*dunlin.Request, any) string { return "" }))
	app.Post("/late/{id}", stream(nothing, func(r *dunlin.Request, _ any) string { return body(r) }))
	app.Post("/lent/{id}", stream(
		func(r *dunlin.Request) any { b, _ := r.Bytes(); return b },
		func(r *dunlin.Request, b any) string { return fmt.Sprintf("%s %s", b, body(r)) }))
	app.Post("/decoded/{id}", stream(
		func(r *dunlin.Request) any { v, _ := dunlin.Decode[string](r); return v },
		func(r *dunlin.Request, v any) string { return fmt.Sprintf("%s %s", v, body(r)) }))
	app.Post("/reader/{id}", stream(
		func(r *dunlin.Request) any { return r.Body() },
		func(r *dunlin.Request, src any) string {
			b, err := io.ReadAll(src.(io.Reader))
			return fmt.Sprintln(string(b), err)
		}))
	std := dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first := make([]byte, 3)
		_, _ = io.ReadFull(r.Body, first)
		w.(http.Flusher).Flush()
		rest, err := io.ReadAll(r.Body)
		fmt.Fprintln(w, r.URL, string(first), string(rest), err)
	}))
	app.Post("/std/{id}", std)
	app.Handle("*", "/sse/{id}", func(r *dunlin.Request) dunlin.Response {
		lent := "unlent"
		if r.Header("X-Lend") != "" {
			b, _ := r.Bytes()
			lent = string(b)
		}
		return dunlin.SSE(func(e *dunlin.Events) error { return e.Comment(describe(r) + lent + " " + body(r)) })
	})
}

// A long call releases the read buffer of its request: borrowed memory and pipelined input must stay unchanged. In builds with
// the race detector the buffer is poisoned.
func TestLoopStreamKeepsRequest(t *testing.T) {
	s := startPieces(t, registerLasting)
	// This exceeds one read, and the rest after the first read is at most exchange.MaxDiscard.
	large := strings.Repeat("large ", 11_000)
	const head = "/7?q=x%20y HTTP/1.1\r\nHost: a.example\r\nX-A: av\r\n"
	described := func(method, path string) string { return method + " " + path + " q=x%20y a.example av 7 x y\n" }
	small, length := `"small body"`, func(b string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(b), b) }
	for _, c := range []struct{ name, send, want string }{
		{"no body", "GET /unread" + head + "\r\n", described("GET", "/unread/7")},
		{"escaped path", "GET /un%72ead" + head + "\r\n", described("GET", "/unread/7")},
		{"unread body", "POST /unread" + head + length(small), described("POST", "/unread/7")},
		{"unread large body", "POST /unread" + head + length(large), described("POST", "/unread/7")},
		{"read late", "POST /late" + head + length(small), described("POST", "/late/7") + small + " <nil>"},
		{"large, read late", "POST /late" + head + length(large), described("POST", "/late/7") + large + " <nil>"},
		{"lent", "POST /lent" + head + length(small), described("POST", "/lent/7") + small + " " + small + " <nil>"},
		{"large, lent", "POST /lent" + head + length(large), described("POST", "/lent/7") + large + " " + large + " <nil>"},
		{"decoded", "POST /decoded" + head + "Content-Type: application/json\r\n" + length(small), described("POST", "/decoded/7") + "small body " + small + " <nil>"},
		{"reader", "POST /reader" + head + length(small), described("POST", "/reader/7") + small + " <nil>\n"},
		{"large, reader", "POST /reader" + head + length(large), described("POST", "/reader/7") + large + " <nil>\n"},
		{"standard handler", "POST /std" + head + length(small), "/std/7?q=x%20y \"sm all body\" <nil>\n"},
		{"large, standard handler", "POST /std" + head + length(large), "/std/7?q=x%20y lar " + large[3:] + " <nil>\n"},
		{"events", "GET /sse" + head + "\r\n", ":" + described("GET", "/sse/7") + ":unlent  <nil>\n\n"},
		{"events, body", "POST /sse" + head + length(small), ":" + described("POST", "/sse/7") + ":unlent " + small + " <nil>\n\n"},
		{"events, lent body", "POST /sse" + head + "X-Lend: y\r\n" + length(small), ":" + described("POST", "/sse/7") + ":" + small + " " + small + " <nil>\n\n"},
		{"events, large body", "POST /sse" + head + length(large), ":" + described("POST", "/sse/7") + ":unlent " + large + " <nil>\n\n"},
	} {
		for _, behind := range []string{"GET /text", "GET /unread"} {
			// Another request follows, which is served from the copied input, and another stream after that.
			next := strings.Replace(behind+head+"\r\n", "av", "bv", 1)
			for name, pieces := range map[string][]string{"at once": {c.send + next + next}, "in two": {c.send[:len(c.send)-1], c.send[len(c.send)-1:] + next + next}} {
				t.Run(c.name+" before "+behind+" "+name, func(t *testing.T) {
					var raw [][]byte
					for _, p := range pieces {
						raw = append(raw, []byte(p))
					}
					br := bufio.NewReader(strings.NewReader(string(s.converse(t, raw))))
					suite.Answered(t, br, 200, c.want)
					want := strings.Replace(described("GET", behind[4:]+"/7"), "av", "bv", 1)
					suite.Answered(t, br, 200, want)
					suite.Answered(t, br, 200, want)
				})
			}
		}
	}
}

// A stream of events can be ended by a panic, an error, or the end of its goroutine. Answers to earlier requests are sent
// before, and the engine continues.
func TestLoopEventsEnd(t *testing.T) {
	ends := map[string]func() error{
		"panic":  func() error { panic("on purpose") },
		"error":  func() error { return io.ErrUnexpectedEOF },
		"goexit": func() error { runtime.Goexit(); return nil },
	}
	_, addr, _ := suite.StartLoop(t, dunlin.Config{}, func(app *dunlin.App) {
		for name, end := range ends {
			app.Get("/"+name, func(*dunlin.Request) dunlin.Response {
				return dunlin.SSE(func(e *dunlin.Events) error {
					if err := e.Comment("one"); err != nil {
						return err
					}
					return end()
				})
			})
		}
	})
	for range 3 {
		for name := range ends {
			conn := suite.Dial(t, addr)
			suite.Send(t, conn, suite.Request("GET /probe")+suite.Request("GET /"+name)+suite.Request("GET /probe"))
			br := bufio.NewReader(conn)
			suite.Answered(t, br, 200, "probe")
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got, err := io.ReadAll(resp.Body); string(got) != ":one\n\n" || err == nil {
				t.Errorf("%s: got %q, %v, want one comment and no clean end", name, got, err)
			}
		}
	}
	conn := suite.Dial(t, addr)
	suite.Send(t, conn, suite.Request("GET /probe"))
	suite.Answered(t, bufio.NewReader(conn), 200, "probe")
}

// A handler's answer does not wait for the body, on whichever goroutine the body is read.
func TestLoopFullDuplex(t *testing.T) {
	reading := make(chan struct{})
	ended := make(chan error, 1)
	_, addr, _ := suite.StartLoop(t, dunlin.Config{}, func(app *dunlin.App) {
		app.HandleStd("POST", "/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			go func() {
				_, _ = io.ReadFull(r.Body, make([]byte, 5))
				close(reading)
				_, err := r.Body.Read(make([]byte, 1))
				ended <- err
			}()
			<-reading
			for range 3 {
				_, _ = io.WriteString(w, "part ")
				_ = http.NewResponseController(w).Flush()
				runtime.Gosched()
			}
		}))
	})
	conn := suite.Dial(t, addr)
	suite.Send(t, conn, suite.Request("POST /", "Content-Length: 100000")+"begin")
	br := bufio.NewReader(conn)
	suite.Answered(t, br, 200, "part part part ")
	suite.WantEnd(t, br)
	if err := <-ended; err == nil {
		t.Error("a Read that waits when the handler returns succeeds")
	}
}

// Long transfers in both directions at once are complete and unmixed.
func TestLoopFullDuplexEcho(t *testing.T) {
	_, addr, _ := suite.StartLoop(t, dunlin.Config{Limits: dunlin.Limits{MaxBody: 64 << 20}}, func(app *dunlin.App) {
		app.HandleStd("POST", "/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			pr, pw := io.Pipe()
			go func() {
				_, err := io.Copy(pw, r.Body)
				_ = pw.CloseWithError(err)
			}()
			_, _ = io.Copy(w, pr)
		}))
	})
	conn := suite.Dial(t, addr)
	total := 8 << 20
	if invariants.Enabled {
		total = 1 << 20 // eight of them exceed the time limit with the race detector
	}
	go func() {
		_, _ = io.WriteString(conn, suite.Request("POST /", fmt.Sprint("Content-Length: ", total)))
		w := bufio.NewWriterSize(conn, 32<<10)
		for i := 0; i < total; i += 8 {
			_, _ = fmt.Fprintf(w, "%08d", i)
		}
		_ = w.Flush()
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	piece := make([]byte, 8)
	for i := 0; i < total; i += 8 {
		if _, err := io.ReadFull(resp.Body, piece); err != nil || string(piece) != fmt.Sprintf("%08d", i) {
			t.Fatalf("at %d: got %q, %v", i, piece, err)
		}
	}
}

// The proxy of the standard library passes on the answer of a backend that answers before it has received the request body.
func TestLoopProxyEarlyAnswer(t *testing.T) {
	ln := suite.Listen(t)
	defer ln.Close()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.WriteString(conn, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
					_, _ = io.Copy(io.Discard, conn)
				}
			}()
		}
	}()
	_, addr, _ := suite.StartLoop(t, dunlin.Config{}, func(app *dunlin.App) {
		app.HandleStd("POST", "/", httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: ln.Addr().String()}))
	})
	conn := suite.Dial(t, addr)
	suite.Send(t, conn, suite.Request("POST /", "Content-Length: 100000")+"begin")
	br := bufio.NewReader(conn)
	suite.Answered(t, br, 403, "no")
	suite.WantEnd(t, br)
}

// An answer that is aborted before its first byte does not affect earlier answers.
func TestLoopCutKeepsEarlierAnswers(t *testing.T) {
	_, addr, _ := suite.StartLoop(t, dunlin.Config{}, func(app *dunlin.App) {
		for name, end := range map[string]func(){
			"panic":  func() { panic("before the first byte") },
			"abort":  func() { panic(http.ErrAbortHandler) },
			"goexit": runtime.Goexit,
		} {
			app.HandleStd("GET", "/"+name, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				w.Header().Set("Content-Length", "100000")
				_, _ = w.(io.ReaderFrom).ReadFrom(readerFunc(func([]byte) (int, error) { end(); return 0, io.EOF }))
			}))
		}
	})
	for _, path := range []string{"/panic", "/abort", "/goexit"} {
		conn := suite.Dial(t, addr)
		suite.Send(t, conn, suite.Request("GET /probe")+suite.Request("GET /probe")+suite.Request("GET "+path)+suite.Request("GET /probe"))
		br := bufio.NewReader(conn)
		suite.Answered(t, br, 200, "probe")
		suite.Answered(t, br, 200, "probe")
		suite.WantEnd(t, br)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
