package typed

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dunlinhttp/dunlin/internal/schema"
)

// A setter parses the text of a parameter and stores the value at an address. It returns false if
// the text is not a valid value. The text stays valid after the call.
type setter func(to address, text string) bool

// A shape describes how to parse a value of a parameter's type from text.
type shape struct {
	set    setter
	format string // format in the document, if the text of the parameter differs from the JSON of the type; empty if it does not
}

var (
	timeType            = reflect.TypeFor[time.Time]()
	durationType        = reflect.TypeFor[time.Duration]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// shapeOf returns the shape of type t, or an error if a parameter cannot have this type.
func shapeOf(t reflect.Type) (shape, error) {
	switch {
	case t == timeType:
		return shape{set: func(to address, text string) bool {
			v, err := time.Parse(time.RFC3339, strings.ToUpper(text)) // T and Z may be in lower case
			store(to, v)
			return err == nil
		}}, nil
	case t == durationType:
		return shape{set: func(to address, text string) bool {
			v, err := time.ParseDuration(text)
			store(to, v)
			return err == nil
		}, format: "go-duration"}, nil
	case reflect.PointerTo(t).Implements(textUnmarshalerType):
		return shape{set: func(to address, text string) bool {
			return utf8.ValidString(text) && to.value(t).Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)) == nil
		}}, nil
	}
	set := plainSetter(t)
	if set == nil {
		return shape{}, fmt.Errorf("a parameter cannot be of type %s", t)
	}
	return shape{set: set}, nil
}

// plainSetter returns the setter for a type without methods, or nil if the kind of the type cannot
// be a parameter.
func plainSetter(t reflect.Type) setter {
	switch t.Kind() {
	case reflect.String:
		return func(to address, text string) bool { store(to, text); return utf8.ValidString(text) }
	case reflect.Bool:
		return func(to address, text string) bool {
			store(to, text == "true")
			return text == "true" || text == "false"
		}
	case reflect.Int:
		return func(to address, text string) bool { return setInt[int](to, text, strconv.IntSize) }
	case reflect.Int8:
		return func(to address, text string) bool { return setInt[int8](to, text, 8) }
	case reflect.Int16:
		return func(to address, text string) bool { return setInt[int16](to, text, 16) }
	case reflect.Int32:
		return func(to address, text string) bool { return setInt[int32](to, text, 32) }
	case reflect.Int64:
		return func(to address, text string) bool { return setInt[int64](to, text, 64) }
	case reflect.Uint:
		return func(to address, text string) bool { return setUint[uint](to, text, strconv.IntSize) }
	case reflect.Uint8:
		return func(to address, text string) bool { return setUint[uint8](to, text, 8) }
	case reflect.Uint16:
		return func(to address, text string) bool { return setUint[uint16](to, text, 16) }
	case reflect.Uint32:
		return func(to address, text string) bool { return setUint[uint32](to, text, 32) }
	case reflect.Uint64:
		return func(to address, text string) bool { return setUint[uint64](to, text, 64) }
	case reflect.Float32:
		return func(to address, text string) bool { return setFloat[float32](to, text, 32) }
	case reflect.Float64:
		return func(to address, text string) bool { return setFloat[float64](to, text, 64) }
	}
	return nil
}

func setInt[T int | int8 | int16 | int32 | int64](to address, text string, bits int) bool {
	if text == "" || text[0] == '+' || hasLeadingZero(text) {
		return false
	}
	v, err := strconv.ParseInt(text, 10, bits)
	store(to, T(v))
	return err == nil
}

func setUint[T uint | uint8 | uint16 | uint32 | uint64](to address, text string, bits int) bool {
	if hasLeadingZero(text) {
		return false
	}
	v, err := strconv.ParseUint(text, 10, bits)
	store(to, T(v))
	return err == nil
}

// hasLeadingZero reports whether the text of a number has a leading zero that JSON forbids.
func hasLeadingZero(text string) bool {
	return len(text) > 1 && text[0] == '0' || len(text) > 2 && text[0] == '-' && text[1] == '0'
}

// setFloat accepts numbers in the syntax of JSON. It returns false if the number becomes infinite in
// type T, or if it is nonzero and becomes zero.
func setFloat[T float32 | float64](to address, text string, bits int) bool {
	v, err := strconv.ParseFloat(text, bits)
	store(to, T(v))
	return err == nil && schema.FitsFloat(text, v)
}

// optionalSetter returns a setter for the type t, an Optional[T]. set is the setter for T.
func optionalSetter(t reflect.Type, set setter) setter {
	value, _ := t.FieldByName("Value")
	flag, _ := t.FieldByName("Set")
	return func(to address, text string) bool {
		store(to.at(flag.Offset), true)
		return set(to.at(value.Offset), text)
	}
}

// pointerSetter returns a setter that allocates a value of type t and stores a pointer to the value.
// set is the setter for t.
func pointerSetter(t reflect.Type, set setter) setter {
	return func(to address, text string) bool { return set(to.alloc(t), text) }
}

// wantedText returns the rule and the limit to report for a text that a setter has refused.
func wantedText(n *schema.Node, text string) (rule, limit string) {
	switch {
	case !utf8.ValidString(text):
		return "utf8", ""
	case n.Kind == schema.Bool:
		return "type", "boolean"
	case n.Kind == schema.Int || n.Kind == schema.Uint:
		if digits := strings.TrimPrefix(text, "-"); digits == "" || strings.Trim(digits, "0123456789") != "" || hasLeadingZero(text) {
			return "type", "integer"
		}
		return "format", schema.IntegerFormat(n.Kind, n.Bits)
	case n.Kind == schema.Float:
		if schema.IsNumber(text) {
			return "format", schema.FloatFormat(n.Bits)
		}
		return "type", "number"
	}
	if n.Rules.Format != "" {
		return "format", n.Rules.Format
	}
	if n.Type != nil && n.Type.Name() != "" {
		return "type", n.Type.Name()
	}
	return "type", "string"
}
