package suite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// write is a stream of the given pieces, each flushed when it ends in "!".
func write(pieces ...string) func(io.Writer) error {
	return func(w io.Writer) error {
		for _, p := range pieces {
			if _, err := io.WriteString(w, strings.TrimSuffix(p, "!")); err != nil {
				return err
			}
			if strings.HasSuffix(p, "!") {
				if err := dunlin.Flush(w); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func failEarly(w io.Writer) error { return errors.Join(write("some")(w), errors.New("out of luck")) }

func registerStreams(app *dunlin.App) {
	app.Get("/probe", Text("probe"))
	answer := func(path string, f func(io.Writer) error) {
		app.Handle("GET,POST", path, func(*dunlin.Request) dunlin.Response {
			return dunlin.Stream("text/x", f).Header("X-A", "1")
		})
	}
	big := strings.Repeat("0123456789abcdef", 4000)
	answer("/short", write("a", "b"))
	answer("/empty", write())
	answer("/flush", write("a!", "b"))
	answer("/late flush", write("a", "b!"))
	answer("/big", write(big))
	answer("/bits", write(strings.SplitAfter(strings.Repeat("0123456789abcdef", 2000), "d")...))
	answer("/mixed", write("a!", big, "b", big, "c!", "d"))
	answer("/fails early", failEarly)
	answer("/conflict", func(io.Writer) error { return &dunlin.ProblemDetails{Status: 409, Detail: "taken"} })
	answer("/panics early", func(w io.Writer) error { _, _ = io.WriteString(w, "x"); panic("early") })
	answer("/fails late", func(w io.Writer) error { return errors.Join(write("some!", "more")(w), errors.New("out of luck")) })
	answer("/panics late", func(w io.Writer) error { _ = write("some!")(w); panic("late") })
	answer("/goexit late", func(w io.Writer) error { _ = write("some!", "more")(w); runtime.Goexit(); return nil })
	app.Get("/204", func(*dunlin.Request) dunlin.Response { return dunlin.Stream("text/x", write("x")).Status(204) })
	app.Get("/host", func(r *dunlin.Request) dunlin.Response {
		return dunlin.Stream("text/x", func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s %s %s", r.Host(), r.Header("X-B"), r.Query("q"))
			return err
		})
	})
	app.Post("/upper", func(r *dunlin.Request) dunlin.Response {
		return dunlin.Stream("text/x", func(w io.Writer) error {
			body, err := io.ReadAll(r.Body())
			if err != nil {
				return err
			}
			_, err = io.WriteString(w, strings.ToUpper(string(body)))
			return err
		})
	})
	app.Get("/seq/{n:int}", func(r *dunlin.Request) dunlin.Response {
		n, _ := dunlin.Param[int](r, "n")
		return dunlin.JSONSeq(numbers(int(n)))
	})
	app.Get("/bad seq", func(*dunlin.Request) dunlin.Response {
		return dunlin.JSONSeq(func(yield func(any) bool) {
			for i := range 30000 {
				if !yield(i) {
					return
				}
			}
			yield(make(chan int))
		})
	})
}

func numbers(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// array is the JSON of numbers(n).
func array(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ",%d", i)
	}
	return "[" + strings.TrimPrefix(b.String(), ",") + "]"
}

func TestStreams(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 4000)
	chunked := func(body string) string {
		return "HTTP/1.1 200 OK\nContent-Type: text/x\nTransfer-Encoding: chunked\nX-A: 1\n\n" + body
	}
	whole := func(body string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\nContent-Length: %d\nContent-Type: text/x\nX-A: 1\n\n%s", len(body), body)
	}
	failed := "HTTP/1.1 500 Internal Server Error\nContent-Length: 46\nContent-Type: application/problem+json\n"
	cases := []Case{
		{Name: "short", Send: Request("GET /short"), Want: whole("ab")},
		{Name: "empty", Send: Request("GET /empty"), Want: whole("")},
		{Name: "flushed", Send: Request("GET /flush"), Want: chunked("ab")},
		{Name: "flushed at its end", Send: Request("GET /late%20flush"), Want: chunked("ab")},
		{Name: "one large write", Send: Request("GET /big"), Want: chunked(big)},
		{Name: "many small writes", Send: Request("GET /bits"), Want: chunked(strings.Repeat("0123456789abcdef", 2000))},
		{Name: "writes of all sizes", Send: Request("GET /mixed"), Want: chunked("a" + big + "b" + big + "cd")},
		{Name: "HEAD", Send: Request("HEAD /big"), Want: "HTTP/1.1 200 OK\nContent-Type: text/x\nX-A: 1\n\n"},
		{Name: "204", Send: Request("GET /204"), Want: "HTTP/1.1 204 No Content\nContent-Type: text/x\n\n"},
		{Name: "HTTP/1.0, short", Send: "GET /short HTTP/1.0\r\n\r\n", Want: "HTTP/1.0 200 OK\nContent-Length: 2\nContent-Type: text/x\nX-A: 1\n\nab", Closes: true},
		{Name: "HTTP/1.0, long", Send: "GET /mixed HTTP/1.0\r\n\r\n", Want: "HTTP/1.0 200 OK\nContent-Type: text/x\nX-A: 1\n\na" + big + "b" + big + "cd", Closes: true},
		{Name: "Connection: close", Send: Request("GET /flush", "Connection: close"),
			Want: "HTTP/1.1 200 OK\nConnection: close\nContent-Type: text/x\nTransfer-Encoding: chunked\nX-A: 1\n\nab", Closes: true},
		{Name: "fails before anything was sent", Send: Request("GET /fails%20early"), Want: failed + "X-A: 1\n\n{\"title\":\"Internal Server Error\",\"status\":500}"},
		{Name: "panics before anything was sent", Send: Request("GET /panics%20early"), Want: failed + "\n{\"title\":\"Internal Server Error\",\"status\":500}"},
		{Name: "a problem before anything was sent", Send: Request("GET /conflict"),
			Want: "HTTP/1.1 409 Conflict\nContent-Length: 50\nContent-Type: application/problem+json\nX-A: 1\n\n" + `{"title":"Conflict","status":409,"detail":"taken"}`},
		{Name: "request in use", Send: Request("GET /host?q=1", "X-B: b"), Want: "HTTP/1.1 200 OK\nContent-Length: 13\nContent-Type: text/x\n\nh.example b 1"},
		{Name: "body in use", Send: Request("POST /upper", "", "body"), Want: "HTTP/1.1 200 OK\nContent-Length: 4\nContent-Type: text/x\n\nBODY"},
		{Name: "large body in use", Send: Request("POST /upper", "", strings.Repeat("x", 100_000)),
			Want: "HTTP/1.1 200 OK\nContent-Type: text/x\nTransfer-Encoding: chunked\n\n" + strings.Repeat("X", 100_000)},
		{Name: "short sequence", Send: Request("GET /seq/3"), Want: "HTTP/1.1 200 OK\nContent-Length: 7\nContent-Type: application/json\n\n[0,1,2]"},
		{Name: "long sequence", Send: Request("GET /seq/100000"), Want: "HTTP/1.1 200 OK\nContent-Type: application/json\nTransfer-Encoding: chunked\n\n" + array(100000)},
		{Name: "HEAD of a long sequence", Send: Request("HEAD /seq/100000"), Want: "HTTP/1.1 200 OK\nContent-Type: application/json\n\n"},
	}
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, registerStreams)
		for _, c := range cases {
			t.Run(c.Name, func(t *testing.T) {
				if got := Exchange(t, addr, c.Closes, c.Send)[0]; got != c.Want {
					t.Errorf("answer:\n%s\nwant:\n%s", Clip(got), Clip(c.Want))
				}
			})
		}
	})
}

// A stream that fails after a part of it was sent must not look complete.
func TestStreamsCut(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, logs := Start(t, dunlin.Config{Engine: engine}, registerStreams)
		for _, path := range []string{"/fails%20late", "/panics%20late", "/bad%20seq", "/goexit%20late"} {
			if engine == dunlin.EngineStd && path == "/goexit%20late" {
				continue // net/http leaves such a connection open
			}
			conn := Dial(t, addr)
			_, _ = io.WriteString(conn, Request("GET "+path))
			got, err := io.ReadAll(conn)
			if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200 OK\r\n") || strings.Contains(string(got), "\r\n0\r\n") {
				t.Errorf("%s: got %v, %.300q: want the connection cut within the body", path, err, got)
			}
		}
		Exchange(t, addr, false, Request("GET /short"))
		WantLogged(t, logs, "out of luck", "panic=late", "element 30000")
	})
}

// A disconnected client makes writes fail and ends the context.
func TestStreamToClosedConnection(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		failed, ended := make(chan error, 1), make(chan struct{})
		addr, logs := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/", func(r *dunlin.Request) dunlin.Response {
				ctx := r.Context()
				return dunlin.Stream("text/x", func(w io.Writer) error {
					for {
						if err := write(strings.Repeat("x", 20_000), "!")(w); err != nil {
							failed <- err
							<-ctx.Done()
							close(ended)
							return err
						}
					}
				})
			})
		})
		conn := Dial(t, addr)
		_, _ = io.WriteString(conn, Request("GET /"))
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		if err := <-failed; err == nil {
			t.Error("no error")
		}
		Await(t, "the end of the stream", ended)
		WantLacks(t, "log of errors", logs.String(), "stream")
	})
}

// The writer of a stream fails after the stream's function has returned: another request may use the connection by then.
func TestWriterFailsAfterStreamEnds(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		writers, ended := make(chan io.Writer, 1), make(chan bool, 2)
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Install(dunlin.Hooks{Observe: func(*dunlin.AnswerInfo) { ended <- true }})
			for path, before := range map[string][]string{"/held": {"a"}, "/begun": {"a!", "b"}} {
				app.Get(path, func(*dunlin.Request) dunlin.Response {
					return dunlin.Stream("text/x", func(w io.Writer) error {
						writers <- w
						return write(before...)(w)
					})
				})
			}
			app.Get("/next", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/x", func(w io.Writer) error {
					if err := write("next!")(w); err != nil {
						return err
					}
					late := <-writers
					for _, n := range []int{1, 100_000} {
						if _, err := late.Write(make([]byte, n)); err == nil {
							t.Errorf("%d bytes were written late", n)
						}
					}
					if err := dunlin.Flush(late); err == nil {
						t.Error("a late flush succeeds")
					}
					return write("!", "end")(w)
				})
			})
		})
		for path, want := range map[string]string{"/held": "a", "/begun": "ab"} {
			conn := Dial(t, addr)
			br := bufio.NewReader(conn)
			Send(t, conn, Request("GET "+path))
			Answered(t, br, 200, want)
			Await(t, "the end of the stream", ended)
			Send(t, conn, Request("GET /next"))
			Answered(t, br, 200, "nextend")
			Await(t, "the end of the next", ended)
		}
	})
}

// Data that a remaining goroutine writes while the stream's function returns belongs to that stream, or is discarded.
func TestWritesDuringStreamEnd(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		var writers sync.WaitGroup
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/left", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/x", func(w io.Writer) error {
					written := make(chan bool)
					writers.Go(func() {
						piece := make([]byte, 1000)
						for i := 0; ; i++ {
							if _, err := w.Write(piece); err != nil {
								return
							}
							if i == 20 {
								close(written)
							}
						}
					})
					<-written
					return nil
				})
			})
			app.Get("/next", Text("next"))
		})
		for range 10 {
			conn := Dial(t, addr)
			br := bufio.NewReader(conn)
			Send(t, conn, Request("GET /left")+Request("GET /next"))
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := io.Copy(io.Discard, resp.Body); err != nil || n < 21_000 {
				t.Errorf("%d bytes, %v", n, err)
			}
			Answered(t, br, 200, "next")
			conn.Close()
		}
		writers.Wait()
	})
}

// A sequence whose rest is never sent is stopped, not leaked.
func TestJSONSeqDropped(t *testing.T) {
	stopped := make(chan struct{})
	func() {
		r := dunlin.JSONSeq(func(yield func(int) bool) {
			defer close(stopped)
			for i := 0; yield(i); i++ {
			}
		})
		if r.Len() != -1 {
			t.Errorf("an endless sequence has the length %d", r.Len())
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	for ctx.Err() == nil {
		runtime.GC()
		select {
		case <-stopped:
			return
		default:
			runtime.Gosched()
		}
	}
	t.Error("still running")
}

// Large streams hold only the memory of the data in flight.
func TestStreamsMemory(t *testing.T) {
	const streams, size, piece = 16, 10 << 20, 32 << 10
	data := []byte(strings.Repeat("0123456789abcdef", piece/16))
	adapters := []Adapter{std, loop, loopOverTLS}
	if invariants.Enabled { // with the race detector the pools of crypto/tls drop items at random
		adapters = adapters[:2]
	}
	stream := func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(app *dunlin.App) {
			app.Get("/out", func(*dunlin.Request) dunlin.Response {
				return dunlin.Stream("text/x", func(w io.Writer) error {
					for range size / piece {
						if _, err := w.Write(data); err != nil {
							return err
						}
					}
					return nil
				})
			})
			app.Handle("POST", "/in", dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n, err := io.Copy(io.Discard, r.Body)
				_, _ = fmt.Fprint(w, n, err)
			})))
		})
		for _, c := range []struct{ name, send string }{
			{"out", Request("GET /out", "Connection: close")},
			{"in", Request("POST /in", fmt.Sprintf("Content-Length: %d", size))},
		} {
			t.Run(c.name, func(t *testing.T) {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				var wg sync.WaitGroup
				for range streams {
					conn := patientConn{Dial(t, addr)} // TLS takes long for this amount, above all on 32 bits
					wg.Go(func() {
						_, _ = io.WriteString(conn, c.send)
						if c.name == "in" {
							for range size / piece {
								if _, err := conn.Write(data); err != nil {
									t.Error(err)
									return
								}
							}
							if got, err := ReadAnswer(bufio.NewReader(conn), "POST"); err != nil || !strings.Contains(got, fmt.Sprint(size)) {
								t.Errorf("got %q, %v", got, err)
							}
							return
						}
						if n, err := io.Copy(io.Discard, conn); err != nil || n < size {
							t.Errorf("%d bytes, %v", n, err)
						}
					})
				}
				wg.Wait()
				runtime.ReadMemStats(&after)
				// The limit holds for all bytes ever allocated, including those of the test.
				if grown := after.TotalAlloc - before.TotalAlloc; grown > streams*512<<10 {
					t.Errorf("%d KB allocated for %d streams of %d KB", grown>>10, streams, size>>10)
				}
			})
		}
	}
	for _, a := range adapters { // one after the other, as they count the allocations of the process
		a.On(t, stream)
	}
}

// A panicking is an encoder that panics in one of its methods.
type panicking struct {
	w  io.Writer
	in string
}

func (p panicking) step(in string) {
	if p.in == in {
		panic(in)
	}
}

func (p panicking) Write(b []byte) (int, error) { p.step("Write"); return p.w.Write(b) }
func (p panicking) Flush() error                { p.step("Flush"); return nil }
func (p panicking) Close() error                { p.step("Close"); return nil }

// A response whose encoder panics after the head was sent is truncated: no problem follows it, and it does not look complete.
func TestEncoderPanics(t *testing.T) {
	steps := []string{"make", "Write", "Flush", "Close"}
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine, Logger: slog.New(slog.DiscardHandler)}, func(app *dunlin.App) {
			for _, step := range steps {
				encoded := func(next dunlin.Action) dunlin.Action {
					return func(r *dunlin.Request) dunlin.Response {
						return ext.EncodeLater(next(r), func(head dunlin.Response, _ int64) (dunlin.Response, func(io.Writer) ext.BodyEncoder) {
							return head, func(w io.Writer) ext.BodyEncoder {
								p := panicking{w, step}
								p.step("make")
								return p
							}
						})
					}
				}
				app.Get("/stream/"+step, func(*dunlin.Request) dunlin.Response {
					return dunlin.Stream("text/plain", func(w io.Writer) error {
						_, _ = io.WriteString(w, "some")
						return dunlin.Flush(w)
					})
				}, encoded)
				app.Get("/handler/"+step, dunlin.FromStd(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					_, _ = io.WriteString(w, "some")
					_ = http.NewResponseController(w).Flush()
				})), encoded)
				app.Get("/events/"+step, func(*dunlin.Request) dunlin.Response {
					return dunlin.SSE(func(e *dunlin.Events) error { return e.Send(dunlin.Event{Data: "some"}) })
				}, encoded)
				app.Get("/sequence/"+step, func(*dunlin.Request) dunlin.Response {
					return dunlin.JSONSeq(func(yield func(string) bool) {
						for range 100_000 {
							if !yield("some") {
								return
							}
						}
					})
				}, encoded)
			}
		})
		for _, what := range []string{"stream", "handler", "events", "sequence"} {
			for _, step := range steps {
				resp, err := http.Get("http://" + addr + "/" + what + "/" + step)
				if err != nil {
					continue
				}
				body, err := io.ReadAll(resp.Body)
				if resp.Body.Close(); err == nil && resp.StatusCode == http.StatusOK && !(what == "sequence" && step == "Flush") {
					t.Errorf("%s, panic in %s: 200 with %d bytes that end in %q", what, step, len(body), body[max(len(body)-60, 0):])
				}
			}
		}
	})
}
