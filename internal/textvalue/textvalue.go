// Package textvalue parses the text of a value, such as a parameter of a path or a query. Its errors describe the expected
// text.
package textvalue

import (
	"errors"
	"math"
	"strconv"
	"time"
)

// A Kind describes the texts that Parse accepts for a type.
type Kind[T any] struct {
	Must  string // describes a valid text for messages, such as "an integer"
	Parse func(text string) (T, error)
}

var (
	Int      = Kind[int]{"an integer", strconv.Atoi}
	Int64    = Kind[int64]{"an integer", func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }}
	Uint64   = Kind[uint64]{"an integer without a sign", func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }}
	Float64  = Kind[float64]{"a number", parseFinite}
	Bool     = Kind[bool]{"true or false", strconv.ParseBool}
	Duration = Kind[time.Duration]{"a duration such as 1m30s", time.ParseDuration}
	Time     = Kind[time.Time]{"a time such as 2026-01-31T15:04:05Z", func(s string) (time.Time, error) { return time.Parse(time.RFC3339, s) }}
)

func parseFinite(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		err = errors.New("not finite") // JSON has no such number
	}
	return f, err
}
