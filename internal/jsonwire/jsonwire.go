// Package jsonwire writes Go values as JSON and reads them, with encoding/json's
// results (the v1 semantics of Go 1.26), without allocating for plain data.
//
// The first time a type is met it is compiled into a plan: what is at which offset
// and how it is written or read. From then on it is a walk over the plan's
// operations and the value's memory.
//
//	jsonwire.go  the three functions that encode
//	plan.go      types into plans       table.go    plans by type
//	fields.go    which fields count     omit.go     which are left out
//	encode.go    the walk over a plan   scalar.go   numbers, base64
//	text.go      strings and escaping   maps.go     sorted keys
//	marshal.go   user methods, time     errors.go   what went wrong where
//
//	decode.go        Decoder, Limits, the walk over a plan
//	decodeplan.go    types into plans       decodefields.go  members and their names
//	decodeobject.go  structs                decodearray.go   slices, arrays
//	decodemap.go     maps                   decodeany.go     values without a type
//	decodescalar.go  strings, numbers       decodemethod.go  user methods, time, «string»
//	scan.go          the grammar            unquote.go       safe strings
//	rules.go         what else is demanded  wrapper.go       absent and null
//	refusal.go       what is wrong          locate.go        where, by JSON pointer
//	standard_v2.go   methods of encoding/json/v2  quickcheck.go rules that are looked at on the way
//
//	unsafe.go    every use of unsafe
//
// # Encoding
//
// What Append writes is byte for byte json.Marshal's. Beside that, three things
// are promised. An error names the place by JSON pointer (see Error). A panic in a
// user's method passes through and leaves nothing behind. dst is never shortened
// or changed before its length.
//
// Under Go 1.27 encoding/json itself also honours the methods and the tag
// grammar of encoding/json/v2; the encoder keeps to v1 there.
//
// # Decoding
//
// A Decoder takes what json.Unmarshal takes, refuses what it refuses, and makes
// the same of it, down to what it does with a slice that has elements already.
// Limits say what is refused beyond. Nothing decoded refers to the text: strings
// are copies, many in one piece of memory (see Strings), and user methods get
// copies of what they decode.
//
// The walk knows only whether a text is taken. One that is refused is read twice
// more, for every problem and for its place: see Refusal. The encoding/json of Go
// 1.27 differs in odd cases; the decoder keeps to v1 there, but for values whose
// type has an UnmarshalJSONFrom method, which encoding/json decodes.
//
// # Rules
//
// A package above can demand more of values than their types do. It implements
// Ruler, which turns what it knows of a field or a type (tags, methods) into
// Checks, and calls Compile once for each type; an error there names the field
// whose rules cannot be. Then
//
//	var in T
//	err := decoder.Decode(body, &in, limits)
//
// looks at each rule as its value arrives, without allocating, and stops at the
// first that is broken. The error is a *Refusal all the same: it lists every
// problem with its JSON pointer, its offset and the caller's own word for the
// rule, never the value. Members that must be there are counted in a bit set;
// defaults are JSON that is decoded where a member is absent.
//
// A struct type that implements Wrapper stands for the value in one of its fields
// and learns whether it was there, or null. With Strictness.RefuseNull and
// Limits.CaseSensitive, DuplicateMembers and FractionlessFloat a decoder takes
// what a JSON Schema of the same types takes.
//
// # How it is checked
//
// internal/jsonwire compiles a plan for each type once: a list of steps that append to a byte
// slice. The output is byte for byte what encoding/json.Marshal writes, which a table and a fuzz
// target check against encoding/json itself.
//
// Decoders are plans as well: one pass over the text that writes by offset and looks at rules as
// values arrive. It expects the members of an object in the order of the fields, else finds them
// by a perfect hash. Strings are safe copies that share pieces of 4 KB. What is refused is read
// again, to list what is wrong and where (refusal.go). Compile takes rules from a package above;
// the package comment says how. The values are those of encoding/json.Unmarshal, and so is what
// is refused; a corpus of odd cases and a fuzz target check that.
package jsonwire

// Options select a variant of the output; the zero value is json.Marshal's.
type Options struct {
	// NoEscapeHTML leaves <, > and & as they are, like
	// json.Encoder.SetEscapeHTML(false). As there, U+2028 and U+2029 are still
	// escaped, except in what a MarshalJSON method returned.
	NoEscapeHTML bool

	// NilAsEmpty writes nil slices as [], nil maps as {} and nil []byte as "",
	// where json.Marshal writes null. What methods of users write is theirs.
	NilAsEmpty bool

	// View says which members are written.
	View View
}

// A View selects members by the tags readOnly:"true" and writeOnly:"true" of their fields. It
// reaches all that the encoder writes, but not what methods of users write.
type View uint8

const (
	All      View = iota // every member, as json.Marshal
	Answers              // those that a server writes: not writeOnly
	Requests             // those that a client writes: not readOnly
	views
)

// Append appends the JSON of *v to dst: what json.Marshal(*v) returns. As there,
// *v is not addressable, so methods with a pointer receiver are not called on it
// or on the fields and array elements inside it; behind pointers and in slices
// they are. A nil v is null.
//
// On error Append returns dst at its original length, perhaps moved to a larger
// array, and an *Error.
//
// v does not escape. User methods on *v or its parts have value receivers and
// get copies (an IsZero method with a pointer receiver gets a pointer to a copy).
// What *v points to does escape, as with json.Marshal.
func Append[T any](dst []byte, v *T, o Options) ([]byte, error) {
	if v == nil {
		return append(dst, "null"...), nil
	}
	p := plansByPointer.get(typeOf((*T)(nil)))
	if p == nil {
		// The conversion to an interface is also what tells the compiler that
		// all that *v points to may be kept, as hidden demands.
		return appendFirst(dst, (*T)(nil), *v, o)
	}
	return appendPlanned(dst, p, hidden(v), o)
}

// appendFirst is Append for a type without a plan: an interface, or one that
// Append has not met yet. It leaves a plan for the next call.
func appendFirst(dst []byte, pointer, v any, o Options) ([]byte, error) {
	registerPointer(pointer)
	return AppendValue(dst, v, o)
}

// AppendValue appends the JSON of the value that v holds: what json.Marshal(v)
// returns. On error it returns dst at its original length, perhaps moved to a
// larger array, and an *Error.
func AppendValue(dst []byte, v any, o Options) ([]byte, error) {
	if v == nil {
		return append(dst, "null"...), nil
	}
	p := planOf(v)
	return appendPlanned(dst, p, held(&v, p.direct), o)
}

// AppendString appends s as a quoted JSON string. Invalid UTF-8 becomes \ufffd.
func AppendString(dst []byte, s string, o Options) []byte {
	return appendString(dst, s, modeOf(o).escapes())
}

func appendPlanned(dst []byte, p *plan, m memory, o Options) ([]byte, error) {
	e := encoder{mode: modeOf(o), empty: o.NilAsEmpty}
	e.esc = e.mode.escapes()
	n := len(dst)
	dst, err := e.value(dst, p, m)
	if err != nil {
		return dst[:n], err
	}
	return dst, nil
}
