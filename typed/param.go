package typed

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/schema"
)

// A source is the part of the request from which a field is read.
type source uint8

const (
	fromPath source = iota
	fromQuery
	fromHeader
	fromCookie
	fromForm
	fromBody
)

var sourceNames = [...]string{"path", "query", "header", "cookie", "form", "body"}

func (s source) String() string { return sourceNames[s] }

// A Param is a parameter of an operation, or a field of its form.
type Param struct {
	In       string // "path", "query", "header", "cookie" or "form"
	Name     string
	Schema   Schema
	Required bool
	Default  []byte // JSON of the default, or nil
	List     bool   // the parameter has several values
	Comma    bool   // commas separate the values, which are sent as one text
	File     bool   // the parameter is a file of a form

	from       source
	index      []int // index path of the field
	offset     uintptr
	typ        reflect.Type // type of the field
	elem       reflect.Type // type of one value
	set        setter       // stores one value in the field, or in an element of the list
	text       string       // text of the default
	hasDefault bool         // the parameter has a default
	rules      bool         // rules apply to single values
	field      string       // name of the field, for errors
	types      []string     // media types that a file may have, nil for any
}

// newParam compiles a field that has a source tag.
func newParam(from source, name string, options []string, f reflect.StructField, tags schema.Tags) (*Param, error) {
	p := &Param{In: from.String(), Name: name, from: from, typ: f.Type, Required: true}
	if name == "" {
		return nil, fmt.Errorf("the tag %s has no name", from)
	}
	t := f.Type
	optional := false
	if w, ok := schema.WrappedBy(t); ok {
		if w.Nullable {
			return nil, errors.New("a parameter cannot be null: take Optional")
		}
		optional, t = true, w.Elem
	} else if t.Kind() == reflect.Pointer {
		optional, t = true, t.Elem()
	}
	p.elem = t
	if from == fromForm && fileOf(p, t) {
		p.Required = !optional && !p.List
		return p, p.describe(tags)
	}
	if t.Kind() == reflect.Slice && !reflect.PointerTo(t).Implements(textUnmarshalerType) {
		if t.Elem().Kind() == reflect.Uint8 {
			return nil, errors.New("a parameter cannot be a []byte: use a string")
		}
		if optional {
			return nil, errors.New("a list is optional already: use the slice itself")
		}
		p.List, p.elem = true, t.Elem()
	}
	p.Comma = from == fromHeader || slices.Contains(options, "comma")
	for _, o := range options {
		if o != "comma" || from != fromQuery || !p.List {
			return nil, fmt.Errorf("unknown option %q of the tag %s", o, from)
		}
	}
	if p.List && (from == fromPath || from == fromCookie) {
		return nil, fmt.Errorf("a %s parameter has one value", from)
	}
	shape, err := shapeOf(p.elem)
	if err != nil {
		return nil, err
	}
	p.set = shape.set
	switch {
	case optional && f.Type.Kind() == reflect.Pointer:
		p.set = pointerSetter(t, p.set)
	case optional:
		p.set = optionalSetter(f.Type, p.set)
	}
	if optional || p.List {
		p.Required = false
	}
	if from == fromPath && optional {
		return nil, errors.New("a path parameter is always there")
	}
	if shape.format != "" && tags["format"] == "" {
		tags = withFormat(tags, shape.format)
	}
	return p, p.describe(tags)
}

func withFormat(tags schema.Tags, format string) schema.Tags {
	with := schema.Tags{"format": format}
	for name, text := range tags {
		with[name] = text
	}
	return with
}

// describe sets the schema of the parameter, with its rules and its default.
func (p *Param) describe(tags schema.Tags) error {
	t := p.typ
	if w, ok := schema.WrappedBy(t); ok {
		t = w.Elem
	} else if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if p.elem == durationType { // the text of a parameter is a duration such as 1m30s, not a number
		t = reflect.TypeFor[string]()
		if p.List {
			t = reflect.TypeFor[[]string]()
			tags = withItems(tags)
		}
	}
	var node *schema.Node
	var err error
	if p.File {
		node = fileNode(p.List)
	} else if node, err = schema.Of(t); err != nil {
		return err
	}
	if node, err = node.Tagged(tags); err != nil {
		return err
	}
	node = asParam(node)
	p.Schema = Schema{node}
	if text, ok := tags["contentType"]; ok && p.File {
		if p.types, err = contentTypes(text); err != nil {
			return fmt.Errorf("contentType:%q: %w", text, err)
		}
	}
	if p.List {
		p.Required = node.Rules.MinItems.Set && node.Rules.MinItems.N > 0
	}
	one := p.one()
	p.rules = one.HasRules()
	text, ok := tags["default"]
	if !ok {
		return nil
	}
	if p.from == fromPath || p.File {
		return fmt.Errorf("a %s has no default", map[bool]string{true: "file", false: "path parameter"}[p.File])
	}
	if p.Default, err = node.Value(text); err != nil {
		return fmt.Errorf("default:%q: %w", text, err)
	}
	p.text, p.hasDefault, p.Required = text, true, false
	return nil
}

// asParam returns the schema of a parameter whose type parses its text itself. If SchemaAs
// describes the type, the result is the schema of that description.
func asParam(n *schema.Node) *schema.Node {
	switch {
	case n.As != nil:
		as := *n.As
		as.Meta = n.Meta
		return &as
	case n.Elem != nil && n.Elem.As != nil:
		list := *n
		list.Elem = n.Elem.As
		return &list
	}
	return n
}

// withItems returns the tags of a list, with the format moved to its elements.
func withItems(tags schema.Tags) schema.Tags {
	moved := schema.Tags{}
	for name, text := range tags {
		if name == "format" {
			name = "items.format"
		}
		moved[name] = text
	}
	return moved
}

// one returns the schema of a single value of the parameter.
func (p *Param) one() *schema.Node {
	if p.List {
		return p.Schema.node.Elem
	}
	return p.Schema.node
}

// setOne parses text and stores the value in the field.
func (p *Param) setOne(b *binder, in address, text string) {
	if !p.set(in.at(p.offset), text) {
		rule, limit := wantedText(p.Schema.node, text)
		b.wrong(p, "", rule, limit)
		return
	}
	if p.rules && !p.Schema.node.Holds(text) {
		p.Schema.node.Scalar([]byte(text), p.In, p.Name, "", &b.report)
	}
}

// setList parses texts and stores the values in the field, as a new slice.
func (p *Param) setList(b *binder, in address, texts []string) {
	list := reflect.MakeSlice(p.typ, len(texts), len(texts))
	one, parsed := p.one(), true
	for i, text := range texts {
		if b.report.More {
			return
		}
		if !p.set(addressIn(list.Index(i).Addr()), text) {
			rule, limit := wantedText(one, text)
			b.wrong(p, elementPointer(i), rule, limit)
			parsed = false
		} else if p.rules && !one.Holds(text) {
			one.Scalar([]byte(text), p.In, p.Name, elementPointer(i), &b.report)
		}
	}
	switch {
	case !p.Schema.node.HasRules():
	case !parsed:
		p.Schema.node.Count(len(texts), p.In, p.Name, &b.report)
	default:
		p.Schema.node.Items(texts, p.In, p.Name, &b.report)
	}
	in.at(p.offset).value(p.typ).Set(list)
}

// elementPointer returns the pointer to an element of a parameter with several values.
func elementPointer(i int) string { return "#/" + strconv.Itoa(i) }

// absent sets the field to its default. If the parameter is required, it reports that the parameter
// is missing.
func (p *Param) absent(b *binder, in address) {
	switch {
	case p.hasDefault && p.List:
		p.setList(b, in, splitComma(p.text))
	case p.hasDefault:
		p.set(in.at(p.offset), p.text)
	case p.Required:
		b.wrong(p, "", "required", "")
	}
}

// splitComma splits a comma-separated list. An empty text has no elements.
func splitComma(text string) []string {
	if text == "" {
		return nil
	}
	list := strings.Split(text, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}
