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

// Strictness makes a decoder refuse more than encoding/json does; it is part of
// the decoder. The zero value is encoding/json's.
type Strictness struct {
	// RefuseNull refuses null unless the type is a pointer, interface, Wrapper or json.RawMessage, or has a method
	// UnmarshalJSON. encoding/json leaves the value unchanged.
	RefuseNull bool
}

// Limits bounds the contents of a text, and selects refusals beyond those of encoding/json. The zero value
// behaves like encoding/json.
type Limits struct {
	UnknownMembers    bool // refuse members that a struct does not have
	DuplicateMembers  bool // refuse two members of one name, but in unknown members, json.RawMessage and for methods
	InvalidUTF8       bool // refuse it, and surrogates without their pair, instead of making them U+FFFD
	CaseSensitive     bool // take no member whose name differs in case
	Underflow         bool // refuse numbers that are not zero for floating-point numbers that would be
	FractionlessFloat bool // take 1.0 and 1e2 for integers, as JSON Schema does

	MaxDepth    int // of objects and arrays within each other; 0 is 10,000, which is also the most
	MaxElements int // total number of object members and array elements; 0: unlimited
	MaxNumber   int // bytes of a number; 0: unlimited
}

// maxDepth is the depth of objects and arrays that encoding/json allows.
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
// into existing values. It neither keeps data nor passes it on: the user's methods get copies. The error is a
// *Refusal, and then *v is partly decoded.
func (d *Decoder) Decode(data []byte, v any, l Limits) error {
	if r := d.Read(data, v, l, nil); r != nil {
		return r
	}
	return nil
}

// Read is Decode. The value's memory is reserved in room, see Room.
func (d *Decoder) Read(data []byte, v any, l Limits, room Room) *Refusal {
	d.check(v)
	refused, _ := d.decode(data, heldPointer(v), l, room, true)
	return refused
}

// Try is Read for callers that need not know why a text is refused, or find out themselves.
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
		defer endTurn(awaitTurn())
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
// Its methods read one part of the text from position i, and return the position after it, or -1 if it is refused. Then fault
// has the reason, unless room had no memory.
type decoder struct {
	data     []byte
	strings  Strings
	boxes    boxes
	limits   Limits
	depth    int // how many more objects and arrays may be opened
	elements int // how many more there may be
	looked   int // bytes that were read ahead, see ahead
	count    int // elements of the array, members of the map that was read last
	free     int // bytes that may be allocated before more are reserved in room
	room     Room
	fault    fault
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

// value reads a value into the one at m, which is of the type p was compiled from.
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
				if !d.takes(int(p.size)) {
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

// rareValue is value for the rarer plans.
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

// ignored reads a value that is dropped.
func (d *decoder) ignored(i int) int {
	next := d.skip(i)
	if next >= 0 && d.limits.InvalidUTF8 && !d.wellFormed(d.data[i:next]) {
		return d.refuse(ProblemUTF8, i)
	}
	return next
}

// otherValue reads a value of a type that does not fit p: null, or a mistake.
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
