package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// An object is a JSON object whose members keep the order of their insertion.
type object struct{ members []entry }

type entry struct {
	name  string
	value any
}

// set adds a member. It adds nothing if the value is nil, an empty string, false, an empty object
// or an empty list.
func (o *object) set(name string, value any) *object {
	switch v := value.(type) {
	case nil:
		return o
	case string:
		if v == "" {
			return o
		}
	case bool:
		if !v {
			return o
		}
	case *object:
		if v == nil || len(v.members) == 0 {
			return o
		}
	case []any:
		if len(v) == 0 {
			return o
		}
	case []string:
		if len(v) == 0 {
			return o
		}
	case json.RawMessage:
		if v == nil {
			return o
		}
	}
	return o.put(name, value)
}

// put adds a member whose value may also be empty.
func (o *object) put(name string, value any) *object {
	if o.members == nil {
		o.members = make([]entry, 0, 4)
	}
	o.members = append(o.members, entry{name, value})
	return o
}

// get returns the value of a member, or nil.
func (o *object) get(name string) any {
	for i := range o.members {
		if o.members[i].name == name {
			return o.members[i].value
		}
	}
	return nil
}

// appendJSON appends a value: an object, a list, a string, a number, a boolean, or JSON. The
// members or elements of the value are written on separate lines, and indented by 2×(depth+1)
// spaces.
func appendJSON(b []byte, value any, depth int) []byte {
	switch v := value.(type) {
	case *object:
		if len(v.members) == 0 {
			return append(b, "{}"...)
		}
		b = append(b, '{')
		for i := range v.members {
			b = appendText(newLine(b, i, depth+1), v.members[i].name)
			b = appendJSON(append(b, ": "...), v.members[i].value, depth+1)
		}
		return append(newLine(b, 0, depth), '}')
	case []any:
		return appendList(b, v, depth)
	case []string:
		return appendList(b, v, depth)
	case []*object:
		return appendList(b, v, depth)
	case string:
		return appendText(b, v)
	case json.RawMessage:
		if len(v) > 0 && v[0] != '{' && v[0] != '[' { // a value that is not a container needs no indentation
			return append(b, v...)
		}
		var indented bytes.Buffer
		if json.Indent(&indented, v, strings.Repeat("  ", depth), "  ") == nil {
			return append(b, indented.Bytes()...)
		}
		return append(b, "null"...)
	}
	return fmt.Append(b, value) // value is a number or a boolean
}

func appendList[T any](b []byte, list []T, depth int) []byte {
	if len(list) == 0 {
		return append(b, "[]"...)
	}
	b = append(b, '[')
	for i, v := range list {
		b = appendJSON(newLine(b, i, depth+1), v, depth+1)
	}
	return append(newLine(b, 0, depth), ']')
}

// newLine begins a new line. If i is not 0, it appends a comma before the line break.
func newLine(b []byte, i, depth int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	b = append(b, '\n')
	for range depth {
		b = append(b, "  "...)
	}
	return b
}

// appendText appends a string. It does not escape <, > and &, because a document is not HTML.
func appendText(b []byte, s string) []byte {
	return jsonwire.AppendString(b, s, jsonwire.Options{NoEscapeHTML: true})
}
