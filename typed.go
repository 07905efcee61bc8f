package dunlin

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Int returns the path parameter of the given name or, when the route has none, the
// query parameter, as a decimal integer. The error is a *ProblemDetails that [Error]
// answers with 400: the value is missing, or not an integer. Where the route has
// parameters, but none of this name, and the query has none either, the name is
// taken for misspelt: the answer is a 500 whose cause says so. A query parameter that
// a client may leave out is read with [Request.QueryInt].
func (r *Request) Int(name string) (int, error) {
	return typed(r, name, anInteger, strconv.Atoi)
}

// Int64 is [Request.Int] for a decimal integer.
func (r *Request) Int64(name string) (int64, error) {
	return typed(r, name, anInteger, parseInt64)
}

// Uint64 is [Request.Int] for a decimal integer without a sign.
func (r *Request) Uint64(name string) (uint64, error) {
	return typed(r, name, anUnsigned, parseUint64)
}

// Float64 is [Request.Int] for a finite number.
func (r *Request) Float64(name string) (float64, error) {
	return typed(r, name, aNumber, parseFinite)
}

// Bool is [Request.Int] for a truth value, as strconv.ParseBool takes it: 1, t, true,
// 0, f or false.
func (r *Request) Bool(name string) (bool, error) {
	return typed(r, name, aBool, strconv.ParseBool)
}

// Duration is [Request.Int] for a duration such as 1m30s.
func (r *Request) Duration(name string) (time.Duration, error) {
	return typed(r, name, aDuration, time.ParseDuration)
}

// Time is [Request.Int] for a time of RFC 3339.
func (r *Request) Time(name string) (time.Time, error) {
	return typed(r, name, aTime, parseTime)
}

// QueryInt returns the query parameter of the given name as a decimal integer. The
// error is a *ProblemDetails that [Error] answers with 400: the value is missing, or
// not an integer.
func (r *Request) QueryInt(name string) (int, error) {
	return typedQuery(r, name, anInteger, strconv.Atoi)
}

// QueryInt64 is [Request.QueryInt] for 64 bits.
func (r *Request) QueryInt64(name string) (int64, error) {
	return typedQuery(r, name, anInteger, parseInt64)
}

// QueryUint64 is [Request.QueryInt] for a decimal integer without a sign.
func (r *Request) QueryUint64(name string) (uint64, error) {
	return typedQuery(r, name, anUnsigned, parseUint64)
}

// QueryFloat64 is [Request.QueryInt] for a finite number.
func (r *Request) QueryFloat64(name string) (float64, error) {
	return typedQuery(r, name, aNumber, parseFinite)
}

// QueryBool is [Request.QueryInt] for a truth value, see [Request.Bool].
func (r *Request) QueryBool(name string) (bool, error) {
	return typedQuery(r, name, aBool, strconv.ParseBool)
}

// QueryDuration is [Request.QueryInt] for a duration such as 1m30s.
func (r *Request) QueryDuration(name string) (time.Duration, error) {
	return typedQuery(r, name, aDuration, time.ParseDuration)
}

// QueryTime is [Request.QueryInt] for a time of RFC 3339.
func (r *Request) QueryTime(name string) (time.Time, error) {
	return typedQuery(r, name, aTime, parseTime)
}

// What a typed parameter must be, as its refusal says it.
const (
	anInteger  = "an integer"
	anUnsigned = "an integer without a sign"
	aNumber    = "a number"
	aBool      = "true or false"
	aDuration  = "a duration such as 1m30s"
	aTime      = "a time such as 2026-01-31T15:04:05Z"
)

func parseInt64(s string) (int64, error)    { return strconv.ParseInt(s, 10, 64) }
func parseUint64(s string) (uint64, error)  { return strconv.ParseUint(s, 10, 64) }
func parseTime(s string) (time.Time, error) { return time.Parse(time.RFC3339, s) }
func parseFinite(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		err = errors.New("not finite") // and no JSON number either
	}
	return f, err
}

// typed reads and parses one parameter.
func typed[T any](r *Request, name, what string, parse func(string) (T, error)) (T, error) {
	if text, ok := r.param(name); ok {
		return parsed("path", name, text, what, parse)
	}
	if r.match.Len() > 0 && !r.HasQuery(name) {
		var zero T
		return zero, r.unknownParam(name)
	}
	return typedQuery(r, name, what, parse)
}

// unknownParam is the problem of a parameter that neither route nor request has.
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
func typedQuery[T any](r *Request, name, what string, parse func(string) (T, error)) (T, error) {
	text, ok := r.queryValue(name)
	if !ok {
		var zero T
		return zero, badRequest(fmt.Sprintf("query parameter %q is missing: it must be %s", name, what), nil)
	}
	return parsed("query", name, text, what, parse)
}

// parsed parses the text of a parameter.
func parsed[T any](where, name, text, what string, parse func(string) (T, error)) (T, error) {
	v, err := parse(text)
	if err != nil {
		var zero T
		return zero, badRequest(fmt.Sprintf("%s parameter %q is %q: it must be %s", where, name, text, what), err)
	}
	return v, nil
}
