package dunlin

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/view"
)

// This file knows what encoding/json decodes into which Go type.

// A member is what a struct type takes under one name.
type member struct {
	name    string
	decoded reflect.Type // nil where the value is not checked: the option «string»
}

// membersOf lists the members that encoding/json decodes into a struct type.
func membersOf(t reflect.Type) []member {
	var list []member
	for _, f := range reflect.VisibleFields(t) {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" || !f.IsExported() || f.Anonymous && name == "" && isStruct(f.Type) {
			continue // the fields of an embedded struct are visible themselves
		}
		m := member{name: name, decoded: f.Type}
		if name == "" {
			m.name = f.Name
		}
		for option := range strings.SplitSeq(options, ",") {
			if option == "string" {
				m.decoded = nil
			}
		}
		list = append(list, m)
	}
	return list
}

func isStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}

// fitsContainer reports whether an object ('{') or an array can become a value
// of kind k.
func fitsContainer(c byte, k reflect.Kind) bool {
	if c == '{' {
		return k == reflect.Struct || k == reflect.Map
	}
	return k == reflect.Slice || k == reflect.Array
}

// fits reports whether a well-formed value, whose parts fit, can become a t. It
// asks encoding/json only where a method or base64 decides.
func fits(value []byte, t reflect.Type) bool {
	k, text := t.Kind(), view.String(value)
	switch {
	case decodesItself(t), k == reflect.Slice && value[0] == '"', k == reflect.String && t == reflect.TypeFor[json.Number]():
		return json.Unmarshal(value, reflect.New(t).Interface()) == nil
	case text == "null", value[0] == '{', value[0] == '[', k == reflect.Interface && t.NumMethod() == 0:
		return true // containers have been compared before
	case value[0] == '"':
		return k == reflect.String
	case value[0] == 't', value[0] == 'f':
		return k == reflect.Bool
	}
	var err error
	switch k {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		_, err = strconv.ParseInt(text, 10, t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		_, err = strconv.ParseUint(text, 10, t.Bits())
	case reflect.Float32, reflect.Float64:
		_, err = strconv.ParseFloat(text, t.Bits())
	default:
		return false
	}
	return err == nil
}

// wanted says what a Go type wants in the words of JSON.
func wanted(t reflect.Type) string {
	if t.PkgPath() == "time" && t.Name() == "Time" {
		return "a time such as \"2026-01-31T15:04:05Z\""
	}
	switch {
	case t == reflect.TypeFor[json.Number]():
		return "a number"
	case decodesItself(t):
		return "another one"
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
	return "another one"
}
