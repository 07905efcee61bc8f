package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// field is a struct field that encoding/json encodes, with its index path.
type field struct {
	reflect.StructField
	name     string
	options  []string
	named    bool // the tag sets the name
	index    []int
	optional bool // the field is reached through an embedded pointer, which may be nil
}

// object compiles a struct type. Its fields and their names are those of encoding/json, except that two fields with the same
// name and precedence are an error.
func (c *compiler) object(n *Node) error {
	n.Kind = Object
	n.Struct = &Struct{Type: n.Type, index: map[string]int{}}
	fields, err := visible(n.Type)
	if err != nil {
		return err
	}
	s := n.Struct
	for i := range fields {
		m, err := c.member(&fields[i])
		if err != nil {
			return fmt.Errorf("field %s of %s: %w", fields[i].Name, TypeText(n.Type), err)
		}
		s.index[m.Name] = len(s.Members)
		s.longest = max(s.longest, len(`\u0000`)*len(m.Name))
		s.Members = append(s.Members, m)
	}
	s.required = newBits(len(s.Members))
	for i := range s.Members {
		m := &s.Members[i]
		if m.Required {
			s.required.set(i)
		}
		s.defaults = s.defaults || m.Default != nil
		for _, other := range m.Dependent {
			if s.Member(other) == nil {
				return fmt.Errorf("field %s of %s: dependentRequired names %q, which is not a member", fields[i].Name, TypeText(n.Type), other)
			}
		}
	}
	return n.ofBlank()
}

// ofBlank sets the rules and annotations in the tag of a struct's blank field, as in
//
//	_ struct{} `description:"A range of days"`
func (n *Node) ofBlank() error {
	for f := range n.Type.Fields() {
		if f.Name != "_" {
			continue
		}
		tags, err := ParseTags(f.Tag)
		if err != nil {
			return fmt.Errorf("field _ of %s: %w", TypeText(n.Type), err)
		}
		if err := n.Struct.setUnknown(tags); err != nil {
			return fmt.Errorf("field _ of %s: %w", TypeText(n.Type), err)
		}
		with, err := n.Tagged(tags)
		if err != nil {
			return fmt.Errorf("field _ of %s: %w", TypeText(n.Type), err)
		}
		n.Rules, n.Meta = with.Rules, with.Meta
	}
	return nil
}

// setUnknown sets s.Unknown according to the tag additionalProperties, and removes that tag from tags.
func (s *Struct) setUnknown(tags Tags) error {
	switch text, ok := tags[unknownTag]; {
	case !ok:
	case text == "true":
		s.Unknown = UnknownIgnored
	case text == "false":
		s.Unknown = UnknownRefused
	default:
		return fmt.Errorf("%s:%q: it must be true or false", unknownTag, text)
	}
	delete(tags, unknownTag)
	return nil
}

// member compiles one field.
func (c *compiler) member(f *field) (Member, error) {
	m := Member{Name: f.name, Index: f.index}
	node, err := c.node(f.Type)
	if err != nil {
		return m, err
	}
	if slices.Contains(f.options, "string") {
		if node, err = node.quoted(f.Type); err != nil {
			return m, err
		}
	}
	tags, err := ParseTags(f.Tag)
	if err != nil {
		return m, err
	}
	if m.Node, err = node.tagged(tags, ""); err != nil {
		return m, err
	}
	readOnly, writeOnly := m.Node.Meta.ReadOnly, m.Node.Meta.WriteOnly
	if readOnly && writeOnly {
		return m, errors.New("a member cannot be both readOnly and writeOnly")
	}
	empty, zero := slices.Contains(f.options, "omitempty"), slices.Contains(f.options, "omitzero")
	m.Required = !empty && !zero && !readOnly
	m.Always = !zero && !(empty && canBeEmpty(f.Type)) && !f.optional && !writeOnly
	if w, ok := WrappedBy(f.Type); ok && w.Optional {
		m.Required = false
		if !zero {
			return m, errors.New("a field that may be absent must have the option omitzero, otherwise it is written as null: `json:\"name,omitzero\"`")
		}
	}
	if text, ok := tags["default"]; ok {
		if m.Default, err = m.Node.Value(text); err != nil {
			return m, fmt.Errorf("default:%q: %w", text, err)
		}
		m.Required = false
	}
	m.quote()
	if text, ok := tags["dependentRequired"]; ok {
		for name := range strings.SplitSeq(text, ",") {
			m.Dependent = append(m.Dependent, strings.TrimSpace(name))
		}
	}
	return m, nil
}

// quote sets the JSON of the member's name and default.
func (m *Member) quote() {
	name := quoteJSON(m.Name)
	m.quoted = []byte(name[1 : len(name)-1])
	if m.Default != nil {
		m.byAbsent = name + ":" + string(m.Default)
	}
}

// canBeEmpty reports whether the option omitempty can omit a value of type t.
func canBeEmpty(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		return false
	case reflect.Array:
		return t.Len() == 0
	}
	return true
}

var (
	integerText = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	numberText  = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)
	boolText    = regexp.MustCompile(`^(true|false)$`)
)

// quoted returns the node of a field that has the option "string".
func (n *Node) quoted(t reflect.Type) (*Node, error) {
	q := &Node{Kind: Quoted, Type: n.Type, Bits: n.Bits, Nullable: n.Nullable}
	switch n.Kind {
	case Int, Uint:
		q.Rules.Pattern, q.Rules.Format = integerText, IntegerFormat(n.Kind, n.Bits)
	case Float:
		q.Rules.Pattern, q.Rules.Format = numberText, FloatFormat(n.Bits)
	case Bool:
		q.Rules.Pattern = boolText
	default:
		return nil, errors.New("the option «string» applies only to numbers and booleans")
	}
	q.Rules.any = true
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	q.decodes = func(text []byte) error {
		if !q.Rules.Pattern.Match(text) {
			return nil // the violation of the pattern is reported instead
		}
		return json.Unmarshal(text, reflect.New(t).Interface())
	}
	return q, nil
}

// visible returns the fields of a struct that encoding/json encodes and decodes, in the order of encoding/json.
func visible(t reflect.Type) ([]field, error) {
	var all []field
	if err := collect(t, nil, false, map[reflect.Type]bool{}, &all); err != nil {
		return nil, err
	}
	byName := map[string][]int{}
	for i := range all {
		byName[all[i].name] = append(byName[all[i].name], i)
	}
	var list []field
	for i := range all {
		winner, clash := dominant(all, byName[all[i].name])
		if clash >= 0 && byName[all[i].name][0] == i {
			return nil, fmt.Errorf("fields %s and %s of %s are both called %q in JSON",
				all[winner].Name, all[clash].Name, t, all[i].name)
		}
		if winner == i {
			list = append(list, all[i])
		}
	}
	return list, nil
}

// collect adds the fields of t and of the structs that are embedded in t.
func collect(t reflect.Type, index []int, optional bool, above map[reflect.Type]bool, all *[]field) error {
	if above[t] {
		return nil
	}
	above[t] = true
	defer delete(above, t)
	for i := range t.NumField() {
		sf := t.Field(i)
		tag := sf.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, rest, _ := strings.Cut(tag, ",")
		way := append(slices.Clip(index), i)
		inner, pointer := sf.Type, false
		if inner.Kind() == reflect.Pointer {
			inner, pointer = inner.Elem(), true
		}
		if sf.Anonymous && name == "" && inner.Kind() == reflect.Struct && !codesItself(inner) {
			if !sf.IsExported() && pointer {
				continue
			}
			tags, err := ParseTags(sf.Tag)
			if err == nil {
				err = tags.noDirection("")
			}
			if err == nil {
				err = collect(inner, way, optional || pointer, above, all)
			}
			if err != nil {
				return fmt.Errorf("field %s of %s: %w", sf.Name, TypeText(t), err)
			}
			continue
		}
		if !sf.IsExported() {
			continue
		}
		f := field{StructField: sf, name: name, named: name != "", index: way, optional: optional}
		if !f.named {
			f.name = sf.Name
		}
		if rest != "" {
			f.options = strings.Split(rest, ",")
		}
		*all = append(*all, f)
	}
	return nil
}

// dominant returns the field that takes precedence among fields with the same name. This is the field that is nested least
// deeply. If several fields are at that depth, it is the field whose tag sets the name. clash is another field with the same
// precedence, or -1.
func dominant(all []field, candidates []int) (winner, clash int) {
	winner, clash = candidates[0], -1
	for _, i := range candidates[1:] {
		a, b := &all[i], &all[winner]
		switch {
		case len(a.index) < len(b.index), len(a.index) == len(b.index) && a.named && !b.named:
			winner, clash = i, -1
		case len(a.index) == len(b.index) && a.named == b.named:
			clash = i
		}
	}
	return winner, clash
}
