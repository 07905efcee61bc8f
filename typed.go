package dunlin

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Int returns the path parameter of the given name or, when the route has none, the
// query parameter, as a decimal integer. The error is a *ProblemDetails that [Error]
// answers with 400: the value is missing, or not an integer.
func (r *Request) Int(name string) (int, error) {
	n, err := typed(r, name, "an integer", func(s string) (int64, error) { return strconv.ParseInt(s, 10, strconv.IntSize) })
	return int(n), err
}

// Int64 is [Request.Int] for a decimal integer.
func (r *Request) Int64(name string) (int64, error) {
	return typed(r, name, "an integer", func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
}

// Uint64 is [Request.Int] for a decimal integer without a sign.
func (r *Request) Uint64(name string) (uint64, error) {
	return typed(r, name, "an integer without a sign", func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) })
}

// Float64 is [Request.Int] for a finite number.
func (r *Request) Float64(name string) (float64, error) {
	return typed(r, name, "a number", func(s string) (float64, error) {
		f, err := strconv.ParseFloat(s, 64)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			err = errors.New("not finite") // and no JSON number either
		}
		return f, err
	})
}

// Bool is [Request.Int] for a truth value, as strconv.ParseBool takes it: 1, t, true,
// 0, f or false.
func (r *Request) Bool(name string) (bool, error) {
	return typed(r, name, "true or false", strconv.ParseBool)
}

// Duration is [Request.Int] for a duration such as 1m30s.
func (r *Request) Duration(name string) (time.Duration, error) {
	return typed(r, name, "a duration such as 1m30s", time.ParseDuration)
}

// Time is [Request.Int] for a time of RFC 3339.
func (r *Request) Time(name string) (time.Time, error) {
	return typed(r, name, "a time such as 2026-01-31T15:04:05Z", func(s string) (time.Time, error) { return time.Parse(time.RFC3339, s) })
}

// typed reads and parses one parameter.
func typed[T any](r *Request, name, what string, parse func(string) (T, error)) (T, error) {
	where := "path"
	text, ok := r.param(name)
	if !ok {
		where = "query"
		text, ok = r.queryValue(name)
	}
	var zero T
	if !ok {
		return zero, badRequest(fmt.Sprintf("%s parameter %q is missing: it must be %s", where, name, what), nil)
	}
	v, err := parse(text)
	if err != nil {
		return zero, badRequest(fmt.Sprintf("%s parameter %q is %q: it must be %s", where, name, text, what), err)
	}
	return v, nil
}
