//lint:file-ignore SA5008 the test needs unusual tags

package jsonwire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// modes are the two ways of escaping, each with its counterpart in encoding/json.
var modes = []struct {
	name string
	opts jsonwire.Options
}{
	{"html", jsonwire.Options{}},
	{"plain", jsonwire.Options{NoEscapeHTML: true}},
}

// standard returns the output of encoding/json for v.
func standard(v any, o jsonwire.Options) ([]byte, error) {
	if !o.NoEscapeHTML {
		return json.Marshal(v)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// errorKind classifies err by the type that errors.As finds in it.
func errorKind(err error) string {
	var (
		unsupportedType  *json.UnsupportedTypeError
		unsupportedValue *json.UnsupportedValueError
		marshaler        *json.MarshalerError
	)
	switch {
	case err == nil:
		return "none"
	case onV2: // fails in the same places, but classifies some failures differently
		return "some"
	case errors.As(err, &marshaler):
		return "a marshaler's"
	case errors.As(err, &unsupportedType):
		return fmt.Sprint("unsupported type ", unsupportedType.Type)
	case errors.As(err, &unsupportedValue):
		return "unsupported value " + unsupportedValue.Str
	}
	return "other"
}

// onV2 reports whether encoding/json is built on encoding/json/v2, as it is by default from Go 1.27 on. This package follows
// v1, so the comparison normalises the output of v2 where it differs (see also the other uses of onV2).
var onV2 = func() bool {
	b, err := json.Marshal("\xff")
	return err == nil && string(b) != `"\ufffd"`
}()

// normalised removes differences of spelling on v2: there, invalid UTF-8 is a plain U+FFFD, and U+2028 and U+2029 are also
// escaped in a method's JSON.
func normalised(b []byte) string {
	if !onV2 {
		return string(b)
	}
	text := string(b)
	for _, c := range escapedOnV1 {
		text = c.spelling.ReplaceAllLiteralString(text, c.char)
	}
	return text
}

// escapedOnV1 has the characters that v1 escapes and v2 may leave unescaped, with the spellings of each: escaped or not, and
// after any number of backslashes, because the string option escapes an escape again.
var escapedOnV1 = []struct {
	char     string
	spelling *regexp.Regexp
}{
	{"\ufffd", regexp.MustCompile(`\\*(?:ufffd|\x{FFFD})`)},
	{"\u2028", regexp.MustCompile(`\\*(?:u2028|\x{2028})`)},
	{"\u2029", regexp.MustCompile(`\\*(?:u2029|\x{2029})`)},
}

const before = "kept" // the content of dst before the call

// compare checks one result against encoding/json's for the same value.
func compare(t *testing.T, what string, got []byte, err error, v any, o jsonwire.Options) {
	t.Helper()
	want, wantErr := standard(v, o)
	if g, w := errorKind(err), errorKind(wantErr); g != w {
		t.Errorf("%s: error %s (%v), want %s (%v)", what, g, err, w, wantErr)
		return
	}
	if wantErr != nil {
		want = nil
		var located *jsonwire.Error
		if !errors.As(err, &located) {
			t.Errorf("%s: error %T is not a *jsonwire.Error", what, err)
		}
	}
	if normalised(got) != before+normalised(want) {
		t.Errorf("%s: got\n%s\nwant\n%s%s", what, got, before, want)
	}
}

type (
	field[T any]   struct{ F T }
	pointer[T any] struct{ F *T }
	options[T any] struct {
		A T  `json:"a,omitempty"`
		B T  `json:"b,omitzero"`
		C T  `json:"<c>,string"`
		D T  `json:",omitempty,omitzero"`
		E *T `json:",omitempty,string"`
		F *T `json:",omitzero"`
		G *T `json:"a_name_that_is_longer_than_one_block,string"`
	}
)

// check compares v, and v at every position in other values.
func check[T any](t *testing.T, name string, v T) {
	t.Helper()
	one(t, name, v)
	one(t, name+" by pointer", &v)
	one(t, name+" in a struct", field[T]{v})
	one(t, name+" in a struct by pointer", &field[T]{v})
	one(t, name+" behind a pointer in a struct", pointer[T]{&v})
	one(t, name+" with options", options[T]{A: v, B: v, C: v, D: v, E: &v, F: &v, G: &v})
	one(t, name+" with options by pointer", &options[T]{A: v, B: v, C: v, D: v, E: &v, F: &v, G: &v})
	one(t, name+" in a slice", []T{v, v})
	one(t, name+" in an array", [2]T{v, v})
	one(t, name+" in an array by pointer", &[1]T{v})
	one(t, name+" in a map", map[string]T{"b": v, "a<": v, "": v})
	one(t, name+" behind a pointer in a map", map[int16]*T{-1: &v, 10: nil, 2: &v})
	one(t, name+" in an interface", field[any]{v})
	one(t, name+" in interfaces", []any{v, &v, nil, map[string]any{"k": v}})
}

// one compares v through both entry points in both modes.
func one[T any](t *testing.T, name string, v T) {
	t.Helper()
	for _, m := range modes {
		got, err := jsonwire.Append([]byte(before), &v, m.opts)
		compare(t, fmt.Sprintf("%s: Append[%T] %s", name, v, m.name), got, err, v, m.opts)
		got, err = jsonwire.AppendValue([]byte(before), v, m.opts)
		compare(t, fmt.Sprintf("%s: AppendValue(%T) %s", name, v, m.name), got, err, v, m.opts)
	}
}
