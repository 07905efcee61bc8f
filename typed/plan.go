package typed

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/schema"
	"github.com/dunlinhttp/dunlin/router"
)

// A plan is a compiled input type: the source and the rules of each field. An operation compiles it
// once, when it is registered.
type plan struct {
	typ    reflect.Type
	params []*Param // all parameters except the fields of a form
	path   []*Param
	query  []*Param
	other  []*Param // parameters from headers and cookies
	body   *bodyPlan
	form   *formPlan
	checks *checkPlan // where to call Validate; nil if no value has the method

	ignores ignores

	runsCode bool // code outside this package may keep pointers into In, so the memory of In must not be reused
}

// tagOf has the tags that name a source, indexed by source.
var tagOf = [...]string{"path", "query", "header", "cookie", "form"}

// ignores selects which members of bodies are ignored instead of refused.
type ignores struct {
	readOnly bool // value of Config.IgnoreReadOnly
	unknown  bool // Config.UnknownMembers is UnknownMembersIgnore
}

func (c *Config) ignores() ignores {
	return ignores{c.IgnoreReadOnly, c.UnknownMembers == UnknownMembersIgnore}
}

// newPlan compiles an input type for a route with the given methods. The error names the field.
func newPlan(t reflect.Type, methods string, i ignores) (*plan, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("the input of an action must be a struct, not %s", t)
	}
	p := &plan{typ: t, ignores: i}
	if err := p.fields(t, nil, 0); err != nil {
		return nil, err
	}
	if p.body != nil && p.form != nil {
		return nil, errors.New("an input has a field Body or fields of a form, not both")
	}
	if p.body != nil || p.form != nil {
		for m := range strings.SplitSeq(methods, ",") {
			if m = strings.TrimSpace(m); m != http.MethodGet && m != http.MethodHead {
				continue
			}
			if p.form != nil {
				return nil, fmt.Errorf("requests with %s have no body, and so no form: the tag of a field of the query is query, not form", m)
			}
			return nil, fmt.Errorf("requests with %s have no body", m)
		}
	}
	if err := p.distinct(); err != nil {
		return nil, err
	}
	if err := foreignRules(t, true, map[reflect.Type]bool{}); err != nil {
		return nil, err
	}
	p.checks = newCheckPlan(t)
	p.runsCode = p.runsCode || p.checks != nil || p.body != nil && p.body.node.RunsCode()
	return p, nil
}

// fields compiles the fields of the struct t. t is at the given offset in the input, in bytes.
func (p *plan) fields(t reflect.Type, index []int, offset uintptr) error {
	for i := range t.NumField() {
		f := t.Field(i)
		way := append(slices.Clip(index), i)
		tags, err := schema.ParseTags(f.Tag)
		if err == nil {
			err = p.field(f, tags, way, offset+f.Offset)
		}
		if err != nil {
			return fmt.Errorf("field %s of %s: %w", f.Name, schema.TypeText(t), err)
		}
	}
	return nil
}

func (p *plan) field(f reflect.StructField, tags schema.Tags, index []int, offset uintptr) error {
	from, tag, found := source(0), "", false
	for s, name := range tagOf {
		if text, ok := tags[name]; ok {
			if found {
				return fmt.Errorf("it comes from the %s and the %s", from, source(s))
			}
			from, tag, found = source(s), text, true
		}
	}
	switch {
	case found && !f.IsExported():
		return errors.New("it must be exported to be set")
	case found:
		words := strings.Split(tag, ",")
		param, err := newParam(from, words[0], words[1:], f, tags)
		if err != nil {
			return err
		}
		param.index, param.offset, param.field = index, offset, f.Name
		p.add(param)
		return nil
	case f.Name == "Body" && f.IsExported():
		if p.body != nil {
			return errors.New("there is another field Body")
		}
		body, err := newBodyPlan(f, tags, p.ignores)
		if err != nil {
			return err
		}
		body.index, body.offset = index, offset
		p.body = body
		return nil
	case f.Anonymous && f.Type.Kind() == reflect.Struct:
		return p.fields(f.Type, index, offset)
	case f.Anonymous && f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct:
		return errors.New("an embedded struct must not be a pointer: embed the struct itself")
	}
	for name := range tags {
		if name == "default" || schema.IsRule(name) {
			return fmt.Errorf("it has the rule %s but no source: name one by path, query, header, cookie or form, or put it into Body", name)
		}
	}
	name, inJSON := tags["json"]
	switch {
	case !f.IsExported() || name == "-" || tags["dunlin"] == "-":
		return nil
	case inJSON:
		return fmt.Errorf("it has json:%q but is not part of the body, which is the field Body: move it there, or tag it dunlin:\"-\" if clients do not send it", name)
	}
	return errors.New(`it has no source, so it would always be zero: name one by path, query, header, cookie or form, put it into Body, or tag it dunlin:"-" if clients do not send it`)
}

func (p *plan) add(param *Param) {
	if reflect.PointerTo(param.elem).Implements(textUnmarshalerType) && param.elem != timeType {
		p.runsCode = true
	}
	if param.from == fromForm {
		if p.form == nil {
			p.form = new(formPlan)
		}
		p.form.add(param)
		return
	}
	p.params = append(p.params, param)
	switch param.from {
	case fromPath:
		p.path = append(p.path, param)
	case fromQuery:
		p.query = append(p.query, param)
	default:
		p.other = append(p.other, param)
	}
}

// matchPath returns an error if the path fields are not the parameters of the pattern.
func (p *plan) matchPath(params []router.Param) error {
	for _, have := range p.path {
		i := slices.IndexFunc(params, func(q router.Param) bool { return q.Name == have.Name })
		if i < 0 {
			return fmt.Errorf("field %s of %s: the pattern has no parameter {%s}", have.field, schema.TypeText(p.typ), have.Name)
		}
		if err := have.constrained(params[i].Constraint); err != nil {
			return fmt.Errorf("field %s of %s: %w", have.field, schema.TypeText(p.typ), err)
		}
	}
	for _, q := range params {
		if !slices.ContainsFunc(p.path, func(have *Param) bool { return have.Name == q.Name }) {
			return fmt.Errorf("no field of %s takes the path parameter {%s}: add one with the tag `path:%q`", schema.TypeText(p.typ), q.Name, q.Name)
		}
	}
	return nil
}

// constrained returns an error if the pattern has a constraint for the parameter whose values never
// fit the type of the field.
func (p *Param) constrained(constraint string) error {
	numeric := p.Schema.node.Kind == schema.Int || p.Schema.node.Kind == schema.Uint || p.Schema.node.Kind == schema.Float
	switch constraint {
	case "uuid", "ipv4", "ipv6", "alpha", "date", "bool":
		if numeric || constraint != "bool" && p.Schema.node.Kind == schema.Bool {
			return fmt.Errorf("the pattern's {%s:%s} is never %s", p.Name, constraint, p.typ)
		}
	case "int", "uint":
		if p.Schema.node.Kind == schema.Bool || p.elem == timeType {
			return fmt.Errorf("the pattern's {%s:%s} is never %s", p.Name, constraint, p.typ)
		}
	}
	return nil
}

// distinct returns an error if two fields name the same parameter.
func (p *plan) distinct() error {
	all := p.params
	if p.form != nil {
		all = append(slices.Clip(all), p.form.fields...)
	}
	seen := map[string]*Param{}
	for _, q := range all {
		key := q.In + " " + q.Name
		if q.from == fromHeader {
			key = q.In + " " + http.CanonicalHeaderKey(q.Name)
		}
		if other := seen[key]; other != nil {
			return fmt.Errorf("fields %s and %s of %s are the same %s parameter %q", other.field, q.field, p.typ, q.In, q.Name)
		}
		seen[key] = q
	}
	return nil
}

// hasInput reports whether the operation reads input, so that a request can be invalid.
func (p *plan) hasInput() bool {
	return len(p.params) > 0 || p.body != nil || p.form != nil || p.checks != nil
}
