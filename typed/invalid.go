package typed

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/schema"
)

// A Violation is one thing that is wrong with a request: where, and which rule is broken. It
// never holds the value.
type Violation = schema.Violation

// Invalid is the error of a request that breaks rules, with all of them. It is answered
// with a problem whose member errors lists them.
type Invalid struct {
	Status     int
	Violations []Violation
	More       bool // there are more than are listed

	room [4]Violation
}

// invalid makes an error of what the report holds.
func (b *binder) invalid() error {
	e := &Invalid{Status: b.state.config.InvalidStatus, More: b.report.More}
	e.Violations = append(e.room[:0], b.report.List...)
	if message := b.state.config.Message; message != nil {
		for i := range e.Violations {
			if text := message(b.r, e.Violations[i]); text != "" {
				e.Violations[i].Message = text
			}
		}
	}
	return e
}

// Error lists the violations for a log. They hold no values.
func (e *Invalid) Error() string {
	var b strings.Builder
	b.Write(e.appendDetail(nil))
	for i := range e.Violations {
		v := &e.Violations[i]
		b.WriteString("; " + v.In + " ")
		if v.Name != "" {
			b.WriteString(v.Name + " ")
		}
		if v.Pointer != "" {
			b.WriteString(v.Pointer + " ")
		}
		b.WriteString(v.Text())
	}
	return b.String()
}

// appendDetail appends how much is wrong.
func (e *Invalid) appendDetail(b []byte) []byte {
	b = append(b, "the request is invalid in "...)
	if e.More {
		b = append(b, "more than "...)
	}
	b = strconv.AppendInt(b, int64(len(e.Violations)), 10)
	if len(e.Violations) == 1 {
		return append(b, " place"...)
	}
	return append(b, " places"...)
}

// StatusCode returns the status the error is answered with.
func (e *Invalid) StatusCode() int { return e.Status }

// Response is the answer: a problem with the member errors.
func (e *Invalid) Response() dunlin.Response {
	b := make([]byte, 0, 256+128*len(e.Violations))
	b = append(b, `{"title":"`...)
	b = append(b, http.StatusText(e.Status)...)
	b = append(b, `","status":`...)
	b = strconv.AppendInt(b, int64(e.Status), 10)
	b = append(b, `,"detail":"`...)
	b = e.appendDetail(b)
	b = append(b, `","errors":[`...)
	for i := range e.Violations {
		if i > 0 {
			b = append(b, ',')
		}
		b = e.Violations[i].AppendJSON(b)
	}
	b = append(b, "]}"...)
	return dunlin.Bytes("application/problem+json", b).Status(e.Status)
}
