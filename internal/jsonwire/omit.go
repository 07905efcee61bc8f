package jsonwire

import (
	"reflect"
)

// An omission is the condition under which a field is omitted.
type omission struct {
	// hops are the offsets of the embedded pointers that lead to the field. Each offset is relative to the target of the previous
	// pointer. If a pointer is nil, the field is omitted.
	hops  []uintptr
	empty emptyTest
	zero  zeroTest
}

// emptyTest is the test for omitempty that belongs to a type.
type emptyTest uint8

const (
	emptyNever  emptyTest = iota // without omitempty, or for a type that is never empty
	emptyAlways                  // array of length 0
	emptyZero8                   // false, or an integer of 8 bits that is zero
	emptyZero16
	emptyZero32
	emptyZero64
	emptyFloat32
	emptyFloat64
	emptyWord // a nil pointer or interface
	emptyString
	emptySlice
	emptyMap
)

func emptyTestOf(t reflect.Type) emptyTest {
	switch t.Kind() {
	case reflect.Bool:
		return emptyZero8
	case reflect.Float32:
		return emptyFloat32
	case reflect.Float64:
		return emptyFloat64
	case reflect.Pointer, reflect.Interface:
		return emptyWord
	case reflect.String:
		return emptyString
	case reflect.Slice:
		return emptySlice
	case reflect.Map:
		return emptyMap
	case reflect.Array:
		if t.Len() == 0 {
			return emptyAlways
		}
		return emptyNever
	}
	switch scalarOp(t) {
	case opInt8, opUint8:
		return emptyZero8
	case opInt16, opUint16:
		return emptyZero16
	case opInt32, opUint32:
		return emptyZero32
	case opInt64, opUint64:
		return emptyZero64
	}
	return emptyNever
}

// holds reports whether the value of type t at m is empty.
func (test emptyTest) holds(t reflect.Type, m memory) bool {
	switch test {
	case emptyAlways:
		return true
	case emptyZero8:
		return load[uint8](m) == 0
	case emptyZero16:
		return load[uint16](m) == 0
	case emptyZero32:
		return load[uint32](m) == 0
	case emptyZero64:
		return load[uint64](m) == 0
	case emptyFloat32:
		return load[float32](m) == 0
	case emptyFloat64:
		return load[float64](m) == 0
	case emptyWord:
		return m.isNil()
	case emptyString:
		return load[string](m) == ""
	case emptySlice:
		_, n := m.slice()
		return n == 0
	case emptyMap:
		return valueAt(t, m).Len() == 0
	}
	return false
}

// An isZeroer is a type with its own test for omitzero.
type isZeroer interface{ IsZero() bool }

var isZeroerType = reflect.TypeFor[isZeroer]()

type zeroKind uint8

const (
	zeroNever     zeroKind = iota // without omitzero
	zeroSimple                    // the same test as for omitempty
	zeroReflect                   // compare with the zero value
	zeroMethod                    // IsZero, through the address of the value
	zeroCopied                    // IsZero, through the address of a copy
	zeroPointer                   // nil pointer, or IsZero of the pointer
	zeroInterface                 // nil interface, nil pointer in an interface, or IsZero
)

// zeroTest is the test for omitzero that belongs to a type.
type zeroTest struct {
	kind    zeroKind
	simple  emptyTest
	pointer typeID // identity of the type's pointer type, through which zeroMethod calls IsZero
}

func zeroTestOf(t reflect.Type, addressable bool) zeroTest {
	pointer := typeOf(reflect.Zero(reflect.PointerTo(t)).Interface())
	switch {
	case t.Implements(isZeroerType):
		switch t.Kind() {
		case reflect.Interface:
			return zeroTest{kind: zeroInterface}
		case reflect.Pointer:
			return zeroTest{kind: zeroPointer}
		}
		return zeroTest{kind: zeroMethod, pointer: pointer}
	case reflect.PointerTo(t).Implements(isZeroerType):
		if addressable {
			return zeroTest{kind: zeroMethod, pointer: pointer}
		}
		return zeroTest{kind: zeroCopied}
	}
	switch simple := emptyTestOf(t); simple {
	case emptyNever, emptyAlways, emptySlice, emptyMap:
		// For these types, empty and zero are different. For example, a slice can be empty without being nil.
		return zeroTest{kind: zeroReflect}
	default:
		return zeroTest{kind: zeroSimple, simple: simple}
	}
}

// holds reports whether the value of type t at m is zero.
func (test *zeroTest) holds(t reflect.Type, m memory) bool {
	switch test.kind {
	case zeroSimple:
		return test.simple.holds(t, m)
	case zeroReflect:
		return valueAt(t, m).IsZero()
	case zeroMethod:
		return pointerTo(test.pointer, m).(isZeroer).IsZero()
	case zeroCopied:
		box := reflect.New(t)
		box.Elem().Set(valueAt(t, m))
		return box.Interface().(isZeroer).IsZero()
	case zeroPointer:
		return m.isNil() || valueAt(t, m).Interface().(isZeroer).IsZero()
	case zeroInterface:
		v := valueAt(t, m)
		return v.IsNil() ||
			v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil() ||
			v.Interface().(isZeroer).IsZero()
	}
	return false
}

// leftOut reports whether the field f of the struct at m is omitted. If f is not omitted, value is the address of its value.
func (f *field) leftOut(m memory) (value memory, out bool) {
	for _, hop := range f.omit.hops {
		m = m.at(hop)
		if m.isNil() {
			return m, true
		}
		m = m.deref()
	}
	m = m.at(f.offset)
	t := f.value.typ
	return m, f.omit.empty.holds(t, m) || f.omit.zero.holds(t, m)
}
