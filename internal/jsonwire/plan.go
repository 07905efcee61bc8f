package jsonwire

import (
	"encoding"
	"encoding/json"
	"reflect"
	"time"
)

// op is the operation that writes a value.
type op uint8

const (
	opUnsupported op = iota
	opBool
	opInt8
	opInt16
	opInt32
	opInt64
	opUint8
	opUint16
	opUint32
	opUint64
	opFloat32
	opFloat64
	opString
	opNumber // json.Number
	opQuoted // the "string" option around the scalar elem
	opBytes  // base64
	opTime   // time.Time
	opRaw    // json.RawMessage
	opStruct
	opSlice
	opArray
	opPointer
	opMap
	opInterface        // without methods
	opInterfaceMethods // with methods, but not those of a marshaler
	opMarshal          // MarshalJSON through the address of the value
	opMarshalPointer   // MarshalJSON of a pointer, nil is null
	opMarshalInterface // MarshalJSON of the value in an interface; nil is null
	opText             // the same three for MarshalText
	opTextPointer
	opTextInterface

	// Only for decoders.
	opUnmarshal     // UnmarshalJSON
	opUnmarshalText // UnmarshalText
	opStandard      // encoding/json decodes the value
	opRefused       // no value is taken; elem reads a default
	opIgnored       // any value is skipped; elem reads a default
	opWrapped       // a Wrapper
	opChecked       // rules around elem
	opIndirect      // of members: reached through pointers to embedded structs
	opQuickText     // of members: an opChecked whose quickCheck is quickText
)

// plan is how values of one type are written. A plan is complete and immutable
// once it is in a planTable.
type plan struct {
	op     op
	direct bool         // an interface holds the value itself in its data word
	typ    reflect.Type // for errors, and to reach the value through reflect
	elem   *plan        // of pointers, slices, arrays, maps, quoted scalars
	size   uintptr      // of an element, of arrays and slices
	length int          // of arrays

	// pointer is the type through which user methods are called: *typ for
	// opMarshal and opText, typ itself for the pointer variants.
	pointer typeID

	fields [modes][]field  // of structs, with keys as each mode writes them
	names  [views][]string // of the fields, for errors
	keys   *mapKeys        // of maps
	wrap   *wrapLayout     // of opWrapped
}

// planKey: whether a value is addressable decides whether methods with a
// pointer receiver are called, here and for the values inside it.
type planKey struct {
	typ         reflect.Type
	addressable bool
}

// compiled holds every plan made so far, also those of inner types that no table
// names. Guarded by compiling.
var compiled = map[planKey]*plan{}

var (
	marshalerType     = reflect.TypeFor[json.Marshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
	numberType        = reflect.TypeFor[json.Number]()
	rawMessageType    = reflect.TypeFor[json.RawMessage]()
	timeType          = reflect.TypeFor[time.Time]()
	float64Type       = reflect.TypeFor[float64]()
)

// compile returns the plan for values of type t. The caller holds compiling.
func compile(t reflect.Type, addressable bool) *plan {
	key := planKey{t, addressable}
	if p := compiled[key]; p != nil {
		return p // perhaps unfinished: t is recursive and we are inside it
	}
	p := &plan{typ: t, direct: isDirect(t)}
	compiled[key] = p
	switch t {
	case timeType:
		p.op = opTime
	case rawMessageType:
		p.op = opRaw
	case numberType:
		p.op = opNumber
	case reflect.PointerTo(timeType):
		// Errors about the time name the pointer type, as encoding/json's do.
		p.op, p.elem = opPointer, &plan{op: opTime, typ: t}
	default:
		switch {
		case t.Kind() == reflect.Struct && t.Implements(wrapperType):
			layout, value := wrapLayoutOf(t)
			p.op, p.wrap = opWrapped, layout
			p.elem = compile(value, false)
		case !p.compileMethods(addressable):
			p.compileKind(addressable)
		}
	}
	return p
}

// compileMethods sets p up if a user's method writes the value, and reports whether one does. MarshalJSON takes precedence
// over MarshalText.
func (p *plan) compileMethods(addressable bool) bool {
	t := p.typ
	has := func(method reflect.Type) bool {
		return t.Implements(method) ||
			addressable && t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(method)
	}
	var direct, pointer, iface op
	switch {
	case has(marshalerType):
		direct, pointer, iface = opMarshal, opMarshalPointer, opMarshalInterface
	case has(textMarshalerType):
		direct, pointer, iface = opText, opTextPointer, opTextInterface
	default:
		return false
	}
	switch t.Kind() {
	case reflect.Pointer:
		p.op, p.pointer = pointer, typeOf(reflect.Zero(t).Interface())
	case reflect.Interface:
		p.op = iface
	default:
		p.op, p.pointer = direct, typeOf(reflect.Zero(reflect.PointerTo(t)).Interface())
	}
	return true
}

// compileKind sets up a type that has no marshalling method. It sets op before
// it compiles inner types: if t is recursive, they look at it.
func (p *plan) compileKind(addressable bool) {
	t := p.typ
	switch t.Kind() {
	case reflect.Struct:
		p.op = opStruct
		p.compileFields(addressable)
	case reflect.Slice:
		p.op = opSlice
		if isBytes(t) {
			p.op = opBytes
			return
		}
		p.size = t.Elem().Size()
		p.elem = compile(t.Elem(), true)
	case reflect.Array:
		p.op = opArray
		p.size, p.length = t.Elem().Size(), t.Len()
		p.elem = compile(t.Elem(), addressable)
	case reflect.Pointer:
		p.op = opPointer
		p.elem = compile(t.Elem(), true)
	case reflect.Map:
		if form := keyFormOf(t.Key()); form != keyUnsupported {
			p.op = opMap
			p.keys = &mapKeys{typ: t, form: form}
			p.elem = compile(t.Elem(), false)
		}
	case reflect.Interface:
		p.op = opInterface
		if t.NumMethod() > 0 {
			p.op = opInterfaceMethods
		}
	default:
		p.op = scalarOp(t)
	}
}

// scalarOp is the operation for a basic kind. int, uint and uintptr become the
// operation of their width.
func scalarOp(t reflect.Type) op {
	switch t.Kind() {
	case reflect.Bool:
		return opBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return map[uintptr]op{1: opInt8, 2: opInt16, 4: opInt32, 8: opInt64}[t.Size()]
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return map[uintptr]op{1: opUint8, 2: opUint16, 4: opUint32, 8: opUint64}[t.Size()]
	case reflect.Float32:
		return opFloat32
	case reflect.Float64:
		return opFloat64
	case reflect.String:
		return opString
	}
	return opUnsupported
}

// isBytes reports whether slices of type t are written as base64: their elements
// are bytes that know no better.
func isBytes(t reflect.Type) bool {
	elem := reflect.PointerTo(t.Elem())
	return t.Elem().Kind() == reflect.Uint8 &&
		!elem.Implements(marshalerType) && !elem.Implements(textMarshalerType)
}

// isDirect reports whether an interface holds a t directly instead of by its address. The rule for single-pointer types
// differs between Go versions, so isDirect tests it: it puts a known address in the place of a t and checks the resulting
// interface.
func isDirect(t reflect.Type) bool {
	if t.Size() != reflect.TypeFor[*byte]().Size() {
		return false
	}
	word := new(byte)
	box := reflect.New(t)
	storeWord(memoryOf(box), addressOf(&word))
	return holdsDirectly(box.Elem().Interface(), word)
}
