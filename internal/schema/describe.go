package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// A description defines the JSON of a type that has JSON methods: it is the JSON of another type,
// with the rules and annotations of tags.
type description struct {
	as   reflect.Type
	tags Tags
}

// described has the descriptions by type. It is guarded by the mutex of the variable compiled.
var described = map[reflect.Type]description{}

// Describe sets the description of t, a type with JSON methods, to the JSON of another type, the
// argument as, with the rules and annotations of tag. It returns an error if t cannot have this
// description.
func Describe(t, as reflect.Type, tag reflect.StructTag) error {
	compiled.Lock()
	defer compiled.Unlock()
	_, twice := described[t]
	switch {
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface || t.Name() == "":
		return errors.New("it must be a named type other than a pointer or an interface")
	case !codesItself(t) || t == timeType || t == rawType || t == numberType:
		return errors.New("its JSON is known: only a type with methods such as MarshalJSON or MarshalText needs a description")
	case t == as:
		return errors.New("the description is the type itself")
	case twice:
		return errors.New("it has a description already")
	case compiled.nodes[t] != nil:
		return errors.New("an operation with the type is registered already: describe the type before, in an init function")
	}
	tags, err := ParseTags(tag)
	if err != nil {
		return err
	}
	described[t] = description{as, tags}
	c := &compiler{nodes: map[reflect.Type]*Node{}, busy: map[reflect.Type]bool{}}
	if _, err := c.node(t); err != nil {
		delete(described, t)
		return err
	}
	return nil
}

// describe sets the description of a node, if the type of the node has one.
func (c *compiler) describe(n *Node) error {
	d, ok := described[n.Type]
	if !ok {
		return nil
	}
	if n.Kind == Custom { // the description may refer to the described type
		n.As = new(Node)
		c.nodes[n.Type] = n
	}
	as, err := c.node(d.as)
	if err != nil {
		return err
	}
	if as, err = as.Tagged(d.tags); err != nil {
		return err
	}
	switch {
	case n.Kind == Custom:
		*n.As = *as
		n.As.Type = n.Type // the name of the type in documents
		n.Nullable, n.Meta = as.Nullable, as.Meta
	case as.Kind == String || as.Kind == Text && as.decodes == nil:
		n.Rules, n.Meta = as.Rules, as.Meta
	default:
		return fmt.Errorf("%s is written by MarshalText as a string: describe it as a string", TypeText(n.Type))
	}
	return nil
}

// described checks a value against the description of its type, and then by the type's methods. If
// the value is inside another value with a description, it does not call the methods, because the
// methods of the outer type call them. If it called them, the innermost part of a nested value
// would be decoded once for each level.
func (c *checker) described(n *Node) bool {
	c.pos = skipSpace(c.body, c.pos)
	start, before, inside := c.pos, c.broken, c.inside
	c.broken, c.inside = false, true
	read := c.value(n.As)
	c.inside = inside
	fits := read && !c.broken
	c.broken = c.broken || before
	if !fits {
		return read
	}
	text := c.body[start:c.pos]
	c.enum(n, text)
	if !inside && n.decodes != nil && n.decodes(text) != nil {
		c.violate("type", n.typeName())
	}
	return true
}

// asText returns a node that describes a type as a string, for a type whose tags have a format. It
// returns an error if the type is encoded as another kind of value.
func (n *Node) asText() (*Node, error) {
	if zero, err := json.Marshal(reflect.New(n.Type).Interface()); err == nil && zero[0] != '"' && !bytes.Equal(zero, []byte("null")) {
		return nil, fmt.Errorf("the rule applies to strings, but %s is written as %.40s: describe its JSON with typed.SchemaAs", TypeText(n.Type), zero)
	}
	return &Node{Kind: String, Type: n.Type}, nil
}
