// Package jsonwire writes Go values as JSON and reads JSON into Go values. The results are those of encoding/json (its v1 semantics in Go
// 1.26), without allocations for plain data.
//
// On first use, a type is compiled into a plan: the offset of each part, and the operation that writes or reads the part. Later calls
// follow the plan through the memory of the value.
//
//	jsonwire.go  Append, AppendValue and AppendString
//	plan.go      compiling types into plans   table.go     plans by type
//	fields.go    members of a struct          omit.go      conditions to omit a member
//	encode.go    following a plan             scalar.go    numbers, base64
//	text.go      strings and escaping         maps.go      maps with sorted keys
//	marshal.go   user methods, time           errors.go    errors with their position
//	sequence.go  arrays from iterators
//
//	decode.go        Decoder, Limits, following a plan
//	decodeplan.go    compiling types into plans        decodefields.go  members and their names
//	decodeobject.go  structs                           decodearray.go   slices, arrays
//	decodemap.go     maps                              decodeany.go     values without a type
//	decodescalar.go  strings, numbers                  decodemethod.go  user methods, time, option "string"
//	scan.go          the grammar                       unquote.go       strings that remain valid
//	rules.go         rules in addition to the types    wrapper.go       values with a record of absence and null
//	refusal.go       reasons why a text is refused     quickcheck.go    fast tests of common rules
//	room.go          memory of decoded values          ahead.go         counting the rest of an object or array
//	largetext.go     slots for large texts             words.go         values and types in words, for messages
//	standard_v2.go   methods of encoding/json/v2
//
//	unsafe.go    every use of unsafe
//
// # Encoding
//
// With the zero Options, the output of Append equals that of json.Marshal byte for byte. There are three more guarantees. An error has the
// JSON pointer of its position (see Error). A panic in a user's method passes to the caller, and later calls are not affected. The bytes of
// dst up to its length never change.
//
// In Go 1.27, encoding/json also calls the methods and reads the tag options of encoding/json/v2. The encoder does neither, and follows v1.
//
// # Decoding
//
// A Decoder without rules accepts and refuses the same texts as json.Unmarshal, with the same results, also for slices that already have
// elements. Limits can make it refuse more texts. Decoded values do not refer to the text: strings are copies, many of which share one
// piece of memory (see Strings), and user methods get copies.
//
// Decoding stops at the first problem. A refused text is then read a second time, without making a value, to find invalid JSON after the
// problem and the JSON pointer of the problem (see Refusal). encoding/json of Go 1.27 differs from v1 in a few unusual cases. The decoder
// follows v1 in these cases, except for values whose type has an UnmarshalJSONFrom method: those are decoded by encoding/json.
//
// # Rules
//
// An importing package can add rules to types. It implements Ruler, which converts the tags and methods of a field or a type to Checks, and
// calls Compile once for each type. An error of Compile names the field with invalid rules. Then
//
//	var in T
//	err := decoder.Decode(body, &in, limits)
//
// checks each rule as soon as its value is decoded, without allocating, and stops at the first violation. The error is a *Refusal. It has
// the JSON pointer and the offset of the value, but not the value. A bit set records which required members were present. Package schema
// lists all violations of a refused text. A default is JSON text that is decoded if its member is missing.
//
// A struct type that implements Wrapper represents the value in one of its fields, and records whether the value was present or null. A
// decoder with Strictness.RefuseNull and the Limits CaseSensitive, DuplicateMembers and FractionlessFloat accepts the same texts as a JSON
// Schema of the same types.
//
// # Tests
//
// A table and a fuzz target compare the encoder's output with that of encoding/json.Marshal. A corpus of unusual texts and a fuzz target
// compare decoded values and refusals with those of encoding/json.Unmarshal.
package jsonwire

// Options select a variant of the output. The output with the zero value is that of json.Marshal.
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

// Append appends the JSON of *v to dst. The JSON is the result of json.Marshal(*v). As in json.Marshal, *v is not addressable: methods with
// a pointer receiver are not called on *v or on the fields and array elements inside it. They are called on values that are reached through
// pointers and in slices. A nil v is written as null.
//
// If encoding fails, Append returns an *Error, and dst at its original length, perhaps moved to a larger array.
//
// v does not escape to the heap. User methods on *v or its parts have value receivers and get copies. An IsZero method with a pointer
// receiver gets a pointer to a copy. Values to which *v points do escape, as with json.Marshal.
func Append[T any](dst []byte, v *T, o Options) ([]byte, error) {
	if v == nil {
		return append(dst, "null"...), nil
	}
	p := plansByPointer.get(typeOf((*T)(nil)))
	if p == nil {
		// The conversion to an interface also tells the compiler that other code may retain the memory to which *v points. The function
		// hidden requires this.
		return appendFirst(dst, (*T)(nil), *v, o)
	}
	return appendPlanned(dst, p, hidden(v), o)
}

// appendFirst is Append for an interface type, and for a type without a plan. It stores the plan of such a type for the next call.
func appendFirst(dst []byte, pointer, v any, o Options) ([]byte, error) {
	registerPointer(pointer)
	return AppendValue(dst, v, o)
}

// AppendValue appends the JSON of the value in v, which is the result of json.Marshal(v). If encoding fails, it returns an *Error, and dst
// at its original length, perhaps moved to a larger array.
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
