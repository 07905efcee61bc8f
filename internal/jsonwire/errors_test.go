package jsonwire_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

func TestErrorsHavePointers(t *testing.T) {
	type score struct {
		Score float64 `json:"score"`
	}
	loop := &list{}
	loop.Next = loop
	for _, c := range []struct {
		name    string
		v       any
		pointer string
		message string
	}{
		{"whole value", math.NaN(), "", "encode JSON: unsupported value: NaN"},
		{"in a list", map[string]any{"users": []score{{1}, {2}, {3}, {math.Inf(1)}}}, "/users/3/score",
			"encode JSON: at /users/3/score: unsupported value: +Inf"},
		{"escaped", map[string]any{"a/b~c": make(chan int)}, "/a~1b~0c",
			"encode JSON: at /a~1b~0c: unsupported type: chan int"},
		{"a method", &struct{ X *failing }{&failing{}}, "/X",
			"encode JSON: at /X: error calling MarshalJSON for type *jsonwire_test.failing: this one always fails"},
		{"a text method", []failingText{{}}, "/0",
			"encode JSON: at /0: error calling MarshalText for type jsonwire_test.failingText: this one always fails"},
		{"a number", [1]json.Number{"1x"}, "/0", `encode JSON: at /0: invalid number literal "1x"`},
		{"a key", struct{ M map[failingKey]int }{map[failingKey]int{{}: 1}}, "/M",
			`encode JSON: at /M: encoding error for type "map[jsonwire_test.failingKey]int": ` +
				`json: error calling MarshalText for type jsonwire_test.failingKey: this one always fails`},
		{"a year", struct{ T time.Time }{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, "/T",
			"encode JSON: at /T: error calling MarshalJSON for type time.Time: Time.MarshalJSON: year outside of range [0,9999]"},
		{"a cycle", loop, strings.Repeat("/Next", 32) + "/…",
			"encode JSON: at " + strings.Repeat("/Next", 32) + "/…: unsupported value: encountered a cycle via *jsonwire_test.list"},
		{"a nil key", map[keyer]int{nil: 1}, "",
			`encode JSON: encoding error for type "map[jsonwire_test.keyer]int": nil interface as a map key`},
	} {
		got, err := jsonwire.AppendValue([]byte("kept"), c.v, jsonwire.Options{})
		if string(got) != "kept" {
			t.Errorf("%s: got dst %q, want it unchanged", c.name, got)
		}
		located, ok := errors.AsType[*jsonwire.Error](err)
		if !ok {
			t.Errorf("%s: got error %T %v", c.name, err, err)
			continue
		}
		if located.Pointer() != c.pointer || err.Error() != c.message {
			t.Errorf("%s: got pointer %q and error %q\nwant %q and %q", c.name, located.Pointer(), err, c.pointer, c.message)
		}
	}
}

func TestErrorsWrapTheCause(t *testing.T) {
	for name, v := range map[string]any{"JSON": failing{}, "text": failingText{}, "key": map[failingKey]int{{}: 1}} {
		_, err := jsonwire.AppendValue(nil, v, jsonwire.Options{})
		if !errors.Is(err, errFailing) {
			t.Errorf("%s: %v does not wrap its cause", name, err)
		}
	}
	_, err := jsonwire.AppendValue(nil, json.RawMessage("{"), jsonwire.Options{})
	if _, ok := errors.AsType[*json.SyntaxError](err); !ok {
		t.Errorf("invalid JSON: %v is not a *json.SyntaxError", err)
	}
	_, err = jsonwire.AppendValue(nil, float32(math.Inf(-1)), jsonwire.Options{})
	unsupported, ok := errors.AsType[*json.UnsupportedValueError](err)
	if !ok || unsupported.Value.Interface() != float32(math.Inf(-1)) {
		t.Errorf("infinity: %v does not contain the value", err)
	}
}

func TestNilPointerIsNull(t *testing.T) {
	got, err := jsonwire.Append([]byte("kept"), (*user)(nil), jsonwire.Options{})
	if string(got) != "keptnull" || err != nil {
		t.Errorf("got %q, error %v", got, err)
	}
}

type keyer interface{ MarshalText() ([]byte, error) }

type failingKey struct{}

func (failingKey) MarshalText() ([]byte, error) { return nil, errFailing }

type panicking struct{ On bool }

func (p panicking) MarshalJSON() ([]byte, error) {
	if p.On {
		panic("in a method")
	}
	return []byte(`"calm"`), nil
}

// A panic in a method propagates, and the next call works.
func TestPanicInMethod(t *testing.T) {
	value := func(on bool) map[string]any {
		return map[string]any{"a": 1, "b": map[string]any{"c": []any{panicking{on}}}}
	}
	for range 10 {
		func() {
			defer func() {
				if r := recover(); r != "in a method" {
					t.Errorf("got panic %v", r)
				}
			}()
			_, _ = jsonwire.AppendValue(nil, value(true), jsonwire.Options{})
			t.Error("got no panic")
		}()
		one(t, "after a panic", value(false))
	}
}

// A method may call the encoder: nested calls share no pooled state.
func TestMethodEncodes(t *testing.T) {
	got, err := jsonwire.AppendValue(nil, map[string]nesting{"b": 1, "a": 3}, jsonwire.Options{})
	want := `{"a":{"a":{"a":{},"b":{}},"b":{"a":{},"b":{}}},"b":{}}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

type nesting int

func (n nesting) MarshalJSON() ([]byte, error) {
	if n <= 1 {
		return []byte("{}"), nil
	}
	return jsonwire.AppendValue(nil, map[string]nesting{"b": n - 1, "a": n - 1}, jsonwire.Options{})
}
