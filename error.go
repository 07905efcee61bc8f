package dunlin

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/problem"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// ProblemDetails is an error for two readers: the client receives it as application/problem+json
// (RFC 9457), and the log receives its Cause, which is never sent. Return it from the code that
// detects the error and answer with [Error], or answer with [Problem] directly.
type ProblemDetails struct {
	Type     string // a URI that identifies the problem type; "" is about:blank
	Title    string // a summary of Type, always the same; "" is the text of Status
	Status   int    // the status code; 0 is 500
	Detail   string // an explanation of this occurrence, for the client
	Instance string // a URI for this occurrence

	// Extensions are additional members of the JSON object, written in order of their names. Extensions
	// with the name of a member above are skipped.
	Extensions map[string]any

	Cause error // for the log

	Temporary bool // the client may try again soon: the answer has Retry-After: 1

	memoryRefusal bool // the only cause is a temporary lack of memory
}

// Error returns the status, title, detail and cause, for the log.
func (p *ProblemDetails) Error() string {
	s := strconv.Itoa(p.status()) + " " + p.title()
	if p.Detail != "" {
		s += ": " + p.Detail
	}
	if p.Cause != nil {
		s += ": " + p.Cause.Error()
	}
	return s
}

// Unwrap returns the cause.
func (p *ProblemDetails) Unwrap() error { return p.Cause }

// StatusCode returns the status of the answer: Status, or 500 if it is 0.
func (p *ProblemDetails) StatusCode() int { return p.status() }

func (p *ProblemDetails) status() int { return cmp.Or(p.Status, http.StatusInternalServerError) }

func (p *ProblemDetails) title() string { return cmp.Or(p.Title, problem.Title(p.status())) }

// append appends the problem as JSON. It returns the error of encoding an extension.
func (p *ProblemDetails) append(b []byte) ([]byte, error) {
	d := problem.Details{Type: p.Type, Title: p.title(), Status: p.status(), Detail: p.Detail, Instance: p.Instance, Extensions: p.Extensions}
	return d.Append(b)
}

// Problem answers with p as application/problem+json, or in the format of [Config].Problems. The cause,
// if any, is logged. The response refers to a copy of p, which shares the map Extensions with p. A nil p
// is answered with 500.
func Problem(p *ProblemDetails) Response {
	if p == nil {
		return Response{}.fail(errors.New("dunlin.Problem called with nil"))
	}
	own := *p
	status := own.status()
	if status < 400 || status > 599 {
		return Response{}.fail(fmt.Errorf("problem status %d is not between 400 and 599: %v", status, &own))
	}
	block := blockProblem
	if own.Temporary {
		block = blockPassing
	}
	x := exchange.NewOwn(&block.block)
	body, err := own.append(x.Buf[:0])
	x.Buf, x.Err = body, own.Cause
	r := Response{x.Answer(status, view.String(body))}
	r.a.SetProblem(&own)
	if err != nil {
		own.Extensions = nil // they contain the value that cannot be encoded
		return Response{}.fail(fmt.Errorf("extensions: %w, of the problem %v", err, &own))
	}
	return r
}

// Error answers err. If err is or wraps an error with a method StatusCode() int, the answer has that
// status. The answer to a [ProblemDetails] also has its text for the client. An *http.MaxBytesError is
// a 413, context.DeadlineExceeded a 503, and any other error a 500 without details. The error is
// logged: at level Error from 500 on, else at Debug. Of the failures that are answered with
// 503 and Retry-After, such as an unavailable store, one a second is logged at level Error, with a count, the others at Debug.
//
// An error with a method Response() Response provides the answer itself. If it also has a method
// ProblemDetails() *ProblemDetails, its answer is a problem, see [Config].Problems.
func Error(err error) Response {
	if err == nil {
		err = errors.New("dunlin.Error called with a nil error")
	}
	if own, ok := errors.AsType[interface {
		error
		Response() Response
	}](err); ok {
		resp := own.Response()
		if x := resp.a.EnsureOwn(); x.Err == nil {
			x.Err = err
		}
		if p, ok := own.(detailed); ok {
			resp.a.SetProblem(p)
		}
		return resp
	}
	if p, ok := errors.AsType[*ProblemDetails](err); ok {
		q := *p
		q.Cause = err
		return Problem(&q)
	}
	return Problem(&ProblemDetails{Status: problem.StatusOf(err), Cause: err})
}

// Try returns an action that calls act. It answers an error of act by [Error], or by the function
// given to [App.OnError].
func Try(act func(*Request) (Response, error)) Action {
	if act == nil {
		return nil // registration panics with the place
	}
	return func(r *Request) Response {
		resp, err := act(r)
		if err != nil {
			return r.app.failed(r, err)
		}
		return resp
	}
}

// failed answers an error returned by an action.
func (a *App) failed(r *Request, err error) Response {
	if a.onError != nil {
		r.told = true
		if resp := a.onError(r, err); resp.a.Kind() != exchange.Missing {
			return resp
		}
	}
	return Error(err)
}

// callOnError calls the function given to OnError for a failure that has been answered. It runs outside of
// actions, so it recovers and logs a panic of the function.
func (a *App) callOnError(r *Request, err error) {
	if a.onError == nil || r.told {
		return
	}
	r.told = true
	defer a.contain("panic in the function given to OnError")
	ignored := a.onError(r, err)
	if ignored.a.Own() != nil && ignored.a.Claim() {
		releaseMemory(&ignored.a)
	}
}

// noMemory returns the problem for a request for memory that the budget has refused.
func (a *App) noMemory(what string, met memory.Cap) *ProblemDetails {
	return &ProblemDetails{Status: http.StatusServiceUnavailable, Detail: "no room for " + what + ": " + a.memory.Budget.Why(met), Temporary: true, memoryRefusal: true}
}

// isMemoryRefusal reports whether err is or wraps a problem that only reports a temporary lack of memory.
func isMemoryRefusal(err error) bool {
	p, ok := errors.AsType[*ProblemDetails](err)
	return ok && p.memoryRefusal
}

// NotFound answers 404 as a problem.
func NotFound() Response { return Problem(&ProblemDetails{Status: http.StatusNotFound}) }

// badRequest returns a 400 problem.
func badRequest(detail string, cause error) *ProblemDetails {
	return &ProblemDetails{Status: http.StatusBadRequest, Detail: detail, Cause: cause}
}

// contain logs the panic of the function that has deferred it.
func (a *App) contain(what string) {
	if v := recover(); v != nil {
		a.log.Error(what, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	}
}
