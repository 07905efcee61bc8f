package typed

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"

	"github.com/dunlinhttp/dunlin/internal/schema"
)

// Checks collects the violations that a Validate method finds. A type has a Validate method if it
// has rules that need code:
//
//	func (o *Order) Validate(c *typed.Checks) {
//		c.Check(o.From.Before(o.Until), "#/until", "order", "must be after from")
//	}
//
// Validate is called for each value of the type in an input, after all other rules were satisfied.
// The input struct may also have a Validate method.
type Checks struct {
	report *schema.Report
	in     string
	steps  []checkStep // path from the input to the value
}

// A checkStep is one step of the path from an input to a value in it.
type checkStep struct {
	step  string // "/name" for a member; empty for an element or a map value
	key   string // map key, as the client sent it
	index int    // index of an element, otherwise -1
}

// Check reports a violation if ok is false. pointer is relative to the value: "#/until" denotes the
// member until of the value, and "#" the value itself. rule is a name of the rule for programs.
func (c *Checks) Check(ok bool, pointer, rule, message string) {
	switch {
	case ok:
	case c.report.Full():
		c.report.More = true
	default:
		c.report.Add(schema.Violation{In: c.in, Pointer: c.at(pointer), Rule: rule, Message: message})
	}
}

// Parameter reports a violation by a parameter if ok is false. The argument in is the source of the
// parameter, such as "query", and name is its name.
func (c *Checks) Parameter(ok bool, in, name, rule, message string) {
	if !ok {
		c.report.Add(schema.Violation{In: in, Name: name, Rule: rule, Message: message})
	}
}

// at returns a pointer relative to the body for a pointer relative to the value. It is called only
// for a violation, because the pointer can be long.
func (c *Checks) at(pointer string) string {
	if len(pointer) > 0 && pointer[0] == '#' {
		pointer = pointer[1:]
	}
	b, whole := []byte("#"), true
	for i := range c.steps {
		switch s := &c.steps[i]; {
		case s.step != "":
			b, whole = schema.AppendEscaped(b, s.step)
		case s.index >= 0:
			b, whole = schema.AppendEscaped(b, "/"+strconv.Itoa(s.index))
		default:
			b, whole = schema.AppendStep(b, s.key)
		}
		if !whole {
			return string(b)
		}
	}
	return string(b) + pointer
}

// A Validator is a type with rules that need code.
type Validator interface{ Validate(*Checks) }

var validatorType = reflect.TypeFor[Validator]()

// A checkPlan says where values with a method Validate are in a value of a type.
type checkPlan struct {
	self   bool // the value has the method
	fields []checkField
	elem   *checkPlan // plan for the elements of slices, arrays, maps and pointers
}

type checkField struct {
	index []int
	step  string // step of the pointer, empty for an embedded struct
	plan  *checkPlan
}

// unchecked caches the types of bodies in which no value has a method Validate, because many
// operations share a type of body.
var unchecked sync.Map

// newCheckPlan returns the plan for an input type, or nil if no value in it has a method Validate.
func newCheckPlan(t reflect.Type) *checkPlan {
	plans := map[reflect.Type]*checkPlan{}
	found := false
	p := compileChecks(t, plans, &found, true)
	if !found {
		return nil
	}
	return p
}

func compileChecks(t reflect.Type, plans map[reflect.Type]*checkPlan, found *bool, input bool) *checkPlan {
	if p := plans[t]; p != nil {
		return p
	}
	p := new(checkPlan)
	plans[t] = p
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(validatorType) {
		p.self, *found = true, true
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		p.elem = compileChecks(t.Elem(), plans, found, false)
	case reflect.Struct:
		if t == timeType {
			return p
		}
		if w, ok := schema.WrappedBy(t); ok {
			f, _ := t.FieldByName("Value")
			p.fields = append(p.fields, checkField{f.Index, "", compileChecks(w.Elem, plans, found, false)})
			return p
		}
		if input {
			p.inputFields(t, plans, found, nil)
			return p
		}
		node, err := schema.Of(t)
		if err != nil || node.Struct == nil {
			return p
		}
		for _, m := range node.Struct.Members {
			p.fields = append(p.fields, checkField{m.Index, "/" + schema.EscapePointer(m.Name),
				compileChecks(t.FieldByIndex(m.Index).Type, plans, found, false)})
		}
	}
	return p
}

// inputFields adds the field Body of an input to the plan, and the field Body of embedded structs.
func (p *checkPlan) inputFields(t reflect.Type, plans map[reflect.Type]*checkPlan, found *bool, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		way := append(append([]int(nil), index...), i)
		switch {
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			p.inputFields(f.Type, plans, found, way)
		case f.IsExported() && f.Name == "Body":
			if _, none := unchecked.Load(f.Type); none {
				continue
			}
			inside := false
			p.fields = append(p.fields, checkField{way, "", compileChecks(f.Type, plans, &inside, false)})
			if !inside {
				unchecked.Store(f.Type, nil)
			}
			*found = *found || inside
		}
	}
}

// foreign lists tags of other validation libraries. This package does not check their rules.
var foreign = [...]string{"validate", "binding", "min", "max"}

// checkedTypes caches the types of bodies that have no foreign tags.
var checkedTypes sync.Map

// foreignRules returns an error for a tag whose rule would have no effect. A type with Validate may
// have such tags, because its Validate may read them.
func foreignRules(t reflect.Type, input bool, seen map[reflect.Type]bool) error {
	if t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(validatorType) || seen[t] {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return foreignRules(t.Elem(), false, seen)
	case reflect.Struct:
		if w, ok := schema.WrappedBy(t); ok {
			return foreignRules(w.Elem, false, seen)
		}
		if input {
			return foreignInInput(t, seen)
		}
		node, err := schema.Of(t)
		if err != nil || node.Struct == nil {
			return err
		}
		for _, m := range node.Struct.Members {
			f := t.FieldByIndex(m.Index)
			if err := foreignIn(t, f); err != nil {
				return err
			}
			if err := foreignRules(f.Type, false, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// foreignInInput checks the parameters, the field Body and the embedded structs of an input for
// foreign tags.
func foreignInInput(t reflect.Type, seen map[reflect.Type]bool) error {
	for f := range t.Fields() {
		embedded := f.Anonymous && f.Type.Kind() == reflect.Struct
		body := f.IsExported() && f.Name == "Body"
		if body {
			if _, ok := checkedTypes.Load(f.Type); ok {
				continue
			}
		}
		if !embedded && !body && !slices.ContainsFunc(tagOf[:], func(source string) bool { _, ok := f.Tag.Lookup(source); return ok }) {
			continue // not bound
		}
		err := foreignIn(t, f)
		if err == nil && (embedded || body) {
			err = foreignRules(f.Type, embedded, seen)
		}
		if err != nil {
			return err
		}
		if body {
			checkedTypes.Store(f.Type, nil)
		}
	}
	return nil
}

func foreignIn(t reflect.Type, f reflect.StructField) error {
	for _, tag := range foreign {
		if rules := f.Tag.Get(tag); rules != "" && rules != "-" {
			return fmt.Errorf("field %s of %s: %s:%q has no effect: write rules such as minimum:\"1\" and minLength:\"1\", or check it in a method Validate(*typed.Checks) of the struct",
				f.Name, schema.TypeText(t), tag, rules)
		}
	}
	return nil
}

// run calls the Validate methods of all values in v, the innermost values first. It ends early if
// the report is full or the request has ended.
func (p *checkPlan) run(report *schema.Report, v reflect.Value) {
	w := &checkWalk{report: report}
	w.value(p, v)
}

// A checkWalk is the state of one walk through an input.
type checkWalk struct {
	report *schema.Report
	steps  []checkStep
	calls  int // calls of Validate so far
}

// into continues the walk at v, which is one step away from the current value.
func (w *checkWalk) into(p *checkPlan, v reflect.Value, s checkStep) {
	w.steps = append(w.steps, s)
	w.value(p, v)
	w.steps = w.steps[:len(w.steps)-1]
}

func (w *checkWalk) value(p *checkPlan, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			w.value(p.elem, v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := 0; !p.elem.empty() && i < v.Len() && !w.over(); i++ {
			w.into(p.elem, v.Index(i), checkStep{index: i})
		}
	case reflect.Map:
		if p.elem.empty() {
			break
		}
		for _, k := range sortedMapKeys(v) {
			if w.over() {
				break
			}
			copied := reflect.New(v.Type().Elem()).Elem() // map values are not addressable
			copied.Set(v.MapIndex(k.key))
			w.into(p.elem, copied, checkStep{key: k.text, index: -1})
		}
	case reflect.Struct:
		for _, f := range p.fields {
			if f.plan.empty() {
				continue
			}
			inner, err := v.FieldByIndexErr(f.index)
			switch {
			case err != nil:
			case f.step == "":
				w.value(f.plan, inner)
			default:
				w.into(f.plan, inner, checkStep{step: f.step})
			}
		}
	}
	if p.self && !w.over() {
		if w.calls++; w.calls%callsBetweenChecks == 0 && w.report.HasEnded() {
			return
		}
		v.Addr().Interface().(Validator).Validate(&Checks{report: w.report, in: "body", steps: w.steps})
	}
}

// callsBetweenChecks is the number of Validate calls after which the context of the request is
// checked.
const callsBetweenChecks = 1 << 8

// over reports whether the walk must end.
func (w *checkWalk) over() bool { return w.report.More || w.report.Ended }

// empty reports whether the plan has neither a Validate to call nor plans for parts of the value.
// Such a value need not be visited.
func (p *checkPlan) empty() bool { return !p.self && p.elem == nil && len(p.fields) == 0 }
