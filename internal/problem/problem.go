// Package problem writes problem details (RFC 9457) as JSON, and finds the status of an error.
package problem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// Details are the members of a problem. Empty members are omitted.
type Details struct {
	Type, Title      string
	Status           int
	Detail, Instance string
	Extensions       map[string]any // additional members; the names of the other members are skipped
}

// Append appends the problem as JSON. It returns the error of encoding an extension.
func (p *Details) Append(b []byte) ([]byte, error) {
	b = append(b, '{')
	member := func(name, value string) {
		if value != "" {
			b = append(b, '"')
			b = append(b, name...)
			b = append(b, `":`...)
			b = jsonwire.AppendString(b, value, jsonwire.Options{})
			b = append(b, ',')
		}
	}
	member("type", p.Type)
	member("title", p.Title)
	b = append(b, `"status":`...)
	b = strconv.AppendInt(b, int64(p.Status), 10)
	b = append(b, ',')
	member("detail", p.Detail)
	member("instance", p.Instance)
	for _, name := range exchange.SortedKeys(p.Extensions) {
		switch name {
		case "type", "title", "status", "detail", "instance":
			continue
		}
		b = jsonwire.AppendString(b, name, jsonwire.Options{})
		b = append(b, ':')
		var err error
		if b, err = jsonwire.AppendValue(b, p.Extensions[name], jsonwire.Options{}); err != nil {
			return b, fmt.Errorf("%q: %w", name, err)
		}
		b = append(b, ',')
	}
	b[len(b)-1] = '}'
	return b, nil
}

// Title returns the title of a problem that has no type of its own: the text of its status.
func Title(status int) string {
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "Status " + strconv.Itoa(status)
}

// StatusOf returns the status code for an error: the result of its method StatusCode, 413 for an *http.MaxBytesError, 503 for
// context.DeadlineExceeded, otherwise 500.
func StatusOf(err error) int {
	if coder, ok := errors.AsType[interface {
		error
		StatusCode() int
	}](err); ok {
		if code := coder.StatusCode(); code >= 400 && code <= 599 {
			return code
		}
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
