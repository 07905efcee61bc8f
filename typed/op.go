package typed

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/negotiate"
)

// A Router registers routes: an App, a dunlin.Group or a [Group].
type Router interface {
	Handle(methods, pattern string, act dunlin.Action, middleware ...dunlin.Middleware) *dunlin.Route
	App() *dunlin.App
}

// An Action answers an input with an output or an error. In is a struct, see the package documentation. The input belongs to the action
// and remains valid after the request. An error is answered in the same way as by [dunlin.Try].
type Action[In, Out any] func(r *dunlin.Request, in In) (Out, error)

// An Op is an operation on the server, with its input type and its output type. Registration returns it. Methods that change an Op must be
// called before the first request to the operation.
type Op[In, Out any] struct {
	*Operation
	inputs sync.Pool // pool of *input[In]
}

// An Operation is the part of an [Op] that does not depend on In and Out. Documents and middleware use it.
type Operation struct {
	route   *dunlin.Route
	state   *appState
	plan    *plan
	result  *result
	formats *negotiate.Negotiator // nil if the output is sent only as JSON
	methods string
	op      any // the *Op that contains this Operation

	summary, description string
	tags                 []string
	deprecated, hidden   bool
	faults               []*Fault
	returns              []Answer
	examples             []Example

	// Declarations of middleware, see Declares.
	declared []*Fault
	security []Requirement
	extra    []Answer

	statuses func() map[int]bool // returns the set of statuses of Answers, which is computed for the first error
}

// An Example is a named example of a request body.
type Example struct {
	Name  string
	Value any
}

// Get registers an action for GET requests. The route also answers HEAD requests.
func Get[In, Out any](g Router, pattern string, act Action[In, Out], middleware ...dunlin.Middleware) *Op[In, Out] {
	return Handle(g, http.MethodGet, pattern, act, middleware...)
}

// Post registers an action for POST requests.
func Post[In, Out any](g Router, pattern string, act Action[In, Out], middleware ...dunlin.Middleware) *Op[In, Out] {
	return Handle(g, http.MethodPost, pattern, act, middleware...)
}

// Put registers an action for PUT requests.
func Put[In, Out any](g Router, pattern string, act Action[In, Out], middleware ...dunlin.Middleware) *Op[In, Out] {
	return Handle(g, http.MethodPut, pattern, act, middleware...)
}

// Patch registers an action for PATCH requests.
func Patch[In, Out any](g Router, pattern string, act Action[In, Out], middleware ...dunlin.Middleware) *Op[In, Out] {
	return Handle(g, http.MethodPatch, pattern, act, middleware...)
}

// Delete registers an action for DELETE requests.
func Delete[In, Out any](g Router, pattern string, act Action[In, Out], middleware ...dunlin.Middleware) *Op[In, Out] {
	return Handle(g, http.MethodDelete, pattern, act, middleware...)
}

// Handle registers an action for a comma-separated list of methods. Like every registration it panics if the program has an error, such as
// an invalid tag or a path parameter for which In has no field.
func Handle[In, Out any](g Router, methods, pattern string, act Action[In, Out], middleware ...dunlin.Middleware) *Op[In, Out] {
	if act == nil {
		panic(fmt.Sprintf("typed: %s %s: nil action", methods, pattern))
	}
	op := &Op[In, Out]{Operation: &Operation{state: stateOf(g.App()), methods: methods}}
	op.op = op
	setDefaults(g, op.Operation)
	op.statuses = sync.OnceValue(op.Operation.answerStatuses)
	op.state.mu.Lock()
	op.state.used = true
	op.state.mu.Unlock()
	wrong := func(what string, err error) string {
		return fmt.Sprintf("typed: %s %s: %s%v", methods, pattern, what, err)
	}
	var err error
	if op.result, err = resultFor[Out](); err != nil {
		panic(wrong("output: ", err))
	}
	op.formats = op.result.negotiator(op.state.config.Formats)
	if methods == "*" {
		panic(wrong("", errors.New("an operation needs named methods")))
	}
	if op.plan, err = newPlan(reflect.TypeFor[In](), methods, op.state.config.ignores()); err != nil {
		panic(wrong("", err))
	}
	op.inputs.New = func() any { return new(input[In]) }
	registering.while(op.Operation, func() {
		op.route = g.Handle(methods, pattern, op.action(act), middleware...)
	})
	if err := op.plan.matchPath(op.route.Info().Params); err != nil {
		panic(wrong("", err))
	}
	ext.Describe(op.route, op.Operation)
	return op
}

// input is an input and the binder that fills it.
type input[In any] struct {
	in     In
	binder binder
}

// action returns the operation as an action of package dunlin.
func (op *Op[In, Out]) action(act Action[In, Out]) dunlin.Action {
	o, bound := op.Operation, op.bound(act)
	direct := op.plan.direct()
	if direct == nil || !op.isPlain() {
		return dunlin.Try(bound)
	}
	return dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) {
		var in In
		if ok, err := direct.bind(r, o.state, hidden(&in)); err != nil {
			return dunlin.Response{}, err
		} else if !ok {
			return bound(r)
		}
		out, err := act(r, in)
		if err != nil {
			o.recordError(r, err)
			return dunlin.Response{}, err
		}
		return op.result.respond(hidden(&out), nil), nil
	})
}

// bound returns a function that binds the input and calls the action.
func (op *Op[In, Out]) bound(act Action[In, Out]) func(*dunlin.Request) (dunlin.Response, error) {
	o := op.Operation
	return func(r *dunlin.Request) (dunlin.Response, error) {
		p := op.plan
		if !op.isPlain() {
			if err := o.acceptable(r); err != nil {
				return dunlin.Response{}, err
			}
		}
		x := op.inputs.Get().(*input[In])
		x.binder.r, x.binder.state = r, o.state
		if err := x.binder.bind(p, addressOf(&x.in)); err != nil {
			op.recycle(x)
			return dunlin.Response{}, err
		}
		out, err := act(r, x.in)
		op.recycle(x)
		if err != nil {
			o.recordError(r, err)
			return dunlin.Response{}, err
		}
		if !op.isPlain() {
			return o.respond(r, hidden(&out)), nil
		}
		return op.result.respond(hidden(&out), nil), nil
	}
}

// recycle returns an input to the pool, unless other code may still refer to it.
func (op *Op[In, Out]) recycle(x *input[In]) {
	if op.plan.runsCode {
		return
	}
	var zero In
	x.in = zero
	x.binder.r, x.binder.err, x.binder.fileStatus = nil, nil, 0
	if report := &x.binder.report; len(report.List) > 0 || report.Ended {
		report.Reset()
	}
	op.inputs.Put(x)
}
