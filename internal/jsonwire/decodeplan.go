package jsonwire

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
)

// A decodePlan describes how to read values of one type. It is complete and immutable once a Decoder refers to it.
type decodePlan struct {
	op     op
	strict bool         // null is refused, see Strictness.RefuseNull
	typ    reflect.Type // for errors, and to reach the value through reflect
	elem   *decodePlan  // plan of the value inside: the target of a pointer, an element, or the value of a quoted, checked or wrapped plan
	size   uintptr      // size of an element of an array or slice, or of a pointer's target
	length int          // length of an array

	// pointer identifies the type *typ. User methods are called through this type.
	pointer typeID

	object *objectPlan // for structs
	keys   *keyPlan    // for maps
	checks *checks     // for opChecked
	wrap   *wrapLayout // for opWrapped
}

// decodeKey identifies a plan. byPointer is part of the key for unnamed types only: such a type may have methods of an embedded
// field, and these methods are called only if the value is reached through a pointer.
type decodeKey struct {
	typ       reflect.Type
	byPointer bool
}

// decodeCompiler compiles the plans of one Decoder. plainCompiler compiles the plans of all decoders without rules.
type decodeCompiler struct {
	compiled map[decodeKey]*decodePlan
	ruler    Ruler // nil for no rules
	strict   bool  // RefuseNull
	err      error // first error
	// pending holds the steps that run after all types are compiled. An example is the application of rules, which copies
	// complete plans.
	pending []func()
}

var (
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	wrapperType         = reflect.TypeFor[Wrapper]()

	// unmarshalerFromType is the interface UnmarshalerFrom of encoding/json/v2 if encoding/json supports it, else nil.
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
		return p // incomplete if t is recursive and is being compiled
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

// compileMethods sets up p if its type is time.Time, json.RawMessage, json.Number or a Wrapper, or has a method to decode JSON.
// It reports whether p is set up. UnmarshalJSON takes precedence over UnmarshalText.
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
		return false // methods of a pointer's target are checked when the pointer is followed
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

// compileKind sets up p by the kind of its type. It sets p.op before it compiles inner types: if one of them contains the type
// of p again, its compilation reads the op of p, which is still incomplete.
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

// taken returns p, or the plan for the member's default if p refuses or ignores all values of the member.
func (p *decodePlan) taken() *decodePlan {
	if p.op == opRefused || p.op == opIgnored {
		return p.elem
	}
	return p
}

// endlessPointer reports whether following pointers from type t leads to pointers only, as for type T *T.
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
func (c *decodeCompiler) withRules(p *decodePlan, rules *Rules, path string) *decodePlan {
	if rules == nil {
		return p
	}
	if rules.Elem != nil {
		p = c.withElemRules(p, rules.Elem, path)
	}
	if len(rules.Checks) == 0 {
		return p
	}
	outer := c.newPlan(p.typ)
	outer.op, outer.elem, outer.checks = opChecked, p, &checks{list: rules.Checks}
	c.check(outer, path)
	return outer
}

// withElemRules returns a copy of p whose elements are checked by rules.
func (c *decodeCompiler) withElemRules(p *decodePlan, rules *Rules, path string) *decodePlan {
	made := *p
	switch p.op {
	case opPointer, opWrapped, opChecked:
		made.elem = c.withElemRules(p.elem, rules, path)
	case opSlice, opArray, opMap:
		made.elem = c.withRules(p.elem, rules, path+"[]")
	default:
		c.fail(fmt.Errorf("%s: rules for the elements of %s, which has no elements", path, p.typ))
	}
	return &made
}

// check records an error if a check of p does not apply to the values of p. It then settles the checks (see checks.settle).
func (c *decodeCompiler) check(p *decodePlan, path string) {
	inner := p.elem.innermost()
	for i := range p.checks.list {
		if !p.checks.list[i].fits(inner) {
			c.fail(fmt.Errorf("%s: rule %d does not apply to values of type %s", path, i, inner.typ))
		}
	}
	p.checks.settle(p.elem)
}

// finish runs the pending steps. It returns the first error of the compilation.
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

// Contained reports whether only code of this package gets the address of the value while it is decoded. In that case neither a
// user's method nor encoding/json gets the address, and the value may be on a stack.
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
