package schema

import (
	"reflect"
)

// Kind says which JSON a node takes.
type Kind uint8

const (
	Any    Kind = iota // whatever is JSON
	Bool               // true and false
	Int                // an integer with sign, of Bits bits
	Uint               // one without
	Float              // a number, of Bits bits as IEEE 754 has them
	Number             // json.Number
	String             // a string
	Bytes              // a string in base64
	Text               // a string that the type reads and writes itself (encoding.TextMarshaler)
	Quoted             // a number or a boolean in a string: the option «string»
	Array              // an array of Elem
	Map                // an object with values of Elem
	Object             // an object with the members of a struct
	Custom             // JSON that the type reads and writes itself (json.Marshaler)
)

// A Node is the schema of a Go type, or of a field with its rules. It is immutable
// after compilation and safe for any number of goroutines.
type Node struct {
	Kind     Kind
	Type     reflect.Type // never a pointer
	Bits     int          // of Int, Uint and Float
	Nullable bool         // null is taken, too
	Rules    Rules
	Elem     *Node   // of Array and Map
	Names    *Node   // of Map: what the names of members must be, nil for any
	Struct   *Struct // of Object
	As       *Node   // of Custom: the JSON of the type, as Describe has it; nil for not known
	Meta     Meta

	decodes func([]byte) error // Text, Quoted and Custom: whether the type takes it; nil for not asked
}

// A Struct is what a struct type takes as members. There is one for each type, which
// makes recursion possible.
type Struct struct {
	Type    reflect.Type
	Members []Member

	Unknown Unknown // what becomes of other members

	index    map[string]int
	longest  int  // bytes of the longest name, each of them escaped
	required bits // in the order of Members
	defaults bool // some member has a default
}

// Unknown says what requests may have beside the members of a struct.
type Unknown uint8

const (
	UnknownByReport Unknown = iota // what the report says
	UnknownRefused
	UnknownIgnored
)

// A Member is one member of an object.
type Member struct {
	Name      string
	Index     []int // of the field, as for reflect.Value.FieldByIndex
	Node      *Node
	Required  bool // in input
	Always    bool // in output
	Default   []byte
	Dependent []string // the members that must be there with this one

	quoted   []byte // the name as the content of a JSON string
	byAbsent string // the member with its default, as JSON; "" for none
}

// Meta is what people are told of a node.
type Meta struct {
	Title, Description    string
	Example               []byte // JSON, nil for none
	Deprecated            bool
	ReadOnly, WriteOnly   bool
	ContentType, Encoding string // of strings that hold something else
}

// Member returns the member of the given name, nil when there is none.
func (s *Struct) Member(name string) *Member {
	if i, ok := s.index[name]; ok {
		return &s.Members[i]
	}
	return nil
}

// find is Member for bytes, and gives the number of the member; -1 for none.
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

// bits is a set of small numbers.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bits) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

// Ignores reports whether the struct takes unknown members, byDefault being what holds for structs
// that do not say it themselves.
func (s *Struct) Ignores(byDefault bool) bool {
	return s.Unknown == UnknownIgnored || byDefault && s.Unknown == UnknownByReport
}

// IgnoresUnknown reports whether some of the structs that the node leads to take unknown members,
// and whether all do.
func (n *Node) IgnoresUnknown(byDefault bool) (some, all bool) {
	all = true
	n.structs(map[*Struct]bool{}, func(s *Struct) {
		ignores := s.Ignores(byDefault)
		some, all = some || ignores, all && ignores
	})
	return some, all && some
}

// structs calls f for each struct that the node leads to.
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

// What the node is called, for messages.
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

// IsText reports whether the node takes strings.
func (n *Node) IsText() bool {
	switch n.Kind {
	case String, Bytes, Text, Quoted:
		return true
	}
	return false
}

// HasRules reports whether a value of the right type can still be refused.
func (n *Node) HasRules() bool { return n.Rules.any || n.decodes != nil || n.As != nil }

// RunsCode reports whether reading a value calls methods of the user's types.
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
