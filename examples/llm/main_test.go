package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

// A model is a fake upstream.
type model struct {
	*httptest.Server
	asked  chan string    // prompts
	tokens chan string    // sent as they are; "" ends the response
	left   chan time.Time // the request was cancelled
}

func newModel(t *testing.T) *model {
	m := &model{asked: make(chan string, 1), tokens: make(chan string), left: make(chan time.Time, 1)}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		prompt, _ := io.ReadAll(r.Body)
		m.asked <- string(prompt)
		for {
			select {
			case token := <-m.tokens:
				if token == "" {
					return
				}
				_, _ = io.WriteString(w, "data: "+token+"\n\n")
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				m.left <- time.Now()
				return
			}
		}
	}))
	t.Cleanup(m.Close)
	return m
}

// ask sends a prompt to a new app, and returns the response with its lines.
func ask(t *testing.T, app *dunlin.App) (resp *http.Response, line func() string, leave func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "POST", "http://"+dunlintest.Serve(t, app)+"/chat", strings.NewReader("What is a dunlin?"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err = http.DefaultClient.Do(req) // returns when the head has arrived, before the first token
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	return resp, func() string {
		t.Helper()
		for lines.Scan() {
			if lines.Text() != "" {
				return lines.Text()
			}
		}
		t.Fatal("the stream ended: ", lines.Err())
		return ""
	}, cancel
}

// onEngines runs f on both engines with a model.
func onEngines(t *testing.T, f func(t *testing.T, m *model, app *dunlin.App)) {
	for _, engine := range []dunlin.Engine{dunlin.EngineLoop, dunlin.EngineStd} {
		t.Run(engine.String(), func(t *testing.T) {
			m := newModel(t)
			f(t, m, newApp(dunlin.Config{Engine: engine}, m.URL))
		})
	}
}

// The head arrives before the first token, and each token before the next one exists.
func TestTokens(t *testing.T) {
	onEngines(t, func(t *testing.T, m *model, app *dunlin.App) {
		resp, line, _ := ask(t, app)
		if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != "text/event-stream" {
			t.Fatalf("answered %s, %s", resp.Status, got)
		}
		if got := <-m.asked; got != "What is a dunlin?" {
			t.Errorf("the model was asked %q", got)
		}
		for _, token := range []string{"A", "small", "wader"} {
			m.tokens <- token
			if got := line(); got != "data: "+token {
				t.Errorf("got %q, want token %q", got, token)
			}
		}
		m.tokens <- "[DONE]"
		if got := line(); got != "event: done" {
			t.Errorf("got %q, want the end", got)
		}
	})
}

// A client that leaves ends the request to the model, also before the first token.
func TestClientLeaves(t *testing.T) {
	for _, tokens := range []int{0, 1} {
		onEngines(t, func(t *testing.T, m *model, app *dunlin.App) {
			_, line, leave := ask(t, app)
			<-m.asked
			for range tokens {
				m.tokens <- "A"
				line()
			}
			begun := time.Now()
			leave()
			t.Logf("after %d tokens the request to the model was cancelled within %v", tokens, (<-m.left).Sub(begun))
		})
	}
}

// A failure of the model is an event.
func TestModelFails(t *testing.T) {
	onEngines(t, func(t *testing.T, m *model, app *dunlin.App) {
		_, line, _ := ask(t, app)
		<-m.asked
		m.tokens <- "A"
		line()
		m.tokens <- ""
		if got := line() + " " + line(); got != "event: failed data: the model has ended early" {
			t.Errorf("after an early end: got %q", got)
		}
	})
	for url, want := range map[string]string{
		"http://127.0.0.1:0": "event: failed data: the model is unavailable",
		"":                   "event: failed data: the model answered 404 Not Found",
	} {
		if url == "" {
			none := httptest.NewServer(http.NotFoundHandler())
			defer none.Close()
			url = none.URL
		}
		_, line, _ := ask(t, newApp(dunlin.Config{}, url))
		if got := line() + " " + line(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestFakeModel(t *testing.T) {
	fake := httptest.NewServer(http.HandlerFunc(fakeModel))
	defer fake.Close()
	_, line, leave := ask(t, newApp(dunlin.Config{}, fake.URL))
	if got := line(); got != "data: A" {
		t.Errorf("got %q", got)
	}
	leave()
}
