package dunlin

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/internal/textvalue"
)

// parameter is the constraint for the types that Param, Query and QueryOr read.
type parameter interface {
	int | int64 | uint64 | float64 | bool | time.Duration | time.Time
}

// Param returns the path parameter of the given name as a T: int, int64, uint64, float64, bool, time.Duration or
// time.Time. If the route has no such parameter, it returns the query parameter. Integers are decimal, and numbers
// finite. Truth values have the form of strconv.ParseBool (1, t, true, 0, f or false), durations that of
// time.ParseDuration (1m30s), and times that of RFC 3339.
//
// The error is a *ProblemDetails that [Error] answers with 400: the value is missing, or not a T. If the route has
// parameters, but neither the route nor the query has this name, the name is assumed to be misspelt: the answer is a 500
// whose cause says so. Read an optional query parameter with [QueryOr].
func Param[T parameter](r *Request, name string) (T, error) {
	if text, ok := r.param(name); ok {
		return parsed[T]("path", name, text)
	}
	if r.match.Len() > 0 && !r.HasQuery(name) {
		var zero T
		return zero, r.unknownParam(name)
	}
	return Query[T](r, name)
}

// Query returns the query parameter of the given name as a T, in the forms of [Param]. The error is a *ProblemDetails
// that [Error] answers with 400: the value is missing, or not a T.
func Query[T parameter](r *Request, name string) (T, error) {
	text, ok := r.queryValue(name)
	if !ok {
		var zero T
		return zero, badRequest(fmt.Sprintf("query parameter %q is missing: it must be %s", name, kindOf[T]().Must), nil)
	}
	return parsed[T]("query", name, text)
}

// QueryOr is [Query], but returns fallback if the parameter is missing. A value that is not a T is an error.
func QueryOr[T parameter](r *Request, name string, fallback T) (T, error) {
	text, ok := r.queryValue(name)
	if !ok {
		return fallback, nil
	}
	return parsed[T]("query", name, text)
}

// unknownParam returns the problem for a parameter that neither the route nor the query has.
func (r *Request) unknownParam(name string) error {
	names := make([]string, 0, r.match.Len())
	for has := range r.Params() {
		names = append(names, has)
	}
	return &ProblemDetails{Status: http.StatusInternalServerError, Cause: fmt.Errorf(
		"route %s has no parameter %q: it has %s (a query parameter that may be missing is read with QueryOr)",
		r.Route(), name, strings.Join(names, ", "))}
}

// parsed parses the text of a parameter.
func parsed[T parameter](where, name, text string) (T, error) {
	kind := kindOf[T]()
	v, err := kind.Parse(text)
	if err != nil {
		var zero T
		return zero, badRequest(fmt.Sprintf("%s parameter %q is %q: it must be %s", where, name, text, kind.Must), err)
	}
	return v, nil
}

// kindOf returns the parser of a T and its description. The switch is on the type of a pointer, because an interface that
// holds a pointer needs no allocation.
func kindOf[T parameter]() *textvalue.Kind[T] {
	var kind any
	switch any((*T)(nil)).(type) {
	case *int:
		kind = &textvalue.Int
	case *int64:
		kind = &textvalue.Int64
	case *uint64:
		kind = &textvalue.Uint64
	case *float64:
		kind = &textvalue.Float64
	case *bool:
		kind = &textvalue.Bool
	case *time.Duration:
		kind = &textvalue.Duration
	case *time.Time:
		kind = &textvalue.Time
	}
	return kind.(*textvalue.Kind[T])
}
