// Command llm passes the tokens of a language model on to browsers, as server-sent events (SSE). Without -to, a fake model answers.
//
//	go run ./examples/llm
//	curl -N 127.0.0.1:3000/chat -d 'What is a dunlin?'
package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
)

func main() {
	to := flag.String("to", "", "`URL` of a model that streams tokens as events")
	flag.Parse()
	if *to == "" {
		*to = httptest.NewServer(http.HandlerFunc(fakeModel)).URL
	}
	if err := newApp(dunlin.Config{Addr: "127.0.0.1:3000"}, *to).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func newApp(config dunlin.Config, model string) *dunlin.App {
	app := dunlin.New(config)
	app.Post("/chat", func(r *dunlin.Request) dunlin.Response {
		prompt, err := r.Bytes()
		if err != nil {
			return dunlin.Error(err)
		}
		prompt = bytes.Clone(prompt) // the slice is borrowed, and the stream runs after the action
		return dunlin.SSE(func(events *dunlin.Events) error { return chat(events, model, prompt) })
	})
	return app
}

// chat sends each token when it arrives. When the client disconnects, the context of the stream ends. This ends the request to the
// model, even while the request waits for the first token.
func chat(events *dunlin.Events, model string, prompt []byte) error {
	req, err := http.NewRequestWithContext(events.Context(), "POST", model, bytes.NewReader(prompt))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return events.Send(dunlin.Event{Type: "failed", Data: "the model is unavailable"})
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return events.Send(dunlin.Event{Type: "failed", Data: "the model answered " + resp.Status})
	}
	for lines := bufio.NewScanner(resp.Body); ; {
		if !lines.Scan() {
			return events.Send(dunlin.Event{Type: "failed", Data: "the model has ended early"})
		}
		token, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !ok:
		case token == "[DONE]":
			return events.Send(dunlin.Event{Type: "done"})
		default:
			if err := events.Send(dunlin.Event{Data: token}); err != nil {
				return err
			}
		}
	}
}

// fakeModel sends ten tokens a second.
func fakeModel(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, token := range strings.Fields("A small wader that turns black below in summer. [DONE]") {
		fmt.Fprintf(w, "data: %s\n\n", token)
		w.(http.Flusher).Flush()
		select {
		case <-time.After(100 * time.Millisecond):
		case <-r.Context().Done():
			return
		}
	}
}
