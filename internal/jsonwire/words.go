package jsonwire

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
)

// Given describes a well-formed JSON value in words for an error message. It quotes the value only if it
// is a number.
func Given(value []byte) string {
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	if len(value) > 32 {
		return "a number"
	}
	return "the number " + string(value)
}

// Wanted describes the JSON value that a Go type accepts, in words for an error message.
func Wanted(t reflect.Type) string {
	if t.PkgPath() == "time" && t.Name() == "Time" {
		return "a time such as \"2026-01-31T15:04:05Z\""
	}
	switch {
	case t == reflect.TypeFor[json.Number]():
		return "a number"
	case decodesItself(t):
		return "a different value"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "an integer of " + strconv.Itoa(t.Bits()) + " bits"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return "an integer without sign of " + strconv.Itoa(t.Bits()) + " bits"
	case reflect.Float32, reflect.Float64:
		return "a number of " + strconv.Itoa(t.Bits()) + " bits"
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return "a string in base64"
		}
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a different value"
}

// Indirect returns the type at the end of the chain of pointers that t begins, or t itself if t is not a
// pointer.
func Indirect(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// decodesItself reports whether *t has a method to decode JSON or text.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(unmarshaler) || p.Implements(textUnmarshaler)
}
