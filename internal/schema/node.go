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
	Text               // a string that the type itself encodes (encoding.TextMarshaler)
	Quoted             // a number or a boolean in a string: the option «string»
	Array              // an array of Elem
	Map                // an object with values of Elem
	Object             // an object with the members of a struct
	Custom             // JSON that the type itself encodes (json.Marshaler)
)

// A Node is the schema of a Go type, or of a field with its rules. It is immutable after
// compilation and safe for concurrent use.
type Node struct {
	Kind     Kind
	Type     reflect.Type // type of the values, never a pointer
	Bits     int          // for Int, Uint and Float
	Nullable bool         // null is accepted, too
	Rules    Rules
	Elem     *Node   // for Array and Map
	Names    *Node   // for Map: schema of the member names, nil for any
	Struct   *Struct // for Object
	As       *Node   // for Custom: the type's description (Describe), nil for none
	Meta     Meta

	decodes func([]byte) error // for Text, Quoted and Custom: calls the type's own decoder; nil for no call
}

// A Struct has the members of a struct type. There is one Struct for each type, which makes
// recursion possible.
type Struct struct {
	Type    reflect.Type
	Members []Member

	Unknown Unknown // treatment of unknown members

	index    map[string]int
	longest  int  // length of the longest name in bytes if all its characters are escaped
	required bits // required members, by index in Members
	defaults bool // a member has a default
}

// Unknown is the treatment of request members that a struct does not have.
type Unknown uint8

const (
	UnknownByReport Unknown = iota // decided by the report
	UnknownRefused
	UnknownIgnored
)

// A Member is one member of an object.
type Member struct {
	Name      string
	Index     []int // index of the field for reflect.Value.FieldByIndex
	Node      *Node
	Required  bool // required in input
	Always    bool // always present in output
	Default   []byte
	Dependent []string // members that are required if this one is present

	quoted   []byte // name as the content of a JSON string
	byAbsent string // member with its default as JSON; "" for none
}

// Meta has the annotations of a node, for readers of documents.
type Meta struct {
	Title, Description    string
	Example               []byte // example as JSON, nil for none
	Deprecated            bool
	ReadOnly, WriteOnly   bool
	ContentType, Encoding string // for strings with encoded content
}

// Member returns the member with the given name, or nil if there is none.
func (s *Struct) Member(name string) *Member {
	if i, ok := s.index[name]; ok {
		return &s.Members[i]
	}
	return nil
}

// find returns the index of the named member, or -1 for none.
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

// Ignores reports whether the struct accepts unknown members. byDefault applies to structs without
// a setting of their own.
func (s *Struct) Ignores(byDefault bool) bool {
	return s.Unknown == UnknownIgnored || byDefault && s.Unknown == UnknownByReport
}

// IgnoresUnknown reports whether some of the structs in the node accept unknown members, and
// whether all do.
func (n *Node) IgnoresUnknown(byDefault bool) (some, all bool) {
	all = true
	n.structs(map[*Struct]bool{}, func(s *Struct) {
		ignores := s.Ignores(byDefault)
		some, all = some || ignores, all && ignores
	})
	return some, all && some
}

// structs calls f for each struct in the node.
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

// wanted returns the name of the node's kind for messages.
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

// HasRules reports whether a value of the right type can be refused.
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
