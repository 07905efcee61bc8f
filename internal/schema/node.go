package schema

import (
	"reflect"
)

// Kind is the kind of JSON that a node accepts.
type Kind uint8

const (
	Any    Kind = iota // any JSON
	Bool               // true and false
	Int                // a signed integer of Bits bits
	Uint               // an unsigned integer of Bits bits
	Float              // a floating-point number of Bits bits (IEEE 754)
	Number             // json.Number
	String             // a string
	Bytes              // a string in base64
	Text               // a string that the type encodes or decodes with its own method (MarshalText, UnmarshalText)
	Quoted             // a number or a boolean in a string, because the field has the option "string"
	Array              // an array of Elem
	Map                // an object with values of Elem
	Object             // an object with the members of a struct
	Custom             // JSON that the type encodes or decodes with its own method (MarshalJSON, UnmarshalJSON)
)

// A Node is the schema of a Go type, or of a field with its rules. It is immutable after its
// compilation and safe for concurrent use.
type Node struct {
	Kind     Kind
	Type     reflect.Type // type of the values, never a pointer
	Bits     int          // for Int, Uint, Float and Quoted
	Nullable bool         // null is also accepted
	Rules    Rules
	Elem     *Node   // for Array and Map
	Names    *Node   // for Map: schema of the member names, nil if any name is accepted
	Struct   *Struct // for Object
	As       *Node   // for Custom: the type's description (Describe), or nil
	Meta     Meta

	decodes func([]byte) error // for Text, Quoted and Custom: decodes a text into a new value of the type; nil if the text need not be decoded
}

// A Struct has the members of a struct type. Nodes of the same type share one Struct, so that types
// can be recursive.
type Struct struct {
	Type    reflect.Type
	Members []Member

	Unknown Unknown // treatment of unknown members

	index    map[string]int
	longest  int  // length in bytes of the longest name, if all its characters are escaped
	required bits // required members, by index in Members
	defaults bool // at least one member has a default
}

// Unknown is the treatment of members of a request for which a struct has no field.
type Unknown uint8

const (
	UnknownByReport Unknown = iota // decided by Report.IgnoreUnknown
	UnknownRefused
	UnknownIgnored
)

// A Member is one member of an object.
type Member struct {
	Name      string
	Index     []int // index of the field for reflect.Value.FieldByIndex
	Node      *Node
	Required  bool // required in a request
	Always    bool // always present in an answer
	Default   []byte
	Dependent []string // names of members that are required if this member is present

	quoted   []byte // name as the content of a JSON string
	byAbsent string // name and default as a JSON member; empty without a default
}

// Meta has the annotations of a node. They appear in documents. Only ReadOnly and WriteOnly have an
// effect on checks.
type Meta struct {
	Title, Description    string
	Example               []byte // an example as JSON, or nil
	Deprecated            bool
	ReadOnly, WriteOnly   bool
	ContentType, Encoding string // for strings with encoded content
}

// Member returns the member with the given name, or nil.
func (s *Struct) Member(name string) *Member {
	if i, ok := s.index[name]; ok {
		return &s.Members[i]
	}
	return nil
}

// find returns the index of the member with the given name, or -1.
func (s *Struct) find(name []byte) int {
	if len(s.Members) <= 8 {
		for i := range s.Members {
			if s.Members[i].Name == string(name) {
				return i
			}
		}
		return -1
	}
	if i, ok := s.index[string(name)]; ok {
		return i
	}
	return -1
}

// bits is a set of small integers.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bits) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

// Ignores reports whether the struct accepts unknown members. byDefault is the result for a struct
// whose Unknown is UnknownByReport.
func (s *Struct) Ignores(byDefault bool) bool {
	return s.Unknown == UnknownIgnored || byDefault && s.Unknown == UnknownByReport
}

// IgnoresUnknown reports whether some of the structs in the node accept unknown members, and
// whether all of them do. byDefault has the same meaning as for Ignores.
func (n *Node) IgnoresUnknown(byDefault bool) (some, all bool) {
	all = true
	n.structs(map[*Struct]bool{}, func(s *Struct) {
		ignores := s.Ignores(byDefault)
		some, all = some || ignores, all && ignores
	})
	return some, all && some
}

// structs calls f once for each struct in the node. seen has the structs for which f was called.
func (n *Node) structs(seen map[*Struct]bool, f func(*Struct)) {
	if n == nil {
		return
	}
	n.Elem.structs(seen, f)
	if n.Struct == nil || seen[n.Struct] {
		return
	}
	seen[n.Struct] = true
	f(n.Struct)
	for i := range n.Struct.Members {
		n.Struct.Members[i].Node.structs(seen, f)
	}
}

// wanted returns the name of the JSON that the node accepts, for messages.
func (n *Node) wanted() string {
	switch n.Kind {
	case Bool:
		return "boolean"
	case Int, Uint:
		return "integer"
	case Float, Number:
		return "number"
	case String, Bytes, Text, Quoted:
		return "string"
	case Array:
		return "array"
	case Map, Object:
		return "object"
	}
	return "another value"
}

// IsText reports whether the node accepts strings.
func (n *Node) IsText() bool {
	switch n.Kind {
	case String, Bytes, Text, Quoted:
		return true
	}
	return false
}

// HasRules reports whether a rule or a method can refuse a value that has the right type.
func (n *Node) HasRules() bool { return n.Rules.any || n.decodes != nil || n.As != nil }

// RunsCode reports whether decoding a value calls methods of the user's types.
func (n *Node) RunsCode() bool { return n.runsCode(map[*Struct]bool{}) }

func (n *Node) runsCode(seen map[*Struct]bool) bool {
	if n == nil {
		return false
	}
	switch n.Kind {
	case Custom:
		return true
	case Text:
		return n.Type != timeType
	case Array, Map:
		return n.Elem.runsCode(seen) || n.Names.runsCode(seen)
	case Object:
		if seen[n.Struct] {
			return false
		}
		seen[n.Struct] = true
		for i := range n.Struct.Members {
			if n.Struct.Members[i].Node.runsCode(seen) {
				return true
			}
		}
	}
	return false
}
