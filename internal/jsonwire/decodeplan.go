package jsonwire

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
)

// decodePlan describes how to read values of a type. It is complete and immutable once a Decoder has it.
type decodePlan struct {
	op     op
	strict bool         // null is refused (Strictness.RefuseNull)
	typ    reflect.Type // for errors, and to reach the value through reflect
	elem   *decodePlan  // of pointers, slices, arrays, maps, quoted, checked, wrapped
	size   uintptr      // of an element, for arrays and slices; of the target, for pointers
	length int          // of arrays

	// pointer is *typ, through which user methods are called.
	pointer typeID

	object *objectPlan // of structs
	keys   *keyPlan    // of maps
	checks *checks     // of opChecked
	wrap   *wrapLayout // of opWrapped
}

// decodeKey identifies a plan. Methods that an unnamed type has from an embedded field are called only if the value is
// reached through a pointer.
type decodeKey struct {
	typ       reflect.Type
	byPointer bool
}

// decodeCompiler compiles the plans of one Decoder, or all plans without rules.
type decodeCompiler struct {
	compiled map[decodeKey]*decodePlan
	ruler    Ruler // nil: none
	strict   bool  // RefuseNull
	err      error // the first
	// rules are applied when all types are compiled, since they copy plans.
	pending []func()
}

var (
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	wrapperType         = reflect.TypeFor[Wrapper]()

	// unmarshalerFromType is encoding/json/v2's interface where encoding/json
	// honours it, else nil.
	unmarshalerFromType reflect.Type
)

func (c *decodeCompiler) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// compile returns the plan for values of type t. byPointer reports whether values are reached through a pointer.
func (c *decodeCompiler) compile(t reflect.Type, byPointer bool) *decodePlan {
	key := decodeKey{t, byPointer && t.Name() == ""}
	if p := c.compiled[key]; p != nil {
		return p // perhaps unfinished: t is recursive and we are inside it
	}
	p := c.newPlan(t)
	c.compiled[key] = p
	if !c.compileMethods(p, key.byPointer) {
		c.compileKind(p)
	}
	return p
}

func (c *decodeCompiler) newPlan(t reflect.Type) *decodePlan {
	return &decodePlan{typ: t, strict: c.strict, pointer: typeOf(reflect.Zero(reflect.PointerTo(t)).Interface())}
}

// compileMethods sets p up if a method decides how the type is read, and reports whether one does. UnmarshalJSON takes
// precedence over UnmarshalText.
func (c *decodeCompiler) compileMethods(p *decodePlan, byPointer bool) bool {
	t := p.typ
	pointer := reflect.PointerTo(t)
	switch {
	case t == timeType:
		p.op = opTime
	case t == rawMessageType:
		p.op = opRaw
	case t == numberType:
		p.op = opNumber
	case t.Name() == "" && !byPointer || t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface:
		return false // of pointers and interfaces methods count when they are followed
	case t.Implements(wrapperType):
		c.compileWrapper(p)
	case unmarshalerFromType != nil && pointer.Implements(unmarshalerFromType):
		p.op = opStandard
	case pointer.Implements(unmarshalerType):
		p.op = opUnmarshal
	case pointer.Implements(textUnmarshalerType):
		p.op = opUnmarshalText
	default:
		return false
	}
	return true
}

// compileKind sets up a type that has no method of its own. It sets op before it
// compiles inner types: if t is recursive, they look at it.
func (c *decodeCompiler) compileKind(p *decodePlan) {
	t := p.typ
	switch t.Kind() {
	case reflect.Struct:
		p.op = opStruct
		c.compileObject(p)
	case reflect.Slice:
		p.op, p.size = opSlice, t.Elem().Size()
		p.elem = c.compile(t.Elem(), false)
		if t.Elem().Kind() == reflect.Uint8 {
			p.op = opBytes
		}
	case reflect.Array:
		p.op = opArray
		p.size, p.length = t.Elem().Size(), t.Len()
		p.elem = c.compile(t.Elem(), false)
	case reflect.Pointer:
		if !endlessPointer(t) {
			p.op, p.size = opPointer, t.Elem().Size()
			p.elem = c.compile(t.Elem(), true)
		}
	case reflect.Map:
		p.op = opMap
		c.compileMap(p)
	case reflect.Interface:
		p.op = opInterface
		if t.NumMethod() > 0 {
			p.op = opInterfaceMethods
		}
	default:
		p.op = scalarOp(t)
	}
}

// taken is the plan of the values of p, or of a default where the member is not taken.
func (p *decodePlan) taken() *decodePlan {
	if p.op == opRefused || p.op == opIgnored {
		return p.elem
	}
	return p
}

// endlessPointer reports whether t is a pointer type that only points to other pointers.
func endlessPointer(t reflect.Type) bool {
	seen := map[reflect.Type]bool{}
	for t.Kind() == reflect.Pointer {
		if seen[t] {
			return true
		}
		seen[t] = true
		t = t.Elem()
	}
	return false
}

// withRules returns the plan for values of p's type with rules. It must not be called before p is complete.
func (c *decodeCompiler) withRules(p *decodePlan, rules *Rules, place string) *decodePlan {
	if rules == nil {
		return p
	}
	if rules.Elem != nil {
		p = c.withElemRules(p, rules.Elem, place)
	}
	if len(rules.Checks) == 0 {
		return p
	}
	outer := c.newPlan(p.typ)
	outer.op, outer.elem, outer.checks = opChecked, p, &checks{list: rules.Checks}
	c.check(outer, place)
	return outer
}

// withElemRules is withRules for the parts of the values.
func (c *decodeCompiler) withElemRules(p *decodePlan, rules *Rules, place string) *decodePlan {
	made := *p
	switch p.op {
	case opPointer, opWrapped, opChecked:
		made.elem = c.withElemRules(p.elem, rules, place)
	case opSlice, opArray, opMap:
		made.elem = c.withRules(p.elem, rules, place+"[]")
	default:
		c.fail(fmt.Errorf("%s: rules for the elements of %s, which has none", place, p.typ))
	}
	return &made
}

// check fails when one of p's checks is for another kind of value.
func (c *decodeCompiler) check(p *decodePlan, place string) {
	inner := p.elem.innermost()
	for i := range p.checks.list {
		if !p.checks.list[i].fits(inner) {
			c.fail(fmt.Errorf("%s: rule %d is not for values of type %s", place, i, inner.typ))
		}
	}
	p.checks.settle(p.elem)
}

// finish applies the steps that had to wait until all plans are complete.
func (c *decodeCompiler) finish() error {
	for len(c.pending) > 0 {
		pending := c.pending
		c.pending = nil
		for _, apply := range pending {
			apply()
		}
	}
	return c.err
}

// Contained reports whether decoding passes the address of the value only to this package: its types have no methods
// that get it, and no part is decoded by encoding/json. Then the value may be on a stack.
func (d *Decoder) Contained() bool { return d.plan.contained(map[*decodePlan]bool{}) }

func (p *decodePlan) contained(seen map[*decodePlan]bool) bool {
	if seen[p] {
		return true
	}
	seen[p] = true
	switch p.op {
	case opBool, opInt8, opInt16, opInt32, opInt64, opUint8, opUint16, opUint32, opUint64, opFloat32, opFloat64, opString, opNumber:
		return true
	case opSlice, opBytes, opPointer, opWrapped, opChecked, opRefused, opIgnored:
		return p.elem.contained(seen)
	case opStruct:
		for i := range p.object.members {
			if !p.object.members[i].value.contained(seen) {
				return false
			}
		}
		return true
	}
	return false
}
