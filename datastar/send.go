package datastar

import (
	"fmt"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/sse"
)

// Send sends patches on an event stream. It returns at the first error.
func Send(e *dunlin.Events, patches ...Patch) error {
	for _, p := range patches {
		event, err := p.Event(e.Context())
		if err == nil {
			err = e.Send(event)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var stream = dunlin.NewHeaderBlock("Content-Type", "text/event-stream", "Cache-Control", "no-cache")

// Answer answers 200 with an event stream that has the given patches and then ends. It makes all patches before anything is
// sent, so the error of a patch is answered as by [dunlin.Error].
func Answer(r *dunlin.Request, patches ...Patch) dunlin.Response {
	var body []byte
	for i, p := range patches {
		event, err := p.Event(r.Context())
		if err == nil && strings.ContainsAny(event.ID+event.Type, "\r\n\x00") {
			err = fmt.Errorf("datastar: ID or type of event %d has a line break: %q, %q", i, event.ID, event.Type)
		}
		if err != nil {
			return dunlin.Error(err)
		}
		body = (&sse.Event{ID: event.ID, Type: event.Type, Data: event.Data, Retry: event.Retry}).Append(body)
	}
	return dunlin.Bytes("", body).With(stream)
}
