package schema

import (
	"errors"
	"math"
	"reflect"
	"strconv"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// Decoder compiles a decoder for values of type t, whose schema is n. The decoder checks the rules
// while it decodes. It never accepts a value that Check refuses, but may refuse a few values that
// Check accepts. It refuses or ignores read-only members. The error reports that a rule of the type
// cannot be checked in this way.
func (n *Node) Decoder(t reflect.Type, ignoreReadOnly bool) (*jsonwire.Decoder, error) {
	r := ruler{structs: map[reflect.Type]*Struct{}, ignoreReadOnly: ignoreReadOnly}
	if !r.gather(n) {
		return nil, errors.New("the rules can only be checked before decoding")
	}
	return jsonwire.Compile(t, rulesOf(n), r, jsonwire.Strictness{RefuseNull: true})
}

// IgnoringDecoder compiles a decoder for text that Check has accepted with ignored members. It
// ignores unknown members, including those whose names differ from known names in case only, and
// read-only members if readOnly is true. Use it with IgnoringLimits.
func IgnoringDecoder(t reflect.Type, readOnly bool) (*jsonwire.Decoder, error) {
	if !readOnly {
		return jsonwire.Compile(t, nil, nil, jsonwire.Strictness{})
	}
	return jsonwire.Compile(t, nil, readOnlyRuler{}, jsonwire.Strictness{})
}

// IgnoringLimits are the limits for an IgnoringDecoder.
var IgnoringLimits = jsonwire.Limits{CaseSensitive: true}

// readOnlyRuler provides only the read-only members to a decoder's compiler.
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

// DecoderLimits returns limits that refuse only texts that Check refuses too. maxElements is that of the report. If
// ignoreUnknown is true, the limits are for types whose structs all accept unknown members.
func DecoderLimits(maxElements int, ignoreUnknown bool) jsonwire.Limits {
	return jsonwire.Limits{
		UnknownMembers: !ignoreUnknown, DuplicateMembers: true, InvalidUTF8: true, CaseSensitive: true, FractionlessFloat: true, Underflow: true,
		MaxDepth: MaxDepth, MaxNumber: MaxNumber, MaxElements: maxElements,
	}.Filled()
}

// ruler provides the rules of the structs in a node to a decoder's compiler.
type ruler struct {
	structs        map[reflect.Type]*Struct
	ignoreReadOnly bool
}

// gather collects the structs. It returns false if a decoder cannot check some rule.
func (r ruler) gather(n *Node) bool {
	if n == nil {
		return true
	}
	if n.Names != nil || n.nests() || n.As != nil {
		return false // a decoder cannot check rules for names, or JSON that is checked twice
	}
	if n.Kind == Array && n.Type != nil && n.Type.Kind() == reflect.Slice && n.Type.Elem().Kind() == reflect.Uint8 {
		return false // encoding/json also accepts base64 for this type
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

var errNoMember = errors.New("the schema has no such member")

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
	rules.Required, rules.Default = m.Required, m.Default
	if m.Node.Meta.ReadOnly {
		rules.Refused, rules.Ignored = !r.ignoreReadOnly, r.ignoreReadOnly
	}
	rules.Requires = m.Dependent
	return rules, nil
}

// rulesOf returns the rules of a node and its elements, or nil for none.
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

// checks returns the rules of a node without those of its elements.
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
			list = append(list, jsonwire.Count(least.N, most.N))
		}
		if r.UniqueItems {
			list = append(list, jsonwire.Raw(func(text []byte) bool { return !repeats(text) }))
		}
		if r.enum != nil {
			list = append(list, jsonwire.Raw(r.hasValue))
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
	// In a schema, json.Number, base64 and the option «string» are stricter than in encoding/json.
	alone := *n
	if n.Kind != Quoted {
		alone.decodes = nil // the decoder itself calls the type's methods
	}
	if n.Kind == Float && r.enum == nil && !r.MultipleOf.set && r.check == nil {
		low, high := r.roundedBounds(n.Bits)
		return append(list, jsonwire.FloatRange(low, high, true, true).OrRaw(alone.takes))
	}
	return append(list, jsonwire.Raw(alone.takes))
}

// textChecks returns the rules of a string.
func (r *Rules) textChecks() (list []jsonwire.Check) {
	if least, most := r.MinLength, r.MaxLength; least.Set || most.Set {
		if !most.Set {
			most.N = math.MaxInt
		}
		if !least.Set {
			least.N = 0
		}
		list = append(list, jsonwire.Length(least.N, most.N))
	}
	if r.Pattern != nil {
		list = append(list, jsonwire.Text(r.Pattern.MatchString))
	}
	if r.enum != nil {
		list = append(list, jsonwire.Text(func(text string) bool { return r.enum[text] }))
	}
	if r.check != nil {
		list = append(list, jsonwire.Text(r.check))
	}
	return list
}

// integerChecks returns the rules of an integer without enum. A multipleOf rule must be an integer
// that fits an int64, and the type must be signed.
func (n *Node) integerChecks() (list []jsonwire.Check) {
	r := &n.Rules
	if !r.numeric {
		return nil
	}
	if n.Kind == Uint {
		least, most, _ := r.between(0, math.MaxUint64, (*Bound).compareUint)
		return append(list, jsonwire.UintRange(least, most))
	}
	least, most, _ := r.betweenSigned(math.MinInt64, math.MaxInt64)
	list = append(list, jsonwire.IntRange(least, most))
	if step := r.MultipleOf; step.set {
		list = append(list, jsonwire.Int(func(v int64) bool { return v%step.integer == 0 }))
	}
	return list
}

// roundedBounds returns the bounds of a number, rounded to floats of the given size in bits. A
// number that is rounded in the same way and lies strictly between them meets the bounds.
func (r *Rules) roundedBounds(bits int) (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	for _, b := range []*Bound{&r.Minimum, &r.ExclusiveMinimum} {
		if b.set {
			f, _ := strconv.ParseFloat(b.Text, bits) // infinite if it is too large
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

// takes reports whether a well-formed text satisfies the rules.
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
