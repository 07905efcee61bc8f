package typed

import (
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/dunlinhttp/dunlin"
)

// A Fault is an error that an operation declares: a status, an identifier for programs, and a title
// for people. Make it once at start-up, declare it with Op.Faults, and return it from actions. An
// action may also return the result of With, WithCause or Member. A Fault is immutable and safe for
// concurrent use.
//
//	var EmailTaken = typed.NewFault(409, "email-taken", "The address is taken")
//
//	return out, EmailTaken.With("There is an account of this address already").WithCause(err)
type Fault struct {
	base    *Fault // the fault that NewFault returned; nil in the result of NewFault itself
	problem dunlin.ProblemDetails
}

// These are faults that many operations return.
var (
	Unauthorized       = NewFault(http.StatusUnauthorized, "unauthorized", "Credentials are missing or invalid")
	Forbidden          = NewFault(http.StatusForbidden, "forbidden", "The credentials are not sufficient")
	NotFound           = NewFault(http.StatusNotFound, "not-found", "The resource does not exist")
	Conflict           = NewFault(http.StatusConflict, "conflict", "The state of the resource does not allow the request")
	PreconditionFailed = NewFault(http.StatusPreconditionFailed, "precondition-failed", "The resource has been changed")
	TooManyRequests    = NewFault(http.StatusTooManyRequests, "too-many-requests", "Too many requests")
	ServiceUnavailable = NewFault(http.StatusServiceUnavailable, "temporarily-impossible", "Temporarily unavailable; try again later")
)

// NewFault returns a new fault. id is the member type of the problem: a URI reference that
// identifies the kind of error and must not change, such as "email-taken" or
// "https://example.com/problems/email-taken". NewFault panics if status is not between 400 and 599,
// or if a text is empty. Answers with status 429 or 503 have a Retry-After of one second.
func NewFault(status int, id, title string) *Fault {
	if status < 400 || status > 599 || id == "" || title == "" {
		panic(fmt.Sprintf("typed: NewFault(%d, %q, %q): it needs a status from 400 to 599, a name and a title", status, id, title))
	}
	temporary := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	return &Fault{problem: dunlin.ProblemDetails{Status: status, Type: id, Title: title, Temporary: temporary}}
}

// With returns a copy of the fault with a detail, which the client gets.
func (f *Fault) With(detail string) *Fault {
	g := f.derive()
	g.problem.Detail = detail
	return g
}

// WithCause returns a copy of the fault with its cause. The cause is logged and the client does not
// get it.
func (f *Fault) WithCause(cause error) *Fault {
	g := f.derive()
	g.problem.Cause = cause
	return g
}

// Member returns a copy of the fault whose problem has an additional member.
func (f *Fault) Member(name string, value any) *Fault {
	g := f.derive()
	g.problem.Extensions = maps.Clone(f.problem.Extensions)
	if g.problem.Extensions == nil {
		g.problem.Extensions = map[string]any{}
	}
	g.problem.Extensions[name] = value
	return g
}

func (f *Fault) derive() *Fault { return &Fault{base: f.kind(), problem: f.problem} }

// kind returns the fault that NewFault returned, from which f was made.
func (f *Fault) kind() *Fault {
	if f.base != nil {
		return f.base
	}
	return f
}

// ID returns the identifier of the fault, Status returns its status, and Title returns its title.
func (f *Fault) ID() string    { return f.problem.Type }
func (f *Fault) Status() int   { return f.problem.Status }
func (f *Fault) Title() string { return f.problem.Title }

// Error returns a description for the log, which includes the cause.
func (f *Fault) Error() string { return f.problem.Error() }

// StatusCode returns the status. Package dunlin calls this method.
func (f *Fault) StatusCode() int { return f.problem.Status }

// Unwrap returns the cause, or nil.
func (f *Fault) Unwrap() error { return f.problem.Cause }

// Is reports whether f and target were made by the same call of NewFault. Additions by With,
// WithCause and Member have no effect.
func (f *Fault) Is(target error) bool {
	g, ok := target.(*Fault)
	return ok && g.kind() == f.kind()
}

// As stores the problem of the answer in *target if target is a **dunlin.ProblemDetails. Package
// dunlin calls it.
func (f *Fault) As(target any) bool {
	if p, ok := target.(**dunlin.ProblemDetails); ok {
		q := f.problem
		*p = &q
		return true
	}
	return false
}

// faultOf returns the fault that err is or wraps, or nil.
func faultOf(err error) *Fault {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f
	}
	return nil
}
