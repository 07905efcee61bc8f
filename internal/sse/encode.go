package sse

import (
	"strconv"
	"strings"
	"time"
)

// An Event is a message of an event stream (HTML standard, section 9.2).
type Event struct {
	ID, Type, Data string
	Retry          time.Duration // time after which the client reconnects; 0 sends none
}

// Append appends the event and the empty line that ends it. An event without data is sent only if it has a type.
func (ev *Event) Append(b []byte) []byte {
	if ev.Type != "" {
		b = AppendLines(b, "event: ", ev.Type)
	}
	if ev.ID != "" {
		b = AppendLines(b, "id: ", ev.ID)
	}
	if ev.Retry > 0 {
		b = append(b, "retry: "...)
		b = append(strconv.AppendInt(b, ev.Retry.Milliseconds(), 10), '\n')
	}
	if ev.Data != "" || ev.Type != "" {
		b = AppendLines(b, "data: ", ev.Data)
	}
	return append(b, '\n')
}

// AppendLines appends each line of text with the prefix. LF, CR and CRLF end a line, as for a client.
func AppendLines(b []byte, prefix, text string) []byte {
	for {
		i := strings.IndexAny(text, "\r\n")
		b = append(b, prefix...)
		if i < 0 {
			b = append(b, text...)
			return append(b, '\n')
		}
		b = append(append(b, text[:i]...), '\n')
		if strings.HasPrefix(text[i:], "\r\n") {
			i++
		}
		text = text[i+1:]
	}
}
