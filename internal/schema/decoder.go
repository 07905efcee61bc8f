package schema

import (
	"errors"
	"math"
	"reflect"
	"strconv"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// Decoder compiles a decoder for values of type t, which n is the schema of, that
// takes nothing that Check would refuse: the rules are looked at as values arrive. It
// may refuse a little that Check takes. Members that are read-only are refused or ignored. The
// error says that there is none for such a type: some rule cannot be checked so.
func (n *Node) Decoder(t reflect.Type, ignoreReadOnly bool) (*jsonwire.Decoder, error) {
	r := ruler{structs: map[reflect.Type]*Struct{}, ignoreReadOnly: ignoreReadOnly}
	if !r.gather(n) {
		return nil, errors.New("rules that are checked before decoding alone")
	}
	return jsonwire.Compile(t, rulesOf(n), r, jsonwire.Strictness{RefuseNull: true})
}

// IgnoringDecoder compiles a decoder for what Check has taken with members that are ignored: unknown
// ones, also those whose names differ in case from names that are known, and, if readOnly says so,
// those that are read-only. Its limits are IgnoringLimits.
func IgnoringDecoder(t reflect.Type, readOnly bool) (*jsonwire.Decoder, error) {
	if !readOnly {
		return jsonwire.Compile(t, nil, nil, jsonwire.Strictness{})
	}
	return jsonwire.Compile(t, nil, readOnlyRuler{}, jsonwire.Strictness{})
}

// IgnoringLimits are those of an IgnoringDecoder.
var IgnoringLimits = jsonwire.Limits{CaseSensitive: true}

// readOnlyRuler tells a decoder's compiler which members are read-only, and nothing else.
type readOnlyRuler struct{}

// Member implements jsonwire.Ruler.
func (readOnlyRuler) Member(object reflect.Type, name string, _ reflect.StructField) (rules jsonwire.MemberRules, err error) {
	node, err := Of(object)
	if err != nil || node.Struct == nil {
		return rules, err
	}
	if m := node.Struct.Member(name); m != nil && m.Node.Meta.ReadOnly {
		rules.Ignored, rules.Default = true, m.Default
	}
	return rules, nil
}

// Type implements jsonwire.Ruler.
func (readOnlyRuler) Type(reflect.Type) (rules jsonwire.TypeRules, err error) { return rules, nil }

// DecoderLimits are what Check refuses of any text, maxElements being those of its
// report. With ignoreUnknown they are for texts whose structs all take unknown members.
func DecoderLimits(maxElements int, ignoreUnknown bool) jsonwire.Limits {
	return jsonwire.Limits{
		UnknownMembers: !ignoreUnknown, DuplicateMembers: true, InvalidUTF8: true, CaseSensitive: true, FractionlessFloat: true, Underflow: true,
		MaxDepth: MaxDepth, MaxNumber: MaxNumber, MaxElements: maxElements,
	}.Filled()
}

// ruler tells a decoder's compiler the rules of the structs that a node leads to.
type ruler struct {
	structs        map[reflect.Type]*Struct
	ignoreReadOnly bool
}

// gather notes the structs; false when some rule is beyond a decoder.
func (r ruler) gather(n *Node) bool {
	if n == nil {
		return true
	}
	if n.Names != nil || n.nests() || n.As != nil {
		return false // names that are no plain strings, and JSON that is looked at twice
	}
	if n.Kind == Array && n.Type != nil && n.Type.Kind() == reflect.Slice && n.Type.Elem().Kind() == reflect.Uint8 {
		return false // which encoding/json takes as base64, too
	}
	if n.Kind != Object {
		return r.gather(n.Elem)
	}
	if n.Rules.any || n.Struct == nil {
		return false
	}
	if r.structs[n.Struct.Type] != nil {
		return true
	}
	r.structs[n.Struct.Type] = n.Struct
	for i := range n.Struct.Members {
		if !r.gather(n.Struct.Members[i].Node) {
			return false
		}
	}
	return true
}

var errNoMember = errors.New("no member of the schema")

// Member implements jsonwire.Ruler.
func (r ruler) Member(object reflect.Type, name string, _ reflect.StructField) (rules jsonwire.MemberRules, err error) {
	s := r.structs[object]
	if s == nil {
		return rules, errNoMember
	}
	m := s.Member(name)
	if m == nil {
		return rules, errNoMember
	}
	if own := rulesOf(m.Node); own != nil {
		rules.Rules = *own
	}
	if m.Required {
		rules.Required = "required"
	}
	rules.Default = m.Default
	if m.Node.Meta.ReadOnly {
		rules.Refused, rules.Ignored = !r.ignoreReadOnly, r.ignoreReadOnly
	}
	for _, other := range m.Dependent {
		rules.Requires = append(rules.Requires, jsonwire.Requirement{Name: other, Rule: "dependentRequired"})
	}
	return rules, nil
}

// Type implements jsonwire.Ruler: the rules of types are those of their nodes.
func (ruler) Type(reflect.Type) (rules jsonwire.TypeRules, err error) { return rules, nil }

// rulesOf are the rules of a node and its elements, nil for none.
func rulesOf(n *Node) *jsonwire.Rules {
	if n == nil || n.Kind == Object {
		return nil
	}
	rules := &jsonwire.Rules{Checks: n.checks(), Elem: rulesOf(n.Elem)}
	if len(rules.Checks) == 0 && rules.Elem == nil {
		return nil
	}
	return rules
}

// checks are the rules of a node alone.
func (n *Node) checks() (list []jsonwire.Check) {
	r := &n.Rules
	switch n.Kind {
	case String:
		return r.textChecks()
	case Array, Map:
		least, most := r.MinItems, r.MaxItems
		if n.Kind == Map {
			least, most = r.MinProperties, r.MaxProperties
		}
		if least.Set || most.Set {
			if !most.Set {
				most.N = math.MaxInt
			}
			if !least.Set {
				least.N = 0
			}
			list = append(list, jsonwire.Count("count", least.N, most.N))
		}
		if r.UniqueItems {
			list = append(list, jsonwire.Raw("uniqueItems", func(text []byte) bool { return !repeats(text) }))
		}
		if r.enum != nil {
			list = append(list, jsonwire.Raw("enum", r.hasValue))
		}
		return list
	case Int, Uint:
		if r.enum == nil && (!r.MultipleOf.set || r.MultipleOf.small && n.Kind == Int) {
			return n.integerChecks()
		}
	case Bool, Float, Any, Custom:
		if !r.any {
			return nil
		}
	case Text:
		if !r.any && n.decodes != nil {
			return nil
		}
	}
	// json.Number, base64 and the option «string» are stricter in a schema.
	alone := *n
	if n.Kind != Quoted {
		alone.decodes = nil // the decoder calls the type's methods itself
	}
	if n.Kind == Float && r.enum == nil && !r.MultipleOf.set && r.check == nil {
		low, high := r.roundedBounds(n.Bits)
		return append(list, jsonwire.FloatRange("number", low, high, true, true).OrRaw(alone.takes))
	}
	return append(list, jsonwire.Raw("rules", alone.takes))
}

// textChecks are the rules of a string.
func (r *Rules) textChecks() (list []jsonwire.Check) {
	if least, most := r.MinLength, r.MaxLength; least.Set || most.Set {
		if !most.Set {
			most.N = math.MaxInt
		}
		if !least.Set {
			least.N = 0
		}
		list = append(list, jsonwire.Length("length", least.N, most.N))
	}
	if r.Pattern != nil {
		list = append(list, jsonwire.Text("pattern", r.Pattern.MatchString))
	}
	if r.enum != nil {
		list = append(list, jsonwire.Text("enum", func(text string) bool { return r.enum[text] }))
	}
	if r.check != nil {
		list = append(list, jsonwire.Text("format", r.check))
	}
	return list
}

// integerChecks are the rules of an integer without enum; multipleOf must be small, and
// the integer have a sign.
func (n *Node) integerChecks() (list []jsonwire.Check) {
	r := &n.Rules
	if !r.numeric {
		return nil
	}
	if n.Kind == Uint {
		least, most, _ := r.between(0, math.MaxUint64, (*Bound).compareUint)
		return append(list, jsonwire.UintRange("number", least, most))
	}
	least, most, _ := r.betweenSigned(math.MinInt64, math.MaxInt64)
	list = append(list, jsonwire.IntRange("number", least, most))
	if step := r.MultipleOf; step.set {
		list = append(list, jsonwire.Int("multipleOf", func(v int64) bool { return v%step.integer == 0 }))
	}
	return list
}

// roundedBounds are the bounds of a number as floats of some bits: a number that lies
// between them when it is rounded in the same way, and is neither, keeps them.
func (r *Rules) roundedBounds(bits int) (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	for _, b := range []*Bound{&r.Minimum, &r.ExclusiveMinimum} {
		if b.set {
			f, _ := strconv.ParseFloat(b.Text, bits) // infinite where it is too large
			low = max(low, f)
		}
	}
	for _, b := range []*Bound{&r.Maximum, &r.ExclusiveMaximum} {
		if b.set {
			f, _ := strconv.ParseFloat(b.Text, bits)
			high = min(high, f)
		}
	}
	return low, high
}

// takes reports whether a text, which is well-formed, keeps the rules.
func (n *Node) takes(text []byte) bool {
	c := checkers.Get().(*checker)
	c.body, c.pos, c.bare, c.report, c.path = text, 0, true, &c.alone, c.steps[:0]
	c.left = -1
	c.value(n)
	ok := !c.broken
	c.alone.Reset()
	c.release()
	return ok
}
