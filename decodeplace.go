package dunlin

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
)

// This file finds places in JSON that was refused. It runs only then, and reads
// the body a second time, token by token: encoding/json does not say where an
// unknown member stands, and names Go fields where the client knows pointers.

// pointerStep is one level of a JSON pointer: a member's name, or an index.
type pointerStep struct {
	object bool
	name   string // of the member being read
	index  int    // of the element being read
	isKey  bool   // in an object: the next string token is a name
}

// pointer renders steps by RFC 6901.
func pointer(steps []pointerStep) string {
	var b strings.Builder
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, s := range steps {
		b.WriteByte('/')
		if s.object {
			b.WriteString(escape.Replace(s.name))
		} else {
			b.WriteString(strconv.Itoa(s.index))
		}
	}
	return b.String()
}

// pointerAt returns the pointer to the innermost value that ends at offset or
// contains it.
func pointerAt(body []byte, offset int) string {
	found := ""
	walk(body, func(steps []pointerStep, _ json.Token, end int) bool {
		found = pointer(steps)
		return end < offset
	})
	return found
}

// walk calls visit for every value of body as its first token is read (for an
// object or array, its opening delimiter), with the offset after that token,
// until visit returns false or the JSON ends or is invalid.
func walk(body []byte, visit func(steps []pointerStep, t json.Token, end int) bool) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var steps []pointerStep
	for {
		t, err := d.Token()
		if err != nil {
			return
		}
		top := len(steps) - 1
		if delim, ok := t.(json.Delim); ok && (delim == '}' || delim == ']') {
			steps = steps[:top]
			advance(steps)
			continue
		}
		if top >= 0 && steps[top].object && steps[top].isKey {
			steps[top].name, _ = t.(string)
			steps[top].isKey = false
			continue
		}
		if !visit(steps, t, int(d.InputOffset())) {
			return
		}
		switch t {
		case json.Delim('{'):
			steps = append(steps, pointerStep{object: true, isKey: true})
		case json.Delim('['):
			steps = append(steps, pointerStep{})
		default:
			advance(steps)
		}
	}
}

// advance moves the innermost step past a value that is complete.
func advance(steps []pointerStep) {
	if len(steps) == 0 {
		return
	}
	s := &steps[len(steps)-1]
	if s.object {
		s.isKey = true
	} else {
		s.index++
	}
}

// findUnknown returns the place of the first member that the type of v has no
// field for.
func findUnknown(body []byte, v any) (at string, offset int, found bool) {
	root := reflect.TypeOf(v).Elem()
	walk(body, func(steps []pointerStep, _ json.Token, end int) bool {
		if len(steps) == 0 || !steps[len(steps)-1].object {
			return true
		}
		parent, ok := typeAt(root, steps[:len(steps)-1])
		if !ok || parent.Kind() != reflect.Struct {
			return true
		}
		if _, known := memberType(parent, steps[len(steps)-1].name); !known {
			at, offset, found = pointer(steps), end, true
		}
		return !found
	})
	return at, offset, found
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// typeAt follows steps from t; false where the type is not known or decodes
// itself.
func typeAt(t reflect.Type, steps []pointerStep) (reflect.Type, bool) {
	for i := 0; ; i++ {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if p := reflect.PointerTo(t); p.Implements(unmarshaler) || p.Implements(textUnmarshaler) {
			return nil, false
		}
		if i == len(steps) {
			return t, true
		}
		switch t.Kind() {
		case reflect.Struct:
			member, ok := memberType(t, steps[i].name)
			if !ok {
				return nil, false
			}
			t = member
		case reflect.Map, reflect.Slice, reflect.Array:
			t = t.Elem()
		default:
			return nil, false
		}
	}
}

// memberType returns the type of the struct field that encoding/json decodes
// the named member into.
func memberType(t reflect.Type, name string) (reflect.Type, bool) {
	for _, f := range reflect.VisibleFields(t) {
		tag := f.Tag.Get("json")
		if tag == "-" || !f.IsExported() {
			continue
		}
		jsonName, _, _ := strings.Cut(tag, ",")
		if f.Anonymous && jsonName == "" {
			continue // its fields are visible themselves
		}
		if jsonName == "" {
			jsonName = f.Name
		}
		if strings.EqualFold(jsonName, name) {
			return f.Type, true
		}
	}
	return nil, false
}

// kindName says what a Go type wants in the words of JSON.
func kindName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "an integer of " + strconv.Itoa(t.Bits()) + " bits"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "an integer without sign of " + strconv.Itoa(t.Bits()) + " bits"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return t.String()
}
