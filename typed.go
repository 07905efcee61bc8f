package dunlin

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/internal/textvalue"
)

// Int returns the path parameter of the given name or, if the route has none, the query parameter, as a decimal
// integer. The error is a *ProblemDetails that [Error] answers with 400: the value is missing, or not an integer. If
// the route has parameters, but neither the route nor the query has this name, the name counts as misspelt: the answer
// is a 500 whose cause says so. Read an optional query parameter with [Request.QueryInt].
func (r *Request) Int(name string) (int, error) { return typed(r, name, textvalue.Int) }

// Int64 is [Request.Int] for a decimal integer.
func (r *Request) Int64(name string) (int64, error) { return typed(r, name, textvalue.Int64) }

// Uint64 is [Request.Int] for a decimal integer without a sign.
func (r *Request) Uint64(name string) (uint64, error) { return typed(r, name, textvalue.Uint64) }

// Float64 is [Request.Int] for a finite number.
func (r *Request) Float64(name string) (float64, error) { return typed(r, name, textvalue.Float64) }

// Bool is [Request.Int] for a truth value in the form of strconv.ParseBool: 1, t, true, 0, f or false.
func (r *Request) Bool(name string) (bool, error) { return typed(r, name, textvalue.Bool) }

// Duration is [Request.Int] for a duration such as 1m30s.
func (r *Request) Duration(name string) (time.Duration, error) {
	return typed(r, name, textvalue.Duration)
}

// Time is [Request.Int] for a time of RFC 3339.
func (r *Request) Time(name string) (time.Time, error) { return typed(r, name, textvalue.Time) }

// QueryInt returns the query parameter of the given name as a decimal integer. The error is a *ProblemDetails that
// [Error] answers with 400: the value is missing, or not an integer.
func (r *Request) QueryInt(name string) (int, error) { return typedQuery(r, name, textvalue.Int) }

// QueryInt64 is [Request.QueryInt] for 64 bits.
func (r *Request) QueryInt64(name string) (int64, error) { return typedQuery(r, name, textvalue.Int64) }

// QueryUint64 is [Request.QueryInt] for a decimal integer without a sign.
func (r *Request) QueryUint64(name string) (uint64, error) {
	return typedQuery(r, name, textvalue.Uint64)
}

// QueryFloat64 is [Request.QueryInt] for a finite number.
func (r *Request) QueryFloat64(name string) (float64, error) {
	return typedQuery(r, name, textvalue.Float64)
}

// QueryBool is [Request.QueryInt] for a truth value, see [Request.Bool].
func (r *Request) QueryBool(name string) (bool, error) { return typedQuery(r, name, textvalue.Bool) }

// QueryDuration is [Request.QueryInt] for a duration such as 1m30s.
func (r *Request) QueryDuration(name string) (time.Duration, error) {
	return typedQuery(r, name, textvalue.Duration)
}

// QueryTime is [Request.QueryInt] for a time of RFC 3339.
func (r *Request) QueryTime(name string) (time.Time, error) {
	return typedQuery(r, name, textvalue.Time)
}

// typed reads and parses one parameter.
func typed[T any](r *Request, name string, kind textvalue.Kind[T]) (T, error) {
	if text, ok := r.param(name); ok {
		return parsed("path", name, text, kind)
	}
	if r.match.Len() > 0 && !r.HasQuery(name) {
		var zero T
		return zero, r.unknownParam(name)
	}
	return typedQuery(r, name, kind)
}

// unknownParam returns the problem of a parameter that neither route nor request has.
func (r *Request) unknownParam(name string) error {
	names := make([]string, 0, r.match.Len())
	for has := range r.Params() {
		names = append(names, has)
	}
	return &ProblemDetails{Status: http.StatusInternalServerError, Cause: fmt.Errorf(
		"route %s has no parameter %q: it has %s (a query parameter that may be missing is read with QueryInt and the like)",
		r.Route(), name, strings.Join(names, ", "))}
}

// typedQuery is typed for a query parameter.
func typedQuery[T any](r *Request, name string, kind textvalue.Kind[T]) (T, error) {
	text, ok := r.queryValue(name)
	if !ok {
		var zero T
		return zero, badRequest(fmt.Sprintf("query parameter %q is missing: it must be %s", name, kind.Must), nil)
	}
	return parsed("query", name, text, kind)
}

// parsed parses the text of a parameter.
func parsed[T any](where, name, text string, kind textvalue.Kind[T]) (T, error) {
	v, err := kind.Parse(text)
	if err != nil {
		var zero T
		return zero, badRequest(fmt.Sprintf("%s parameter %q is %q: it must be %s", where, name, text, kind.Must), err)
	}
	return v, nil
}
