package typed

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"

	"github.com/dunlinhttp/dunlin"
)

// Invalid is the error of a request that violates rules. Its answer is a problem, and the member errors of the
// problem lists the violations.
type Invalid struct {
	Status     int
	Violations []Violation
	More       bool // more violations were found than are listed

	room [4]Violation
}

// invalid returns an *Invalid with the violations of the report.
func (b *binder) invalid() error {
	e := &Invalid{Status: cmp.Or(b.fileStatus, b.state.config.InvalidStatus), More: b.report.More}
	e.Violations = e.room[:0]
	for _, v := range b.report.List {
		e.Violations = append(e.Violations, Violation(v))
	}
	if message := b.state.config.Message; message != nil {
		for i := range e.Violations {
			if text := message(b.r, e.Violations[i]); text != "" {
				e.Violations[i].Message = text
			}
		}
	}
	return e
}

// Error lists the first violations for a log. The text contains no values of the request.
func (e *Invalid) Error() string {
	var b strings.Builder
	b.Write(e.appendDetail(nil, len(e.Violations)))
	for i := range e.Violations {
		if i == maxLogged {
			b.WriteString("; …")
			break
		}
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

// maxLogged is the maximum number of violations that Error lists.
const maxLogged = 20

// appendDetail appends a sentence with the number of violations. listed is the number of violations in the answer.
func (e *Invalid) appendDetail(b []byte, listed int) []byte {
	b = append(b, "the request is invalid in "...)
	if e.More || listed < len(e.Violations) {
		b = append(b, "more than "...)
	}
	b = strconv.AppendInt(b, int64(listed), 10)
	if listed == 1 {
		return append(b, " place"...)
	}
	return append(b, " places"...)
}

// StatusCode returns the status of the answer.
func (e *Invalid) StatusCode() int { return e.Status }

// ProblemDetails returns the problem of the answer, for [dunlin.Config].Problems. Its extension member errors has the
// violations.
func (e *Invalid) ProblemDetails() *dunlin.ProblemDetails {
	return &dunlin.ProblemDetails{
		Status: e.Status, Detail: string(e.appendDetail(nil, len(e.Violations))),
		Extensions: map[string]any{"errors": e.Violations}, Cause: e,
	}
}

// longestInvalid is the maximum size of the list of violations in an answer, in bytes. The list can exceed it only if
// a single violation has a long text from the application.
const longestInvalid = 63 << 10

// Response returns the answer: a problem with the member errors. The problem has a size of at most about 64 KiB.
func (e *Invalid) Response() dunlin.Response {
	list := make([]byte, 0, 128*len(e.Violations))
	listed := 0
	for i := range e.Violations {
		before := len(list)
		if i > 0 {
			list = append(list, ',')
		}
		if list = e.Violations[i].appendJSON(list); len(list) > longestInvalid && i > 0 {
			list = list[:before]
			break
		}
		listed++
	}
	b := make([]byte, 0, 256+len(list))
	b = append(b, `{"title":"`...)
	b = append(b, http.StatusText(e.Status)...)
	b = append(b, `","status":`...)
	b = strconv.AppendInt(b, int64(e.Status), 10)
	b = append(b, `,"detail":"`...)
	b = e.appendDetail(b, listed)
	b = append(append(b, `","errors":[`...), list...)
	b = append(b, "]}"...)
	return dunlin.Bytes("application/problem+json", b).Status(e.Status)
}
