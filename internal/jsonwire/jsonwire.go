// Package jsonwire writes Go values as JSON and reads them, with encoding/json's
// results (the v1 semantics of Go 1.26), without allocating for plain data.
//
// On first use a type is compiled into a plan: the offset of each part, and how it is
// written or read. Later calls walk over the plan's operations and the value's memory.
//
//	jsonwire.go  the three functions that encode
//	plan.go      types into plans       table.go    plans by type
//	fields.go    fields to encode       omit.go     members left out
//	encode.go    the walk over a plan   scalar.go   numbers, base64
//	text.go      strings and escaping   maps.go     sorted keys
//	marshal.go   user methods, time     errors.go   errors with their position
//
//	decode.go        Decoder, Limits, the walk over a plan
//	decodeplan.go    types into plans       decodefields.go  members and their names
//	decodeobject.go  structs                decodearray.go   slices, arrays
//	decodemap.go     maps                   decodeany.go     values without a type
//	decodescalar.go  strings, numbers       decodemethod.go  user methods, time, «string»
//	scan.go          the grammar            unquote.go       safe strings
//	rules.go         rules beyond the types wrapper.go       absent and null
//	refusal.go       why a text is refused  quickcheck.go    rules checked while decoding
//	standard_v2.go   methods of encoding/json/v2
//
//	unsafe.go    every use of unsafe
//
// # Encoding
//
// The output of Append equals that of json.Marshal byte for byte. There are three more
// guarantees. An error has the JSON pointer of its position (see Error). A panic in a user's
// method passes through without side effects. dst is never shortened or changed before
// its length.
//
// Under Go 1.27 encoding/json itself also honours the methods and the tag
// grammar of encoding/json/v2; the encoder keeps to v1 there.
//
// # Decoding
//
// A Decoder accepts and refuses the same texts as json.Unmarshal, with the same
// results, including slices that have elements already. Limits refuse more. Decoded
// values do not refer to the text: strings are copies, many in one piece of memory (see
// Strings), and user methods get copies.
//
// The walk stops at the first problem. A refused text is read once more, without making a value,
// for invalid JSON after the problem and for its JSON pointer: see Refusal. The encoding/json of Go
// 1.27 differs in odd cases; the decoder keeps to v1 there, except for values whose
// type has an UnmarshalJSONFrom method, which encoding/json decodes.
//
// # Rules
//
// An importing package can add rules to types. It implements Ruler, which turns the
// tags and methods of a field or a type into Checks, and calls Compile once for each type.
// An error of Compile names the field with invalid rules. Then
//
//	var in T
//	err := decoder.Decode(body, &in, limits)
//
// checks each rule when its value arrives, without allocating, and stops at the first
// violation. The error is a *Refusal with its JSON pointer and offset, never the value. Required
// members are counted in a bit set. Package schema lists all violations of a refused text. Defaults are JSON that is decoded for a missing member.
//
// A struct type that implements Wrapper stands for the value in one of its fields
// and records whether the value was present, or null. With Strictness.RefuseNull and
// Limits.CaseSensitive, DuplicateMembers and FractionlessFloat a decoder accepts
// the same texts as a JSON Schema of the same types.
//
// # Tests
//
// The plan of a type is a list of steps that append to a byte slice. A table and a fuzz target
// compare the output with that of encoding/json.Marshal.
//
// Decoders are plans, too: one pass over the text writes values by offset and checks rules. It
// expects the members of an object in the order of the fields, and otherwise finds them by a
// perfect hash. Strings are safe copies that share pieces of 4 KB, and numbers and short strings in
// interfaces share allocations. A corpus of odd cases and a
// fuzz target compare values and refusals with those of encoding/json.Unmarshal.
package jsonwire

// Options select a variant of the output; the zero value is json.Marshal's.
type Options struct {
	// NoEscapeHTML leaves <, > and & unescaped, like json.Encoder.SetEscapeHTML(false). U+2028 and U+2029 are still
	// escaped, except in the result of a MarshalJSON method.
	NoEscapeHTML bool

	// NilAsEmpty writes nil slices as [], nil maps as {} and nil []byte as "", where json.Marshal writes null. It has
	// no effect on the output of the user's methods.
	NilAsEmpty bool

	// View selects the members that are written.
	View View
}

// A View selects members by the tags readOnly:"true" and writeOnly:"true" of their fields. It applies to all output of
// the encoder, except that of the user's methods.
type View uint8

const (
	All      View = iota // every member, like json.Marshal
	Answers              // members that a server writes: not writeOnly
	Requests             // members that a client writes: not readOnly
	views
)

// Append appends the JSON of *v to dst, which is the result of json.Marshal(*v). As in json.Marshal, *v is not addressable: methods
// with a pointer receiver are not called on it or on the fields and array elements inside it, but they are called behind pointers and
// in slices. A nil v is null.
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
		// The conversion to an interface also tells the compiler that code may retain the memory that *v points to, as hidden requires.
		return appendFirst(dst, (*T)(nil), *v, o)
	}
	return appendPlanned(dst, p, hidden(v), o)
}

// appendFirst is Append for an interface, or for a type without a plan. In the latter case it stores the plan for
// the next call.
func appendFirst(dst []byte, pointer, v any, o Options) ([]byte, error) {
	registerPointer(pointer)
	return AppendValue(dst, v, o)
}

// AppendValue appends the JSON of the value that v holds, which is the result of json.Marshal(v). On error it returns dst at its
// original length, perhaps moved to a larger array, and an *Error.
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
