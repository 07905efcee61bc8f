package schema

import (
	"errors"
	"math"
	"reflect"
	"strconv"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// Decoder compiles a decoder for values of type t. n must be the node of t. The decoder checks the rules while it
// decodes. It refuses every text that Check refuses, and also a few texts that Check accepts. It ignores read-only
// members if ignoreReadOnly is true, and otherwise refuses them. Decoder returns an error if the type has a rule
// that a decoder cannot check.
func (n *Node) Decoder(t reflect.Type, ignoreReadOnly bool) (*jsonwire.Decoder, error) {
	r := ruler{structs: map[reflect.Type]*Struct{}, ignoreReadOnly: ignoreReadOnly}
	if !r.gather(n) {
		return nil, errors.New("the rules can only be checked before decoding")
	}
	return jsonwire.Compile(t, rulesOf(n), r, jsonwire.Strictness{RefuseNull: true})
}

// IgnoringDecoder compiles a decoder for text that Check has accepted although it has members to ignore. The
// decoder ignores unknown members, including members whose names differ from known names only in case. If readOnly
// is true, it also ignores read-only members. Use IgnoringLimits with this decoder.
func IgnoringDecoder(t reflect.Type, readOnly bool) (*jsonwire.Decoder, error) {
	if !readOnly {
		return jsonwire.Compile(t, nil, nil, jsonwire.Strictness{})
	}
	return jsonwire.Compile(t, nil, readOnlyRuler{}, jsonwire.Strictness{})
}

// IgnoringLimits are the limits for the decoders of IgnoringDecoder.
var IgnoringLimits = jsonwire.Limits{CaseSensitive: true}

// readOnlyRuler is a jsonwire.Ruler that provides the rules for read-only members and no other rules.
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

// DecoderLimits returns limits for the decoders of Node.Decoder. They refuse only texts that Check refuses.
// maxElements is Report.MaxElements. ignoreUnknown must be true only if all structs of the type accept unknown
// members.
func DecoderLimits(maxElements int, ignoreUnknown bool) jsonwire.Limits {
	return jsonwire.Limits{
		UnknownMembers: !ignoreUnknown, DuplicateMembers: true, InvalidUTF8: true, CaseSensitive: true, FractionlessFloat: true, Underflow: true,
		MaxDepth: MaxDepth, MaxNumber: MaxNumber, MaxElements: maxElements,
	}.Filled()
}

// ruler is a jsonwire.Ruler that provides the rules of the structs in a node.
type ruler struct {
	structs        map[reflect.Type]*Struct
	ignoreReadOnly bool
}

// gather collects the structs of n in r.structs. It returns false if a node has a rule that a decoder cannot
// check.
func (r ruler) gather(n *Node) bool {
	if n == nil {
		return true
	}
	if n.Names != nil || n.nests() || n.As != nil {
		// A decoder cannot check rules for the names of a map, rules of a recursive type that read a value as a whole (see nests),
		// and rules from the description of a type (n.As).
		return false
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

// rulesOf returns the rules of a node and of its elements, or nil if there are none.
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

// checks returns the rules of a node as checks of package jsonwire. It does not return the rules of its elements.
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
	// All other rules are checked by running the node on the JSON text. This includes json.Number, base64 and the
	// option "string", for which a schema is stricter than encoding/json.
	standalone := *n
	if n.Kind != Quoted {
		standalone.decodes = nil // the decoder calls the type's methods
	}
	if n.Kind == Float && r.enum == nil && !r.MultipleOf.set && r.check == nil {
		low, high := r.roundedBounds(n.Bits)
		return append(list, jsonwire.FloatRange(low, high, true, true).OrRaw(standalone.takes))
	}
	return append(list, jsonwire.Raw(standalone.takes))
}

// textChecks returns the checks of a string.
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

// integerChecks returns the checks of an integer without enum. If the rules have a MultipleOf, it must be an
// integer that fits an int64, and the type must be signed.
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

// roundedBounds returns the bounds of a number, rounded to floats with the given number of bits. A number that is
// strictly between the rounded bounds after it was rounded satisfies the bounds.
func (r *Rules) roundedBounds(bits int) (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	for _, b := range []*Bound{&r.Minimum, &r.ExclusiveMinimum} {
		if b.set {
			f, _ := strconv.ParseFloat(b.Text, bits) // infinite for a number that is too large
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

// takes reports whether a well-formed text satisfies the rules of the node.
func (n *Node) takes(text []byte) bool {
	c := checkers.Get().(*checker)
	c.body, c.pos, c.bare, c.report, c.path = text, 0, true, &c.discard, c.steps[:0]
	c.left = -1
	c.value(n)
	ok := !c.broken
	c.discard.Reset()
	c.release()
	return ok
}
