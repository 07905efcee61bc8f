package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/dunlinhttp/dunlin/internal/schema"
)

// A direction says whether values of a type are read from requests or written to answers. The
// required members may differ.
type direction int

const (
	input direction = iota
	output
	directions
)

// component is a type that a document describes under a name of its own.
type component struct {
	node  *schema.Node
	used  [directions]bool
	split bool // the schemas for input and output differ
}

// isComponent reports whether a node is written as a reference to a component. Such nodes are named
// structs and types with an Enum method.
func isComponent(n *schema.Node) (*schema.Node, bool) {
	if n.Type == nil || n.Type.Name() == "" {
		return nil, false
	}
	if n.Kind != schema.Object && (n.Rules.Enum == nil || n.Type.PkgPath() == "") {
		return nil, false
	}
	own, err := schema.Of(n.Type)
	if err == nil && own.As != nil {
		own = own.As
	}
	if err != nil || n.Kind != schema.Object && (len(own.Rules.Enum) == 0 || &own.Rules.Enum[0] != &n.Rules.Enum[0]) {
		return nil, false
	}
	return own, true
}

// collect records the types that the schema of a node needs.
func (g *generator) collect(n *schema.Node, d direction) {
	if n == nil {
		return
	}
	if n.As != nil {
		n = n.As
	}
	if own, ok := isComponent(n); ok {
		c := g.components[n.Type]
		if c == nil {
			c = &component{node: own}
			g.components[n.Type] = c
			g.types = append(g.types, n.Type)
		}
		if c.used[d] {
			return
		}
		c.used[d] = true
	}
	g.collect(n.Elem, d)
	g.collect(n.Names, d)
	if n.Struct != nil {
		for i := range n.Struct.Members {
			if m := &n.Struct.Members[i]; g.has(m, d) {
				g.collect(m.Node, d)
			}
		}
	}
}

// has reports whether a member exists in a direction. Requests have no read-only members, unless
// the app ignores these members. Answers have no write-only members.
func (g *generator) has(m *schema.Member, d direction) bool {
	if d == input {
		return !m.Node.Meta.ReadOnly || g.ignoreReadOnly
	}
	return !m.Node.Meta.WriteOnly
}

// splitTypes finds the types whose schemas for input and output differ. The schemas of a type
// differ if requests must not have unknown members, if its members differ in presence or in being
// required, or if it contains a type whose schemas differ.
func (g *generator) splitTypes() {
	for changed := true; changed; {
		changed = false
		for _, c := range g.components {
			if !c.split && c.used[input] && c.used[output] && g.differs(c.node, true) {
				c.split, changed = true, true
			}
		}
	}
}

func (g *generator) differs(n *schema.Node, top bool) bool {
	if n == nil {
		return false
	}
	if n.As != nil {
		n = n.As
	}
	if !top {
		if _, ok := isComponent(n); ok {
			return g.components[n.Type].split
		}
	}
	if n.Struct != nil {
		if !n.Struct.Ignores(g.ignoreUnknown) {
			return true // unknown members are refused in requests and permitted in answers
		}
		for i := range n.Struct.Members {
			m := &n.Struct.Members[i]
			if m.Required != m.Always || g.has(m, input) != g.has(m, output) || g.differs(m.Node, false) {
				return true
			}
		}
	}
	return g.differs(n.Elem, false)
}

// ref returns the name of the component for a type in a direction.
func (g *generator) ref(t reflect.Type, d direction) string {
	name := g.names[t]
	if d == input && g.components[t].split {
		name += "Input"
	}
	return name
}

// schema writes the schema of a node.
func (g *generator) schema(n *schema.Node, d direction) *object {
	if n == nil {
		return new(object)
	}
	return g.schemaAs(n, d, n.Meta, n.Nullable)
}

// schemaAs is the method schema with the annotations meta instead of those of n. nullable tells whether null is permitted.
func (g *generator) schemaAs(n *schema.Node, d direction, meta schema.Meta, nullable bool) *object {
	s := new(object)
	rules := n
	if n.As != nil {
		n = n.As
	}
	if own, ok := isComponent(n); ok {
		s.put("$ref", "#/components/schemas/"+g.ref(n.Type, d))
		g.rules(s, n, &own.Rules)
		meta = beyond(meta, &own.Meta)
	} else {
		s = g.plain(n, d)
	}
	if rules != n {
		g.rules(s, rules, nil) // rules from the type's method Enum
	}
	if nullable && n.Kind != schema.Any && n.Kind != schema.Custom {
		s = new(object).put("anyOf", []any{s, new(object).put("type", "null")})
	}
	g.notes(s, &meta)
	return s
}

// beyond returns the annotations in m that differ from own, the annotations of the type.
func beyond(m schema.Meta, own *schema.Meta) schema.Meta {
	if m.Title == own.Title {
		m.Title = ""
	}
	if m.Description == own.Description {
		m.Description = ""
	}
	if bytes.Equal(m.Example, own.Example) {
		m.Example = nil
	}
	m.Deprecated = m.Deprecated && !own.Deprecated
	m.ReadOnly, m.WriteOnly = m.ReadOnly && !own.ReadOnly, m.WriteOnly && !own.WriteOnly
	return m
}

// plain writes the schema of a node without a reference. The node is not a component, or its
// component is being written.
func (g *generator) plain(n *schema.Node, d direction) *object {
	s := new(object)
	switch n.Kind {
	case schema.Bool:
		s.put("type", "boolean")
	case schema.Int, schema.Uint:
		s.put("type", "integer")
		s.put("format", schema.IntegerFormat(n.Kind, n.Bits))
		if n.Kind == schema.Uint && !n.Rules.Minimum.IsSet() && !n.Rules.ExclusiveMinimum.IsSet() {
			s.put("minimum", 0)
		}
	case schema.Float:
		s.put("type", "number")
		s.put("format", map[int]string{32: "float", 64: "double"}[n.Bits])
	case schema.Number:
		s.put("type", "number")
	case schema.String, schema.Text, schema.Quoted:
		s.put("type", "string")
	case schema.Bytes:
		s.put("type", "string").put("contentEncoding", "base64")
	case schema.Array:
		s.put("type", "array").put("items", g.schema(n.Elem, d))
	case schema.Map:
		s.put("type", "object")
		if n.Names != nil {
			s.set("propertyNames", g.names_(n.Names))
		}
		s.put("additionalProperties", g.schema(n.Elem, d))
	case schema.Object:
		g.object(s, n.Struct, d)
	}
	g.rules(s, n, nil)
	return s
}

// names_ writes the schema of the names in a map. It omits the type, because names are always
// strings.
func (g *generator) names_(n *schema.Node) *object {
	s := new(object)
	g.rules(s, n, nil)
	return s
}

func (g *generator) object(s *object, t *schema.Struct, d direction) {
	s.put("type", "object")
	properties, required, dependent := new(object), []string{}, new(object)
	for i := range t.Members {
		m := &t.Members[i]
		if !g.has(m, d) {
			continue
		}
		p := g.schema(m.Node, d)
		if d == input && m.Default != nil {
			p.put("default", json.RawMessage(m.Default))
		}
		properties.put(m.Name, p)
		if d == input && m.Required || d == output && m.Always {
			required = append(required, m.Name)
		}
		if d == input || !m.Always {
			dependent.set(m.Name, m.Dependent)
		}
	}
	s.set("properties", properties).set("required", required)
	if d == input && !t.Ignores(g.ignoreUnknown) {
		s.put("additionalProperties", json.RawMessage("false")) // later versions may add members to answers
	}
	s.set("dependentRequired", dependent)
}

var noRules schema.Rules // must not be changed

// rules writes the rules of a node that differ from the rules in beyond.
func (g *generator) rules(s *object, n *schema.Node, beyond *schema.Rules) {
	r := &n.Rules
	if beyond == nil {
		beyond = &noRules
	}
	for _, b := range []struct {
		name      string
		own, base *schema.Bound
	}{
		{"minimum", &r.Minimum, &beyond.Minimum}, {"maximum", &r.Maximum, &beyond.Maximum},
		{"exclusiveMinimum", &r.ExclusiveMinimum, &beyond.ExclusiveMinimum}, {"exclusiveMaximum", &r.ExclusiveMaximum, &beyond.ExclusiveMaximum},
		{"multipleOf", &r.MultipleOf, &beyond.MultipleOf},
	} {
		if b.own.IsSet() && b.own.Text != b.base.Text {
			s.put(b.name, json.RawMessage(b.own.Text))
		}
	}
	for _, c := range []struct {
		name      string
		own, base schema.Count
	}{
		{"minLength", r.MinLength, beyond.MinLength}, {"maxLength", r.MaxLength, beyond.MaxLength},
		{"minItems", r.MinItems, beyond.MinItems}, {"maxItems", r.MaxItems, beyond.MaxItems},
		{"minProperties", r.MinProperties, beyond.MinProperties}, {"maxProperties", r.MaxProperties, beyond.MaxProperties},
	} {
		if c.own.Set && c.own != c.base {
			s.put(c.name, c.own.N)
		}
	}
	if r.Pattern != nil && r.Pattern != beyond.Pattern {
		s.put("pattern", r.Pattern.String())
	}
	if r.Format != "" && r.Format != beyond.Format && s.get("format") == nil {
		s.put("format", r.Format)
	}
	if r.UniqueItems {
		s.put("uniqueItems", true)
	}
	if len(r.Enum) > 0 && len(beyond.Enum) == 0 {
		list := make([]any, len(r.Enum))
		for i, v := range r.Enum {
			list[i] = v
		}
		s.put("enum", list)
	}
}

func (g *generator) notes(s *object, m *schema.Meta) {
	s.set("title", m.Title).set("description", m.Description)
	if m.Example != nil {
		s.put("examples", []any{json.RawMessage(m.Example)})
	}
	s.set("deprecated", m.Deprecated).set("readOnly", m.ReadOnly).set("writeOnly", m.WriteOnly)
}

// componentSchemas writes the schemas of all types to which references exist, and problems, sorted by name.
func (g *generator) componentSchemas(problems map[string]*object) (*object, error) {
	byName := map[string]*object{}
	for t, c := range g.components {
		for d := range directions {
			if !c.used[d] || d == output && c.used[input] && !c.split {
				continue
			}
			name := g.ref(t, d)
			if byName[name] != nil {
				return nil, fmt.Errorf("two types would be called %s in the document: rename one", name)
			}
			s := g.plain(c.node, d)
			g.notes(s, &c.node.Meta)
			byName[name] = s
		}
	}
	for name, s := range problems {
		byName[name] = s
	}
	all := new(object)
	for _, name := range sortedKeys(byName) {
		all.put(name, byName[name])
	}
	return all, nil
}
