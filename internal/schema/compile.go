package schema

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"
)

// Wrapped describes a wrapper: a type that adds absence or null to another type.
type Wrapped struct {
	Elem     reflect.Type
	Nullable bool // the wrapper may contain null
	Optional bool // the wrapper may be absent
}

// A Wrapper is a type that wraps another type. Wraps is called on the zero value.
type Wrapper interface{ Wraps() Wrapped }

var (
	wrapperType         = reflect.TypeFor[Wrapper]()
	marshalerType       = reflect.TypeFor[json.Marshaler]()
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textMarshalerType   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	timeType            = reflect.TypeFor[time.Time]()
	rawType             = reflect.TypeFor[json.RawMessage]()
	numberType          = reflect.TypeFor[json.Number]()
)

// WrappedBy returns the type that t wraps. It returns false if t is not a Wrapper.
func WrappedBy(t reflect.Type) (Wrapped, bool) {
	if !t.Implements(wrapperType) || t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return Wrapped{}, false
	}
	return reflect.Zero(t).Interface().(Wrapper).Wraps(), true
}

// compiled caches the nodes of all types that were compiled without error.
var compiled = struct {
	sync.Mutex
	nodes map[reflect.Type]*Node
}{nodes: map[reflect.Type]*Node{}}

// Of returns the node of a type, which it compiles on the first call. The error names the field
// that cannot be compiled.
func Of(t reflect.Type) (*Node, error) {
	compiled.Lock()
	defer compiled.Unlock()
	c := &compiler{nodes: map[reflect.Type]*Node{}, busy: map[reflect.Type]bool{}}
	n, err := c.node(t)
	if err != nil {
		return nil, err
	}
	for t, n := range c.nodes {
		compiled.nodes[t] = n
	}
	return n, nil
}

// compiler compiles a type and all types that it contains.
type compiler struct {
	nodes map[reflect.Type]*Node
	busy  map[reflect.Type]bool // types that are being compiled inside the innermost struct; these types must not contain themselves
}

func (c *compiler) node(t reflect.Type) (*Node, error) {
	if n := compiled.nodes[t]; n != nil {
		return n, nil
	}
	if c.busy[t] {
		return nil, fmt.Errorf("type %s contains itself without a struct in between", t)
	}
	if n := c.nodes[t]; n != nil {
		return n, nil // may be incomplete if t is recursive, because the compilation of t has begun but not ended
	}
	c.busy[t] = true
	defer delete(c.busy, t)
	n := &Node{Type: t}
	if t.Kind() == reflect.Struct {
		if _, wraps := WrappedBy(t); !wraps && !codesItself(t) {
			c.nodes[t] = n
			outside := c.busy
			c.busy = map[reflect.Type]bool{}
			err := c.object(n)
			c.busy = outside
			if err == nil {
				err = n.ownEnum()
			}
			return n, err
		}
	}
	if err := c.fill(n, t); err != nil {
		return nil, err
	}
	if err := n.ownEnum(); err != nil {
		return nil, err
	}
	c.nodes[t] = n
	return n, nil
}

// fill compiles a type that is not a plain struct: a type of another kind, a wrapper, or a struct with methods for JSON.
func (c *compiler) fill(n *Node, t reflect.Type) error {
	if t.Kind() == reflect.Pointer {
		elem, err := c.node(t.Elem())
		if err != nil {
			return err
		}
		*n = *elem
		n.Nullable = true
		return nil
	}
	if w, ok := WrappedBy(t); ok {
		elem, err := c.node(w.Elem)
		if err != nil {
			return err
		}
		nullable := n.Nullable || w.Nullable || elem.Nullable
		*n = *elem
		n.Nullable = nullable
		return nil
	}
	switch {
	case t == timeType:
		n.Kind, n.Rules.Format, n.Rules.check, n.Rules.any = Text, "date-time", isDateTime, true
		return nil
	case t == rawType:
		n.Kind, n.Type = Any, nil
		return nil
	case t == numberType:
		n.Kind = Number
		return nil
	case implements(t, unmarshalerType) || implements(t, marshalerType):
		n.Kind = Custom
		if implements(t, unmarshalerType) {
			n.decodes = func(text []byte) error { return json.Unmarshal(text, reflect.New(t).Interface()) }
		}
		return c.describe(n)
	case implements(t, textUnmarshalerType) || implements(t, textMarshalerType):
		n.Kind = Text
		if implements(t, textUnmarshalerType) {
			n.decodes = func(text []byte) error {
				return reflect.New(t).Interface().(encoding.TextUnmarshaler).UnmarshalText(bytes.Clone(text))
			}
		}
		return c.describe(n)
	}
	return c.plain(n, t)
}

// plain compiles a type that has no methods for JSON.
func (c *compiler) plain(n *Node, t reflect.Type) error {
	switch t.Kind() {
	case reflect.Bool:
		n.Kind = Bool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n.Kind, n.Bits = Int, t.Bits()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		n.Kind, n.Bits = Uint, t.Bits()
	case reflect.Float32, reflect.Float64:
		n.Kind, n.Bits = Float, t.Bits()
	case reflect.String:
		n.Kind = String
	case reflect.Interface:
		n.Kind, n.Nullable = Any, true
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !codesItself(t.Elem()) {
			n.Kind, n.Meta.Encoding = Bytes, "base64"
			return nil
		}
		n.Kind = Array
		if t.Kind() == reflect.Array {
			n.Rules.MinItems, n.Rules.MaxItems, n.Rules.any = Count{t.Len(), true}, Count{t.Len(), true}, true
		}
		return c.elem(n, t)
	case reflect.Map:
		return c.mapping(n, t)
	default:
		return fmt.Errorf("type %s has no JSON", t)
	}
	return nil
}

func (c *compiler) mapping(n *Node, t reflect.Type) error {
	n.Kind = Map
	switch key := t.Key(); {
	case implements(key, textUnmarshalerType) || implements(key, textMarshalerType), key.Kind() != reflect.String:
		names, err := c.node(key)
		if err != nil {
			return err
		}
		switch names.Kind {
		case Text:
			n.Names = names
		case Int, Uint:
			n.Names = &Node{Kind: Quoted, Type: key, Bits: names.Bits, decodes: func(text []byte) error {
				if !isPlainInteger(text) || len(text) == 0 || text[len(text)-1] == '-' {
					return errors.New("not an integer")
				}
				return json.Unmarshal(text, reflect.New(key).Interface())
			}}
			n.Names.Rules.Pattern, n.Names.Rules.Format = integerText, IntegerFormat(names.Kind, names.Bits)
			n.Names.Rules.any = true
		default:
			return fmt.Errorf("maps with keys of type %s have no JSON", key)
		}
	}
	return c.elem(n, t)
}

// elem compiles the elements of t. It stores the node of t before it compiles the elements, because the elements may refer to t.
func (c *compiler) elem(n *Node, t reflect.Type) error {
	n.Elem = new(Node)
	c.nodes[t] = n
	elem, err := c.node(t.Elem())
	if err != nil {
		return err
	}
	*n.Elem = *elem
	return nil
}

// ownEnum sets the permitted values to the result of the type's method Enum.
func (n *Node) ownEnum() error {
	t := n.Type
	if t == nil || t.Kind() == reflect.Interface {
		return nil
	}
	m, ok := t.MethodByName("Enum")
	if !ok || m.Type.NumIn() != 1 || m.Type.NumOut() != 1 || m.Type.Out(0) != reflect.SliceOf(t) {
		return nil
	}
	list := reflect.Zero(t).Method(m.Index).Call(nil)[0]
	var values []json.RawMessage
	for i := range list.Len() {
		v, err := json.Marshal(list.Index(i).Interface())
		if err != nil {
			return fmt.Errorf("method Enum of %s: %w", t, err)
		}
		values = append(values, v)
	}
	if err := n.Rules.setEnum(values, n); err != nil {
		return fmt.Errorf("method Enum of %s: %w", t, err)
	}
	return nil
}

// implements reports whether t or *t implements an interface type, the argument methods.
func implements(t, methods reflect.Type) bool {
	return t.Implements(methods) || t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(methods)
}

// codesItself reports whether t has methods that encode or decode its JSON.
func codesItself(t reflect.Type) bool {
	return implements(t, unmarshalerType) || implements(t, marshalerType) ||
		implements(t, textUnmarshalerType) || implements(t, textMarshalerType)
}

// TypeText returns the name of a type for messages. The name of a long unnamed type is truncated.
func TypeText(t reflect.Type) string {
	text := t.String()
	if t.Name() == "" && len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "…"
	}
	return text
}
