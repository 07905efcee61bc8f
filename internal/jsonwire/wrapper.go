package jsonwire

import (
	"fmt"
	"reflect"
)

// A Wrapper is a struct type around one value that records whether a member was present, and whether it was null. A decoder reads
// the value as if there were no wrapper, and sets the fields that Wrapping names. An encoder writes the value, or null if the
// field that Wrapping.Set names is false. WrapsJSON is called when an encoder or a decoder for the type is compiled, on the zero value
// of the type. It must always return the same result.
type Wrapper interface{ WrapsJSON() Wrapping }

// Wrapping names the fields of a Wrapper.
type Wrapping struct {
	// Value is the name of the field for the value.
	Value string
	// Set is the name of a bool field. Decoding sets the field to true for a value. For null it sets the field to false if
	// AcceptNull is true, and to true if AcceptNull is false.
	Set string
	// Null is the name of a bool field that becomes true for null and false for a value. Null is empty if the struct has no such
	// field.
	Null string
	// AcceptNull selects how null is decoded. If it is true, null sets Value to its zero value and sets the bool fields. If it is
	// false, null is decoded into Value.
	AcceptNull bool
}

// wrapLayout is a Wrapping with offsets instead of names.
type wrapLayout struct {
	value, set, null    uintptr
	hasNull, acceptNull bool
}

// compileWrapper compiles the plan for a Wrapper type.
func (c *decodeCompiler) compileWrapper(p *decodePlan) {
	layout, value := wrapLayoutOf(p.typ)
	p.op, p.wrap = opWrapped, layout
	p.elem = c.compile(value, false)
}

// wrapLayoutOf returns the layout of a Wrapper and the type of its value. It panics if the type does not have the fields that
// WrapsJSON names.
func wrapLayoutOf(t reflect.Type) (*wrapLayout, reflect.Type) {
	w := reflect.Zero(t).Interface().(Wrapper).WrapsJSON()
	field := func(name string, flag bool) reflect.StructField {
		f, ok := t.FieldByName(name)
		if !ok || len(f.Index) != 1 || flag && f.Type.Kind() != reflect.Bool {
			panic(fmt.Sprintf("jsonwire: %s: WrapsJSON names %q, which is not a direct field of the required type", t, name))
		}
		return f
	}
	value := field(w.Value, false)
	layout := &wrapLayout{value: value.Offset, set: field(w.Set, true).Offset, acceptNull: w.AcceptNull}
	if w.Null != "" {
		layout.hasNull, layout.null = true, field(w.Null, true).Offset
	}
	return layout, value.Type
}

// wrapped reads the value of a wrapper and sets the bool fields of the wrapper.
func (d *decoder) wrapped(p *decodePlan, m memory, i int) int {
	w := p.wrap
	null := d.data[i] == 'n' && w.acceptNull
	var next int
	if null {
		if next = d.word(i, "null"); next < 0 {
			return next
		}
		valueAt(p.elem.typ, m.at(w.value)).SetZero()
	} else if next = d.value(p.elem, m.at(w.value), i); next < 0 {
		return next
	}
	store(m.at(w.set), !null)
	if w.hasNull {
		store(m.at(w.null), null)
	}
	return next
}
