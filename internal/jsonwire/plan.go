package jsonwire

import (
	"encoding"
	"encoding/json"
	"reflect"
	"time"
)

// An op is the operation that writes or reads a value.
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
	opQuoted // scalar inside a JSON string, because the field has the option "string"
	opBytes  // base64
	opTime   // time.Time
	opRaw    // json.RawMessage
	opStruct
	opSlice
	opArray
	opPointer
	opMap
	opInterface        // interface type without methods
	opInterfaceMethods // interface type with methods, but without MarshalJSON and MarshalText
	opMarshal          // for encoders: MarshalJSON through the address of the value
	opMarshalPointer   // MarshalJSON of a pointer; nil is null
	opMarshalInterface // MarshalJSON of the value in an interface; a nil interface is null
	opText             // MarshalText; the next two operations are for pointers and interfaces, as for MarshalJSON
	opTextPointer
	opTextInterface

	// The operations from here on are only for decoders, except opWrapped.
	opUnmarshal     // UnmarshalJSON
	opUnmarshalText // UnmarshalText
	opStandard      // encoding/json decodes the value
	opRefused       // member that a text must not have; elem is the plan for the default of the member
	opIgnored       // member whose value is skipped; elem is the plan for the default of the member
	opWrapped       // type that implements Wrapper
	opChecked       // value of the plan elem, with checks
	opIndirect      // member that is reached through pointers to embedded structs
	opQuickText     // opChecked for a member whose quick check has the kind quickText
)

// A plan describes how to write values of one type. It is complete and immutable once it is in a planTable.
type plan struct {
	op     op
	direct bool         // an interface stores the value itself as its data word, not the address of the value
	typ    reflect.Type // for errors, and to reach the value through reflect
	elem   *plan        // plan of the element of a slice or array, of the target of a pointer, or of a quoted scalar
	size   uintptr      // size of an element of an array or slice
	length int          // length of an array

	// pointer identifies the type on which user methods are called: *typ for opMarshal and opText, and typ itself for the pointer
	// variants.
	pointer typeID

	fields [modes][]field  // fields of a struct that each mode writes, with their keys
	names  [views][]string // names of the same fields, for errors, by view (a mode is a view and a way to escape strings)
	keys   *mapKeys        // for maps
	wrap   *wrapLayout     // for opWrapped
}

// A planKey identifies a plan. addressable is part of the key, because methods with a pointer receiver are called only on
// addressable values.
type planKey struct {
	typ         reflect.Type
	addressable bool
}

// compiled holds all plans, including plans of inner types, which no planTable contains. It is guarded by compiling, the mutex of
// table.go.
var compiled = map[planKey]*plan{}

var (
	marshalerType     = reflect.TypeFor[json.Marshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
	numberType        = reflect.TypeFor[json.Number]()
	rawMessageType    = reflect.TypeFor[json.RawMessage]()
	timeType          = reflect.TypeFor[time.Time]()
	float64Type       = reflect.TypeFor[float64]()
)

// compile returns the plan for values of type t. The caller must hold compiling, the mutex of table.go.
func compile(t reflect.Type, addressable bool) *plan {
	key := planKey{t, addressable}
	if p := compiled[key]; p != nil {
		return p // incomplete if t is recursive and is being compiled
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
		// If a time.Time behind a pointer cannot be encoded, the error names *time.Time, as in encoding/json. Therefore the plan of
		// that time.Time has the pointer type as typ.
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

// compileMethods sets up p if its type has a method that encodes it, and reports whether the type has such a method. MarshalJSON
// takes precedence over MarshalText.
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

// compileKind sets up p for a type without marshaling methods. It sets p.op before it compiles inner types: if one of them contains
// the type of p again, its compilation reads the op of p, which is still incomplete.
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

// scalarOp returns the operation for a basic kind. The operation for int, uint and uintptr is that of the integer type of the same
// size.
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

// isBytes reports whether slices of type t are written as base64. This requires elements that are bytes and have no marshaling
// methods.
func isBytes(t reflect.Type) bool {
	elem := reflect.PointerTo(t.Elem())
	return t.Elem().Kind() == reflect.Uint8 &&
		!elem.Implements(marshalerType) && !elem.Implements(textMarshalerType)
}

// isDirect reports whether an interface that holds a t stores the t itself in its data word, not the address of the t. The rule for
// types that consist of a single pointer differs between Go versions. Therefore isDirect tests the rule: it stores a known pointer
// as a t in an interface and reads the data word.
func isDirect(t reflect.Type) bool {
	if t.Size() != reflect.TypeFor[*byte]().Size() {
		return false
	}
	word := new(byte)
	box := reflect.New(t)
	storeWord(memoryOf(box), addressOf(&word))
	return holdsDirectly(box.Elem().Interface(), word)
}
