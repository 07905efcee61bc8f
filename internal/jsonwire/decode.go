package jsonwire

import (
	"fmt"
	"math"
	"reflect"
	"sync"
)

// A Decoder reads JSON texts into values of one type. It is immutable and safe for concurrent use.
type Decoder struct {
	plan *decodePlan
	typ  reflect.Type
}

// Strictness selects refusals that encoding/json does not have and that are compiled into the decoder. With the zero value the
// decoder behaves like encoding/json.
type Strictness struct {
	// RefuseNull refuses null, except for a pointer, an interface, a Wrapper with AcceptNull, json.RawMessage, and types other than
	// time.Time that have a method UnmarshalJSON. encoding/json accepts null for every type and leaves most values unchanged.
	RefuseNull bool
}

// Limits bounds the contents of a text, and selects differences from encoding/json. With the zero value the decoder behaves like
// encoding/json.
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

// decoders holds the decoders without rules, by type. Writes to decoders and all uses of plainCompiler are guarded by compiling, the
// mutex of table.go.
var (
	decoders      sync.Map // reflect.Type to *Decoder
	plainCompiler = decodeCompiler{compiled: map[decodeKey]*decodePlan{}}
)

// DecoderFor returns the decoder of type t that accepts the same texts as encoding/json. The first call for a type compiles the
// decoder.
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

// Compile returns a decoder of type t. The decoder checks the rules that ruler returns for the fields, and the argument rules, which
// apply to the whole value. Both arguments may be nil. The error names the field or type with invalid rules.
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

// Decode decodes the JSON text data into *v, where v is a pointer to the decoder's type. Like encoding/json it decodes into existing
// values. It does not retain data: methods of the user's types get copies. The error is a *Refusal; after an error, *v is partly
// decoded.
func (d *Decoder) Decode(data []byte, v any, l Limits) error {
	if r := d.Read(data, v, l, nil); r != nil {
		return r
	}
	return nil
}

// Read is Decode with a Room that reserves the memory of the value. room may be nil. The result is nil if the text was accepted.
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

// Filled returns l with the defaults in place of zero values.
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

// noLimits is the result of Filled for the zero Limits.
var noLimits = Limits{}.Filled()

// decoder is the state of one call, on the stack of that call.
//
// Its methods read one part of the text from position i, and return the position after that part, or -1 if the text is refused. The
// field problem then has the reason. It is unset if the text is refused because d.room has no memory.
type decoder struct {
	data      []byte
	strings   Strings
	boxes     boxes
	limits    Limits
	depth     int // number of levels by which objects and arrays may still be nested
	elements  int // number of members and elements that the text may still have
	readAhead int // number of bytes that the method ahead has read
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

// value reads a value into the memory at m. The type of that memory is the type from which p was compiled.
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

// rareValue does the work of the method value for the less frequent operations.
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

// otherValue reads a value that does not fit the type of p. It accepts null unless p refuses null, and refuses all other values.
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

// setNull applies null to the value at m: the value becomes nil if its type has nil, and otherwise stays unchanged.
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
