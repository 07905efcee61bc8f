package jsonwire

import (
	"fmt"
	"math"
	"reflect"
	"sync"
)

// A Decoder reads JSON texts into values of one type. It is immutable: any number
// of goroutines may use it.
type Decoder struct {
	plan *decodePlan
	typ  reflect.Type
}

// Strictness selects refusals beyond those of encoding/json that are compiled into the decoder. The zero value behaves like
// encoding/json.
type Strictness struct {
	// RefuseNull refuses null unless the type is a pointer, interface, Wrapper or json.RawMessage, or has a method
	// UnmarshalJSON. encoding/json leaves the value unchanged.
	RefuseNull bool
}

// Limits bounds the contents of a text, and selects refusals beyond those of encoding/json. The zero value
// behaves like encoding/json.
type Limits struct {
	UnknownMembers    bool // refuse members that the struct does not have
	DuplicateMembers  bool // refuse duplicate names, except in unknown members, json.RawMessage and types with methods
	InvalidUTF8       bool // refuse invalid UTF-8 and unpaired surrogates instead of replacing them by U+FFFD
	CaseSensitive     bool // match names exactly, including case
	Underflow         bool // refuse nonzero numbers that are rounded to zero
	FractionlessFloat bool // accept 1.0 and 1e2 as integers, as JSON Schema does

	MaxDepth    int // maximum nesting of objects and arrays; 0 is 10,000, which is also the maximum
	MaxElements int // total number of object members and array elements; 0: unlimited
	MaxNumber   int // maximum length of a number in bytes; 0: unlimited
}

// maxDepth is the maximum nesting of objects and arrays in encoding/json.
const maxDepth = 10_000

// decoders holds the plans of all types that were decoded without rules. Guarded
// by compiling, as is the compiler.
var (
	decoders      sync.Map // reflect.Type to *Decoder
	plainCompiler = decodeCompiler{compiled: map[decodeKey]*decodePlan{}}
)

// DecoderFor returns the decoder of type t that accepts the same texts as encoding/json. It is compiled on first use.
func DecoderFor(t reflect.Type) *Decoder {
	if d, ok := decoders.Load(t); ok {
		return d.(*Decoder)
	}
	compiling.Lock()
	defer compiling.Unlock()
	d := &Decoder{plan: plainCompiler.compile(t, true), typ: t}
	_ = plainCompiler.finish() // cannot fail without rules
	actual, _ := decoders.LoadOrStore(t, d)
	return actual.(*Decoder)
}

// Compile returns a decoder of type t that also checks the ruler's rules, and the given rules, which may be nil, on
// the whole value. The error names the field with invalid rules.
func Compile(t reflect.Type, rules *Rules, ruler Ruler, s Strictness) (*Decoder, error) {
	c := decodeCompiler{compiled: map[decodeKey]*decodePlan{}, ruler: ruler, strict: s.RefuseNull}
	d := &Decoder{plan: c.compile(t, true), typ: t}
	err := c.finish()
	if err == nil {
		d.plan = c.withRules(d.plan, rules, t.String())
		err = c.finish()
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Decode decodes the JSON text data into *v, where v is a pointer to the decoder's type. Like encoding/json it decodes
// into existing values. It does not retain data: the user's methods get copies. The error is a
// *Refusal; then *v is partly decoded.
func (d *Decoder) Decode(data []byte, v any, l Limits) error {
	if r := d.Read(data, v, l, nil); r != nil {
		return r
	}
	return nil
}

// Read is Decode with a reservation of the value's memory in room, see Room.
func (d *Decoder) Read(data []byte, v any, l Limits, room Room) *Refusal {
	d.check(v)
	refused, _ := d.decode(data, heldPointer(v), l, room, true)
	return refused
}

// Try is Read for callers that do not need the reason of a refusal. It reports whether the text was accepted.
func (d *Decoder) Try(data []byte, v any, l Limits, room Room) bool {
	d.check(v)
	_, ok := d.decode(data, heldPointer(v), l, room, false)
	return ok
}

// check panics if v is not a pointer to the decoder's type.
func (d *Decoder) check(v any) {
	if typeOf(v) != d.plan.pointer {
		panic(fmt.Sprintf("jsonwire: a decoder of %s cannot decode into a %T", d.typ, v))
	}
}

func (d *Decoder) decode(data []byte, m memory, l Limits, room Room, explain bool) (refused *Refusal, ok bool) {
	if len(data) >= largeText {
		defer releaseSlot(acquireSlot())
	}
	run := decoder{limits: l.Filled(), data: data, room: room, free: free(len(data))}
	run.depth, run.elements = run.limits.MaxDepth, run.limits.MaxElements
	if run.text(d.plan, m) >= 0 {
		return nil, true
	}
	if explain {
		refused = run.refusal()
	}
	return refused, false
}

// Filled returns l with its defaults.
func (l Limits) Filled() Limits {
	if l.MaxDepth <= 0 || l.MaxDepth > maxDepth {
		l.MaxDepth = maxDepth
	}
	if l.MaxElements <= 0 {
		l.MaxElements = math.MaxInt
	}
	if l.MaxNumber <= 0 {
		l.MaxNumber = math.MaxInt
	}
	return l
}

// noLimits are filled Limits of the zero value.
var noLimits = Limits{}.Filled()

// decoder is the state of one call, on that call's stack.
//
// Its methods read one part of the text from position i, and return the position after it, or -1 if the text is refused. Then problem
// has the reason, unless room had no memory.
type decoder struct {
	data      []byte
	strings   Strings
	boxes     boxes
	limits    Limits
	depth     int // remaining nesting of objects and arrays
	elements  int // remaining number of members and elements
	readAhead int // number of bytes that were read ahead, see ahead
	count     int // number of elements of the last array, or members of the last map
	free      int // bytes that may be allocated before the next reservation in room
	room      Room
	problem   problem
}

// text reads a whole text.
func (d *decoder) text(p *decodePlan, m memory) int {
	i := skipSpace(d.data, 0)
	next := d.value(p, m, i)
	if next < 0 {
		return -1
	}
	if next = skipSpace(d.data, next); next < len(d.data) {
		return d.syntax(next)
	}
	return next
}

// value reads a value into the memory at m, which is of the type that p was compiled from.
func (d *decoder) value(p *decodePlan, m memory, i int) int {
	if i >= len(d.data) {
		return d.syntax(i)
	}
	c := d.data[i]
	switch p.op {
	case opString:
		if c == '"' {
			s, next := d.string(i + 1)
			if next >= 0 {
				store(m, s)
			}
			return next
		}
	case opInt8, opInt16, opInt32, opInt64:
		if c == '-' || c-'0' <= 9 {
			return d.int(p, m, i)
		}
	case opUint8, opUint16, opUint32, opUint64:
		if c == '-' || c-'0' <= 9 {
			return d.uint(p, m, i)
		}
	case opFloat32, opFloat64:
		if c == '-' || c-'0' <= 9 {
			return d.float(p, m, i)
		}
	case opBool:
		if c == 't' || c == 'f' {
			return d.bool(m, i)
		}
	case opStruct:
		if c == '{' {
			return d.object(p, m, i)
		}
	case opSlice:
		if c == '[' {
			return d.slice(p, m, i)
		}
	case opPointer:
		if c != 'n' {
			if m.isNil() {
				if !d.charge(int(p.size)) {
					return -1
				}
				store(m, reflect.New(p.elem.typ).UnsafePointer())
			}
			return d.value(p.elem, m.deref(), i)
		}
	case opMap:
		if c == '{' {
			return d.mapping(p, m, i)
		}
	case opInterface, opInterfaceMethods:
		return d.intoInterface(p, m, i)
	case opChecked:
		return d.checked(p, m, i)
	default:
		return d.rareValue(p, m, i)
	}
	return d.otherValue(p, m, i)
}

// rareValue reads the values of the rarer plans, see value.
func (d *decoder) rareValue(p *decodePlan, m memory, i int) int {
	c := d.data[i]
	switch p.op {
	case opArray:
		if c == '[' {
			return d.array(p, m, i)
		}
	case opBytes:
		if c == '[' {
			return d.slice(p, m, i)
		}
		if c == '"' {
			return d.base64(p, m, i)
		}
	case opNumber:
		if c == '"' || c == '-' || c-'0' <= 9 {
			return d.number(p, m, i)
		}
	case opQuoted:
		return d.quoted(p, m, i)
	case opWrapped:
		return d.wrapped(p, m, i)
	case opUnmarshalText:
		if c == '"' {
			return d.unmarshalText(p, m, i)
		}
	case opTime, opRaw, opUnmarshal, opStandard:
		return d.unmarshal(p, m, i)
	case opRefused:
		return d.mismatch(p, i)
	case opIgnored:
		return d.ignored(i)
	}
	return d.otherValue(p, m, i)
}

// ignored reads a value and drops it.
func (d *decoder) ignored(i int) int {
	next := d.skip(i)
	if next >= 0 && d.limits.InvalidUTF8 && !d.wellFormed(d.data[i:next]) {
		return d.refuse(ProblemUTF8, i)
	}
	return next
}

// otherValue reads a value of a type that does not fit p: it accepts null, and refuses other values.
func (d *decoder) otherValue(p *decodePlan, m memory, i int) int {
	if d.data[i] == 'n' && !(p.strict && p.op != opPointer && p.op != opInterface && p.op != opInterfaceMethods) {
		next := d.word(i, "null")
		if next >= 0 {
			p.setNull(m)
		}
		return next
	}
	return d.mismatch(p, i)
}

// setNull applies null to the value at m: nil if its type has nil, otherwise no change.
func (p *decodePlan) setNull(m memory) {
	switch p.op {
	case opBool, opString, opNumber, opStruct, opTime:
		return
	}
	switch p.typ.Kind() {
	case reflect.Pointer, reflect.Map:
		store(m, nilPointer)
	case reflect.Slice:
		store(m, sliceHeader{})
	case reflect.Interface:
		valueAt(p.typ, m).SetZero()
	}
}
