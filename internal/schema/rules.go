package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Rules are the constraints of a node in the terms of JSON Schema. The zero Rules has no constraints.
type Rules struct {
	Minimum, Maximum, ExclusiveMinimum, ExclusiveMaximum, MultipleOf Bound
	MinLength, MaxLength, MinItems, MaxItems                         Count
	MinProperties, MaxProperties                                     Count
	Pattern                                                          *regexp.Regexp
	Format                                                           string
	UniqueItems                                                      bool
	Enum                                                             []json.RawMessage

	check    func(string) bool // check of Format
	enum     map[string]bool   // permitted strings; nil without enum, and empty if the values are not strings
	values   map[sum]bool      // permitted values that are not strings
	enumText string            // permitted values for messages
	numeric  bool              // a rule for numbers or enum is set
	any      bool              // at least one rule is set
}

// A Count is a limit on a length or on a number of elements.
type Count struct {
	N   int
	Set bool
}

func (r *Rules) hasText(text []byte) bool  { return r.enum[string(text)] }
func (r *Rules) hasValue(json []byte) bool { return r.values[sumOfValue(json)] }

// ruleNames maps the name of each rule that a tag may set to the kinds to which the rule applies.
var ruleNames = map[string][]Kind{
	"minimum": {Int, Uint, Float, Number}, "maximum": {Int, Uint, Float, Number},
	"exclusiveMinimum": {Int, Uint, Float, Number}, "exclusiveMaximum": {Int, Uint, Float, Number},
	"multipleOf": {Int, Uint, Float, Number},
	"minLength":  {String, Text}, "maxLength": {String, Text}, "pattern": {String, Text},
	"format":   {String, Text, Int, Uint, Float, Number},
	"enum":     {String, Text, Int, Uint, Float, Number, Bool},
	"minItems": {Array}, "maxItems": {Array}, "uniqueItems": {Array},
	"minProperties": {Map, Object}, "maxProperties": {Map, Object},
}

// sortedRules has the names of the rules in order, so that the first error does not vary between runs.
var sortedRules = func() []string {
	names := make([]string, 0, len(ruleNames))
	for name := range ruleNames {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}()

// IsRule reports whether name is the name of a rule that a tag may set.
func IsRule(name string) bool { return ruleNames[name] != nil || name == unknownTag }

// annotations has the names of the tags that set the fields of Meta.
var annotations = []string{"title", "description", "doc", "example", "deprecated", "readOnly", "writeOnly", "contentType"}

// Tagged returns the node with the rules and annotations of a field's tags. If there are any tags, the
// result is a copy of the node. Rules with the prefix "items." apply to elements, rules with
// "additionalProperties." to the values of a map, and rules with "propertyNames." to the names.
func (n *Node) Tagged(tags Tags) (*Node, error) {
	if err := tags.noDirection(""); err != nil {
		return nil, err
	}
	return n.tagged(tags, "")
}

// noDirection returns an error if the tags contain readOnly or writeOnly after the prefix. It is called
// where these tags would have no effect.
func (t Tags) noDirection(prefix string) error {
	for _, name := range []string{"readOnly", "writeOnly"} {
		if _, ok := t[prefix+name]; ok {
			return fmt.Errorf("%s%s applies only to members of a JSON object", prefix, name)
		}
	}
	return nil
}

func (n *Node) tagged(tags Tags, prefix string) (*Node, error) {
	if !tags.hasAny(prefix) {
		return n, nil
	}
	if _, ok := tags[prefix+unknownTag]; ok {
		return nil, fmt.Errorf("%s%s is allowed only in the tag of a struct's blank field: _ struct{} `%[2]s:\"true\"`", prefix, unknownTag)
	}
	with := *n
	if n.Kind == Custom {
		return with.describedBy(tags, prefix)
	}
	for _, name := range sortedRules {
		text, ok := tags[prefix+name]
		if !ok {
			continue
		}
		if !slices.Contains(ruleNames[name], n.Kind) {
			return nil, fmt.Errorf("%s%s does not apply to %s", prefix, name, article(n.wanted())+n.wanted())
		}
		if err := with.Rules.set(name, text, n); err != nil {
			return nil, fmt.Errorf("%s%s:%q: %w", prefix, name, text, err)
		}
	}
	for _, part := range []struct {
		prefix string
		node   **Node
		kind   Kind
	}{{"items.", &with.Elem, Array}, {"additionalProperties.", &with.Elem, Map}, {"propertyNames.", &with.Names, Map}} {
		if !tags.hasAny(prefix + part.prefix) {
			continue
		}
		if n.Kind != part.kind {
			return nil, fmt.Errorf("%s%s does not apply to %s", prefix, part.prefix, article(n.wanted())+n.wanted())
		}
		if *part.node == nil {
			*part.node = &Node{Kind: String, Type: reflect.TypeFor[string]()}
		}
		element, err := (*part.node).tagged(tags, prefix+part.prefix)
		if err != nil {
			return nil, err
		}
		*part.node = element
	}
	if err := with.setAnnotations(tags, prefix); err != nil {
		return nil, err
	}
	if err := with.consistent(); err != nil {
		return nil, err
	}
	return &with, nil
}

// describedBy does the work of the method tagged for a type with JSON methods. It changes n, which must be
// a copy. The rules apply to the type's description. If the type has no description, only the rule format
// is permitted. This rule describes the type as a string.
func (n *Node) describedBy(tags Tags, prefix string) (*Node, error) {
	for _, name := range sortedRules {
		if _, ok := tags[prefix+name]; !ok || n.As != nil {
			continue
		}
		if name != "format" {
			return nil, fmt.Errorf("%s%s does not apply to %s, whose methods encode and decode its JSON: describe the JSON with typed.SchemaAs, or check the rule in UnmarshalJSON",
				prefix, name, TypeText(n.Type))
		}
		var err error
		if n.As, err = n.asText(); err != nil {
			return nil, fmt.Errorf("%s%s:%q: %w", prefix, name, tags[prefix+name], err)
		}
	}
	for _, part := range []string{"items.", "additionalProperties.", "propertyNames."} {
		if n.As == nil && tags.hasAny(prefix+part) {
			return nil, fmt.Errorf("%s%s does not apply to %s, whose methods encode and decode its JSON: describe the JSON with typed.SchemaAs", prefix, part, TypeText(n.Type))
		}
	}
	if n.As != nil {
		rules := Tags{}
		for name, text := range tags {
			if after, ok := strings.CutPrefix(name, prefix); ok && (ruleNames[after] != nil || strings.Contains(after, ".")) {
				rules[name] = text
			}
		}
		var err error
		if n.As, err = n.As.tagged(rules, prefix); err != nil {
			return nil, err
		}
	}
	return n, n.setAnnotations(tags, prefix)
}

// set sets one rule from the text of its tag.
func (r *Rules) set(name, text string, n *Node) error {
	r.any = true
	switch name {
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		b, ok := newBound(text)
		if !ok {
			return errors.New("it must be a number in the syntax of JSON")
		}
		if name == "multipleOf" && (b.decimal.negative || b.decimal.isZero()) {
			return errors.New("it must be positive")
		}
		*map[string]*Bound{
			"minimum": &r.Minimum, "maximum": &r.Maximum, "exclusiveMinimum": &r.ExclusiveMinimum,
			"exclusiveMaximum": &r.ExclusiveMaximum, "multipleOf": &r.MultipleOf,
		}[name] = b
		r.numeric = true
	case "pattern":
		p, err := compilePattern(text)
		if err != nil {
			return err
		}
		r.Pattern = p
	case "format":
		f, ok := findFormat(text)
		if !ok {
			return errors.New("unknown format, see typed.Format")
		}
		r.Format, r.check = text, f.check
	case "enum":
		return r.setEnumText(text, n)
	case "uniqueItems":
		unique, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("it must be true or false")
		}
		r.UniqueItems = unique
	default:
		return r.setCount(name, text)
	}
	return nil
}

func (r *Rules) setCount(name, text string) error {
	count, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return errors.New("it must be an integer of at least 0")
	}
	*map[string]*Count{
		"minLength": &r.MinLength, "maxLength": &r.MaxLength, "minItems": &r.MinItems, "maxItems": &r.MaxItems,
		"minProperties": &r.MinProperties, "maxProperties": &r.MaxProperties,
	}[name] = Count{int(count), true}
	return nil
}

// setEnumText sets the permitted values from the text of a tag, such as "small,medium,large".
func (r *Rules) setEnumText(text string, n *Node) error {
	var values []json.RawMessage
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if n.IsText() {
			word = quoteJSON(word)
		}
		values = append(values, json.RawMessage(word))
	}
	return r.setEnum(values, n)
}

// setEnum sets the permitted values. It returns an error for a value that the node does not accept.
func (r *Rules) setEnum(values []json.RawMessage, n *Node) error {
	if len(values) == 0 {
		return errors.New("it has no values")
	}
	bare := Node{Kind: n.Kind, Type: n.Type, Bits: n.Bits, Elem: n.Elem, Names: n.Names, Struct: n.Struct, decodes: n.decodes}
	r.Enum, r.enum, r.values = values, map[string]bool{}, map[sum]bool{}
	var list []string
	for _, v := range values {
		report := Report{IgnoreReadOnly: true}
		if bare.Check(v, "", &report); !report.OK() {
			return fmt.Errorf("%s %s", v, report.List[0].Text())
		}
		twice := false
		if n.IsText() {
			var s string
			if err := json.Unmarshal(v, &s); err != nil {
				return err
			}
			twice, r.enum[s] = r.enum[s], true
		} else {
			key := sumOfValue(v)
			twice, r.values[key] = r.values[key], true
		}
		if twice {
			return fmt.Errorf("%s is repeated", v)
		}
		list = append(list, string(v))
	}
	r.enumText = strings.Join(list, ", ")
	r.numeric, r.any = true, true
	return nil
}

// consistent returns an error for rules that no value can satisfy.
func (n *Node) consistent() error {
	r := &n.Rules
	for _, pair := range []struct {
		name     string
		min, max Count
	}{{"Length", r.MinLength, r.MaxLength}, {"Items", r.MinItems, r.MaxItems}, {"Properties", r.MinProperties, r.MaxProperties}} {
		if pair.min.Set && pair.max.Set && pair.min.N > pair.max.N {
			return fmt.Errorf("min%s %d is more than max%s %d", pair.name, pair.min.N, pair.name, pair.max.N)
		}
	}
	if r.Minimum.set && r.Maximum.set && r.Minimum.decimal.compare(&r.Maximum.decimal) > 0 {
		return fmt.Errorf("minimum %s is more than maximum %s", r.Minimum.Text, r.Maximum.Text)
	}
	for _, pair := range []struct {
		minimum, maximum string
		least, most      *Bound
	}{
		{"exclusiveMinimum", "exclusiveMaximum", &r.ExclusiveMinimum, &r.ExclusiveMaximum},
		{"exclusiveMinimum", "maximum", &r.ExclusiveMinimum, &r.Maximum}, {"minimum", "exclusiveMaximum", &r.Minimum, &r.ExclusiveMaximum},
	} {
		if pair.least.set && pair.most.set && pair.least.decimal.compare(&pair.most.decimal) >= 0 {
			return fmt.Errorf("no number is between %s %s and %s %s", pair.minimum, pair.least.Text, pair.maximum, pair.most.Text)
		}
	}
	some := true
	switch {
	case !r.numeric:
	case n.Kind == Int:
		_, _, some = r.betweenSigned(-1<<(n.Bits-1), 1<<(n.Bits-1)-1)
	case n.Kind == Uint:
		_, _, some = r.between(0, 1<<n.Bits-1, (*Bound).compareUint)
	}
	if !some {
		return fmt.Errorf("no %s is within the bounds", IntegerFormat(n.Kind, n.Bits))
	}
	return nil
}

// setAnnotations sets the annotations from the tags with the prefix.
func (n *Node) setAnnotations(tags Tags, prefix string) error {
	m := &n.Meta
	if prefix != "" {
		if err := tags.noDirection(prefix); err != nil {
			return err
		}
	}
	m.Title = tags.or(prefix+"title", m.Title)
	m.Description = tags.or(prefix+"doc", tags.or(prefix+"description", m.Description))
	m.ContentType = tags.or(prefix+"contentType", m.ContentType)
	for name, flag := range map[string]*bool{"deprecated": &m.Deprecated, "readOnly": &m.ReadOnly, "writeOnly": &m.WriteOnly} {
		if text, ok := tags[prefix+name]; ok {
			v, err := strconv.ParseBool(text)
			if err != nil {
				return fmt.Errorf("%s:%q: it must be true or false", name, text)
			}
			*flag = v
		}
	}
	if text, ok := tags[prefix+"example"]; ok {
		example, err := n.Value(text)
		if err != nil {
			return fmt.Errorf("example:%q: %w", text, err)
		}
		m.Example = example
	}
	return nil
}

// Value returns the JSON of a value that is written in a tag, such as a default or an example. The value
// must satisfy the node's rules. A string is written without quotation marks. An array may be written as
// values that are separated by commas.
func (n *Node) Value(text string) ([]byte, error) {
	value := []byte(text)
	if n.IsText() && !(n.Nullable && text == "null") {
		value = []byte(quoteJSON(text))
	}
	switch {
	case n.As != nil && !(n.Nullable && text == "null"):
		var err error
		if value, err = n.As.Value(text); err != nil {
			return nil, err
		}
	case n.Kind == Custom && (!json.Valid(value) || n.decodes != nil && n.decodes(value) != nil):
		value = []byte(quoteJSON(text)) // the type probably encodes itself as a string
	}
	if n.Kind == Array && (text == "" || text[0] != '[') && n.Elem != nil {
		list := []json.RawMessage{}
		for word := range strings.SplitSeq(text, ",") {
			element, err := n.Elem.Value(strings.TrimSpace(word))
			if err != nil {
				return nil, err
			}
			list = append(list, element)
		}
		value, _ = json.Marshal(list)
	}
	report := Report{IgnoreReadOnly: true}
	plain := n.Check(value, "", &report)
	if !report.OK() {
		v := report.List[0]
		if n.Kind == Custom {
			return nil, fmt.Errorf("UnmarshalJSON of %s refuses %s: write the JSON of a value", TypeText(n.Type), value)
		}
		return nil, fmt.Errorf("%s %s", strings.TrimSpace("the value "+v.Pointer), v.Text())
	}
	return plain, nil
}
