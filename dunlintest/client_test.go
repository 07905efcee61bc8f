package dunlintest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/observe"
)

func ExampleNewClient() {
	app := dunlin.New(dunlin.Config{})
	app.Get("/hello/{name}", func(r *dunlin.Request) dunlin.Response {
		return dunlin.Text("Hello, " + r.Param("name") + "!")
	})
	resp, err := dunlintest.NewClient(app).Get("http://example.com/hello/world")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.Status, string(body))
	// Output: 200 OK Hello, world!
}

// ask returns the answer to a request and its body.
func ask(t *testing.T, app *dunlin.App, method, path, body string) (*http.Response, string, error) {
	t.Helper()
	var src io.Reader
	if body != "" {
		src = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://h.example"+path, src)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := dunlintest.NewTransport(app).RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

func quiet() dunlin.Config {
	return dunlin.Config{Limits: dunlin.Limits{MaxBody: 1000}, Logger: discard}
}

func TestClient(t *testing.T) {
	app := dunlin.New(quiet())
	app.Get("/text", func(*dunlin.Request) dunlin.Response { return dunlin.Text("some text") })
	app.Post("/echo", func(r *dunlin.Request) dunlin.Response {
		body, err := r.Bytes()
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Bytes("text/plain", body)
	})
	app.Get("/stream", func(*dunlin.Request) dunlin.Response {
		return dunlin.Stream("text/plain", func(w io.Writer) error {
			for range 100 {
				if _, err := io.WriteString(w, strings.Repeat("x", 1000)); err != nil {
					return err
				}
			}
			return nil
		})
	})
	app.Get("/broken", func(*dunlin.Request) dunlin.Response {
		return dunlin.Stream("text/plain", func(w io.Writer) error {
			_, _ = io.WriteString(w, strings.Repeat("x", 10_000))
			return errors.New("end of the stream")
		})
	})
	app.Get("/abort", func(*dunlin.Request) dunlin.Response { panic(http.ErrAbortHandler) })
	app.Get("/exit", func(*dunlin.Request) dunlin.Response { runtime.Goexit(); return dunlin.Empty() })
	app.Mount("/std", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-End")
		_, _ = fmt.Fprint(w, r.RequestURI, " ", r.RemoteAddr, " ", r.Host)
		_ = http.NewResponseController(w).Flush()
		w.Header().Set("X-End", "here")
	}))
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
		err                error
	}{
		{"GET", "/text", "", 200, "some text", nil},
		{"HEAD", "/text", "", 200, "", nil},
		{"GET", "/nowhere", "", 404, `{"title":"Not Found","status":404}`, nil},
		{"POST", "/echo", "a body", 200, "a body", nil},
		{"POST", "/echo", strings.Repeat("x", 1001), 413, `{"title":"Request Entity Too Large","status":413,"detail":"the request body is larger than the limit of 1000 bytes"}`, nil},
		{"GET", "/stream", "", 200, strings.Repeat("x", 100_000), nil},
		{"HEAD", "/stream", "", 200, "", nil},
		{"GET", "/broken", "", 200, strings.Repeat("x", 10_000), io.ErrUnexpectedEOF},
		{"GET", "/abort", "", 0, "", io.ErrUnexpectedEOF},
		{"GET", "/exit", "", 0, "", io.ErrUnexpectedEOF},
		{"GET", "/std/a?b", "", 200, "/std/a?b 192.0.2.1:1234 h.example", nil},
	} {
		resp, got, err := ask(t, app, c.method, c.path, c.body)
		status := 0
		if resp != nil {
			status = resp.StatusCode
		}
		if status != c.status || got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s %s: got %d %.200q, %v; want %d %.200q, %v", c.method, c.path, status, got, err, c.status, c.want, c.err)
		}
		if strings.HasPrefix(c.path, "/std") && resp.Trailer.Get("X-End") != "here" {
			t.Errorf("%s: trailers %v", c.path, resp.Trailer)
		}
	}
}

// A client that closes the body, or cancels the request, ends the context of the request.
func TestClientDisconnects(t *testing.T) {
	app := dunlin.New(quiet())
	ended := make(chan error, 1)
	app.Get("/events", func(*dunlin.Request) dunlin.Response {
		return dunlin.SSE(func(e *dunlin.Events) error {
			err := e.Send(dunlin.Event{Data: "one"})
			<-e.Done()
			ended <- e.Context().Err()
			return err
		})
	})
	entered := make(chan struct{}, 1)
	app.Get("/wait", func(r *dunlin.Request) dunlin.Response {
		entered <- struct{}{}
		<-r.Context().Done()
		ended <- r.Context().Err()
		return dunlin.Empty()
	})
	client := dunlintest.NewClient(app)
	resp, err := client.Get("http://h.example/events")
	if err != nil {
		t.Fatal(err)
	}
	first := make([]byte, len("data: one\n\n"))
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "data: one\n\n" {
		t.Fatalf("got %q, %v", first, err)
	}
	_ = resp.Body.Close()
	if err := <-ended; err != context.Canceled {
		t.Errorf("closed body: %v", err)
	}

	ctx, leave := context.WithCancel(t.Context())
	go func() { <-entered; leave() }()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://h.example/wait", nil)
	if _, err := client.Do(req); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled request: %v", err)
	}
	if err := <-ended; err != context.Canceled {
		t.Errorf("action of the cancelled request: %v", err)
	}
}

// A late action gets the answer of its timeout, and its own response is discarded.
func TestClientTimeout(t *testing.T) {
	app := dunlin.New(quiet())
	var late = make(chan error, 1)
	app.Get("/late", func(r *dunlin.Request) dunlin.Response {
		<-r.Context().Done()
		late <- r.Context().Err()
		return dunlin.Text("late")
	}).Timeout(time.Millisecond)
	seen := make(chan observe.Source, 2)
	app.Install(dunlin.Hooks{Observe: func(i *dunlin.AnswerInfo) { seen <- i.Source() }})
	resp, _, err := ask(t, app, "GET", "/late", "")
	if err != nil || resp.StatusCode != 503 || !resp.Close {
		t.Errorf("got %v, %v", resp, err)
	}
	if err := <-late; err != context.DeadlineExceeded {
		t.Errorf("action: %v", err)
	}
	if source := <-seen; source != observe.SourceTimeout {
		t.Errorf("observer: got %v", source)
	}
}

var discard = slog.New(slog.DiscardHandler)

// A stream continues after its response has begun, also before the client reads it.
func TestClientStreamBegins(t *testing.T) {
	app := dunlin.New(quiet())
	listens := make(chan struct{})
	app.Get("/", func(*dunlin.Request) dunlin.Response {
		return dunlin.SSE(func(e *dunlin.Events) error {
			close(listens)
			<-e.Done()
			return nil
		})
	})
	resp, err := dunlintest.NewClient(app).Get("http://example.com/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	select {
	case <-listens:
	case <-time.After(20 * time.Second):
		t.Error("the stream waits for a reader")
	}
}

// A client that follows the redirect to https gets there.
func TestClientByTLS(t *testing.T) {
	app := dunlin.New(dunlin.Config{TLS: dunlin.TLSConfig{HSTS: time.Minute}})
	app.Get("/", func(r *dunlin.Request) dunlin.Response {
		return dunlin.Text(fmt.Sprint(r.Secure(), r.TLS().ServerName))
	})
	resp, err := dunlintest.NewClient(app).Get("http://example.com:80/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if got := resp.Header.Get("Strict-Transport-Security"); err != nil || string(body) != "trueexample.com" || got != "max-age=60" {
		t.Errorf("%s: got %q (%v), %q", resp.Request.URL, body, err, got)
	}
}
