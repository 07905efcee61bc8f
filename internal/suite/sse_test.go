package suite

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// events answers GET / with an event stream.
func events(f func(*dunlin.Events) error) func(*dunlin.App) {
	return func(app *dunlin.App) {
		app.Get("/probe", Text("probe"))
		app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.SSE(f) })
	}
}

func TestSSE(t *testing.T) {
	const head = "HTTP/1.1 200 OK\nCache-Control: no-store\nContent-Type: text/event-stream\n"
	all := []dunlin.Event{
		{Data: "one"},
		{ID: "7", Type: "tick", Data: "two\nlines", Retry: 1500 * time.Millisecond},
		{Data: "a\r\nb\rc\n"},
		{Type: "ping"},
		{ID: "8"},
		{Retry: time.Second},
		{Data: "data: not a field"},
	}
	const want = "data: one\n\n" +
		"event: tick\nid: 7\nretry: 1500\ndata: two\ndata: lines\n\n" +
		"data: a\ndata: b\ndata: c\ndata: \n\n" +
		"event: ping\ndata: \n\n" +
		"id: 8\n\n" +
		"retry: 1000\n\n" +
		"data: data: not a field\n\n" +
		":a comment\n:of two lines\n\n" +
		"data: last 41\n\n"
	register := events(func(e *dunlin.Events) error {
		for _, ev := range all {
			if err := e.Send(ev); err != nil {
				return err
			}
		}
		if err := e.Comment("a comment\nof two lines"); err != nil {
			return err
		}
		for _, bad := range []dunlin.Event{{ID: "a\nb"}, {ID: "a\x00"}, {Type: "a\rdata: x"}} {
			if e.Send(bad) == nil {
				return errors.New("an event that injects lines was sent")
			}
		}
		return e.Send(dunlin.Event{Data: "last " + e.LastEventID()})
	})
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, _ := Start(t, dunlin.Config{Engine: engine}, register)
		got := Exchange(t, addr, false, Request("GET /", "Last-Event-ID: 41"), Request("HEAD /"))
		if got[0] != head+"Transfer-Encoding: chunked\n\n"+want {
			t.Errorf("%q, want\n%q", got[0], want)
		}
		if got[1] != head+"\n" {
			t.Errorf("HEAD: got %q", got[1])
		}
	})
}

// The head is sent before the first event, each event at once, and heartbeats while there are no events.
func TestSSEHeartbeat(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		more := make(chan string)
		addr, _ := Start(t, dunlin.Config{Engine: engine}, events(func(e *dunlin.Events) error {
			e.Heartbeat(time.Millisecond)
			for m := range more {
				if m == "quiet" {
					e.Heartbeat(0)
				} else if err := e.Send(dunlin.Event{Data: m}); err != nil {
					return err
				}
			}
			return nil
		}))
		conn := Dial(t, addr)
		_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
		br := bufio.NewReader(conn)
		for line := "x"; line != "\r\n"; {
			var err error
			if line, err = br.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			if beat, err := br.ReadString('\n'); err != nil || beat != ":\n" {
				t.Fatalf("got %q, %v", beat, err)
			}
			_, _ = br.ReadString('\n')
		}
		for _, m := range []string{"a", "b"} {
			more <- m
			for {
				line, err := br.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if line == "data: "+m+"\n" {
					break
				}
				if line != ":\n" && line != "\n" {
					t.Fatalf("got %q", line)
				}
			}
		}
		more <- "quiet"
		close(more)
		if _, err := io.Copy(io.Discard, br); err != nil {
			t.Error(err)
		}
	})
}

// Done is closed when the client disconnects and when the server drains. Events cannot send after the end of the stream.
func TestSSEEnds(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		kept, ended := make(chan *dunlin.Events, 1), make(chan struct{})
		register := events(func(e *dunlin.Events) error {
			kept <- e
			<-e.Done()
			close(ended)
			return context.Cause(e.Context())
		})
		t.Run("client", func(t *testing.T) {
			addr, logs := Start(t, dunlin.Config{Engine: engine}, register)
			conn := Dial(t, addr)
			_, _ = io.WriteString(conn, Request("GET /"))
			e := <-kept
			_ = conn.Close()
			Await(t, "the end of the stream", ended)
			for e.Send(dunlin.Event{Data: "x"}) == nil {
			}
			WantLacks(t, "log of errors", logs.String(), "stream")
		})
		t.Run("drain", func(t *testing.T) {
			ended = make(chan struct{})
			app, logs := NewApp(dunlin.Config{Engine: engine})
			register(app)
			ln := Listen(t)
			served := make(chan error, 1)
			go func() { served <- app.Serve(ln) }()
			conn := Dial(t, ln.Addr().String())
			_, _ = io.WriteString(conn, Request("GET /"))
			Await(t, "the stream", kept)
			ctx, cancel := context.WithTimeout(t.Context(), Patience)
			defer cancel()
			if err := app.Shutdown(ctx); err != nil {
				t.Error(err)
			}
			Await(t, "the end of the stream", ended)
			if err := <-served; err != nil {
				t.Error(err)
			}
			got, err := ReadAnswer(bufio.NewReader(conn), "GET")
			_, last, _ := strings.Cut(got, "retry: ")
			if ms, _ := strconv.Atoi(strings.TrimSuffix(last, "\n\n")); err != nil || ms < 500 || ms >= 5500 {
				t.Errorf("%q, %v: want a clean end with a time to wait", got, err)
			}
			WantLacks(t, "log of errors", logs.String(), "stream")
		})
	})
}

func TestSSEFailures(t *testing.T) {
	w, logged := RespondWith(t, func() dunlin.Response { return dunlin.SSE(nil) })
	if w.Code != 500 {
		t.Errorf("a nil function: got %d", w.Code)
	}
	WantContains(t, "log", logged, "nil function")
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		addr, logs := Start(t, dunlin.Config{Engine: engine}, events(func(e *dunlin.Events) error {
			return errors.Join(e.Send(dunlin.Event{Data: "x"}), errors.New("out of luck"))
		}))
		conn := Dial(t, addr)
		_, _ = io.WriteString(conn, Request("GET /"))
		got, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(got), "data: x\n\n") || strings.Contains(string(got), "\r\n0\r\n") {
			t.Errorf("%q, %v: want the connection cut after the event", got, err)
		}
		WantLogged(t, logs, "out of luck")
	})
}

// The request's context ends with the event stream.
func TestSSECancelsRequestContext(t *testing.T) {
	OnEnginesAndTLS(t, func(t *testing.T, engine dunlin.Engine) {
		begun, ended := make(chan struct{}), make(chan struct{})
		var app *dunlin.App
		addr, _ := Start(t, dunlin.Config{Engine: engine}, func(a *dunlin.App) {
			app = a
			a.Get("/", func(r *dunlin.Request) dunlin.Response {
				return dunlin.SSE(func(e *dunlin.Events) error {
					below, cancel := context.WithCancel(r.Context())
					defer cancel()
					close(begun)
					<-below.Done()
					close(ended)
					return e.Context().Err()
				})
			})
		})
		conn := Dial(t, addr)
		Send(t, conn, Request("GET /"))
		Await(t, "the stream", begun)
		shutdown := make(chan error, 1)
		go func() { shutdown <- app.Shutdown(t.Context()) }()
		Await(t, "the end of the stream", ended)
		if err := Await(t, "the end of Shutdown", shutdown); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}
