package jsonwire

import (
	"fmt"
	"math"
	"reflect"
	"unicode/utf8"
)

// A Ruler returns the rules that apply to values in addition to their Go types. Its method is called when Compile compiles a struct
// type.
type Ruler interface {
	// Member returns the rules for one member of a JSON object. The argument object is the struct type that the object represents, and
	// name is the name of the member. f is the field of the member; it may belong to an embedded struct. An error makes Compile fail.
	Member(object reflect.Type, name string, f reflect.StructField) (MemberRules, error)
}

// Rules apply to a value and its parts. For a pointer or a Wrapper they apply to the value inside. They do not apply to null.
type Rules struct {
	Checks []Check
	Elem   *Rules // rules for each element of a slice or array, and each value of a map
}

// MemberRules are the rules for a member of an object.
type MemberRules struct {
	Rules
	// Required makes the absence of the member an error.
	Required bool
	// Default is JSON that is decoded if the member is absent; nil for no default.
	Default []byte
	// Requires lists the JSON names of other members that must be present if this member is present.
	Requires []string
	// Refused refuses every value of the member. Ignored reads the member as if it were absent. If either is set, Rules has no effect.
	Refused, Ignored bool
}

// A Check is a rule that is checked after a value has been read. A check allocates only if its function allocates.
type Check struct {
	kind     checkKind
	min, max uint64  // bits of an int64, uint64, float64 or int
	open     [2]bool // the minimum, the maximum of a checkFloatRange is exclusive
	integer  func(int64) bool
	text     func(string) bool
	raw      func([]byte) bool
}

type checkKind uint8

const (
	checkIntRange checkKind = iota
	checkUintRange
	checkFloatRange
	checkInt
	checkLength
	checkText
	checkCount
	checkRaw
)

// IntRange requires minimum ≤ value ≤ maximum of a signed integer.
func IntRange(minimum, maximum int64) Check {
	return Check{kind: checkIntRange, min: uint64(minimum), max: uint64(maximum)}
}

// UintRange is IntRange for unsigned integers.
func UintRange(minimum, maximum uint64) Check {
	return Check{kind: checkUintRange, min: minimum, max: maximum}
}

// FloatRange is IntRange for floating-point numbers. If a bound is exclusive, the value must not equal it. Infinite bounds are ignored.
func FloatRange(minimum, maximum float64, exclusiveMinimum, exclusiveMaximum bool) Check {
	return Check{kind: checkFloatRange, min: math.Float64bits(minimum), max: math.Float64bits(maximum),
		open: [2]bool{exclusiveMinimum, exclusiveMaximum}}
}

// Int requires that ok returns true for the value of a signed integer.
func Int(ok func(int64) bool) Check { return Check{kind: checkInt, integer: ok} }

// Length requires minimum ≤ n ≤ maximum for the number n of characters (code points) of a string.
func Length(minimum, maximum int) Check {
	return Check{kind: checkLength, min: uint64(minimum), max: uint64(maximum)}
}

// Text requires that ok returns true for a string. It applies to strings, to json.Number, and to types that decode themselves. For such
// a type, ok gets the string in the JSON text, and is not called if the JSON value is not a string. ok must not retain its argument.
func Text(ok func(string) bool) Check { return Check{kind: checkText, text: ok} }

// Count requires minimum ≤ n ≤ maximum for the number n of elements of a slice or array, or of members of a map. For an array, all
// elements in the text count, including those that the array has no room for.
func Count(minimum, maximum int) Check {
	return Check{kind: checkCount, min: uint64(minimum), max: uint64(maximum)}
}

// Raw requires that ok returns true for the JSON text of a value. It applies to all types. ok must not retain or change its argument.
func Raw(ok func([]byte) bool) Check { return Check{kind: checkRaw, raw: ok} }

// OrRaw returns a check that is satisfied if c is satisfied or if ok returns true for the JSON text of the value. ok is called only if
// c is not satisfied. Such a check is fast for most values, and still exact for numbers that were rounded.
func (c Check) OrRaw(ok func(text []byte) bool) Check {
	c.raw = ok
	return c
}

// fits reports whether c applies to values of p's type.
func (c *Check) fits(p *decodePlan) bool {
	switch c.kind {
	case checkIntRange, checkInt:
		return opInt8 <= p.op && p.op <= opInt64
	case checkUintRange:
		return opUint8 <= p.op && p.op <= opUint64
	case checkFloatRange:
		return p.op == opFloat32 || p.op == opFloat64
	case checkLength, checkText:
		return p.op == opString || p.op == opNumber || p.textual()
	case checkCount:
		return p.op == opSlice || p.op == opArray || p.op == opMap
	}
	return true
}

// holds checks the value at m. text is the decoded string if the JSON value is a string. count is the number of elements of the array
// or members of the map that was read last.
func (c *Check) holds(p *decodePlan, m memory, text string, count int) bool {
	switch c.kind {
	case checkIntRange:
		n := loadInt(p.op, m)
		return int64(c.min) <= n && n <= int64(c.max)
	case checkUintRange:
		n := loadUint(p.op, m)
		return c.min <= n && n <= c.max
	case checkFloatRange:
		n, low, high := loadFloat(p.op, m), math.Float64frombits(c.min), math.Float64frombits(c.max)
		return (low < n || low == n && !c.open[0]) && (n < high || n == high && !c.open[1])
	case checkInt:
		return c.integer(loadInt(p.op, m))
	case checkLength:
		return c.lengthHolds(text)
	case checkText:
		return c.text(text)
	}
	return int(c.min) <= count && count <= int(c.max)
}

// lengthHolds checks the number of characters. It counts them only if the number of bytes does not decide.
func (c *Check) lengthHolds(text string) bool {
	n := len(text)
	if n < int(c.min) || n > int(c.max) && n/utf8.UTFMax > int(c.max) {
		return false
	}
	if n <= int(c.max) && (n+utf8.UTFMax-1)/utf8.UTFMax >= int(c.min) {
		return true
	}
	n = utf8.RuneCountInString(text)
	return int(c.min) <= n && n <= int(c.max)
}

func loadInt(o op, m memory) int64 {
	switch o {
	case opInt8:
		return int64(load[int8](m))
	case opInt16:
		return int64(load[int16](m))
	case opInt32:
		return int64(load[int32](m))
	}
	return load[int64](m)
}

func loadUint(o op, m memory) uint64 {
	switch o {
	case opUint8:
		return uint64(load[uint8](m))
	case opUint16:
		return uint64(load[uint16](m))
	case opUint32:
		return uint64(load[uint32](m))
	}
	return load[uint64](m)
}

func loadFloat(o op, m memory) float64 {
	if o == opFloat32 {
		return float64(load[float32](m))
	}
	return load[float64](m)
}

// checks are the checks of an opChecked plan.
type checks struct {
	list  []Check
	plain bool // the value is a string, an integer, a floating-point number or a slice, and no check has the kind checkRaw
	quick quickCheck
}

// settle sets plain and quick for the checks of values of p. p must be complete.
func (c *checks) settle(p *decodePlan) {
	c.plain = true
	for i := range c.list {
		c.plain = c.plain && c.list[i].kind != checkRaw
	}
	switch p.op {
	case opString, opSlice, opInt8, opInt16, opInt32, opInt64, opUint8, opUint16, opUint32, opUint64, opFloat32, opFloat64:
	default:
		c.plain = false
	}
	c.quick = c.quickOf(p)
}

// textual reports whether a method of the type decodes the value. In that case checks can use only the JSON text.
func (p *decodePlan) textual() bool {
	return p.op == opUnmarshal || p.op == opUnmarshalText || p.op == opTime || p.op == opStandard
}

// reach follows pointers and wrappers from the value at m to the value to which the rules apply. It returns false if that value is null
// or not set.
func (p *decodePlan) reach(m memory) (*decodePlan, memory, bool) {
	for {
		switch p.op {
		case opPointer:
			if m.isNil() {
				return p, m, false
			}
			p, m = p.elem, m.deref()
		case opWrapped:
			if !load[bool](m.at(p.wrap.set)) {
				return p, m, false
			}
			p, m = p.elem, m.at(p.wrap.value)
		case opChecked, opQuoted:
			p = p.elem
		default:
			return p, m, true
		}
	}
}

// innermost returns the plan of the value to which reach leads.
func (p *decodePlan) innermost() *decodePlan {
	for p.op == opPointer || p.op == opWrapped || p.op == opChecked || p.op == opQuoted {
		p = p.elem
	}
	return p
}

// checkedDeep does the work of the method checked for null, and for checks that are not plain.
func (d *decoder) checkedDeep(p *decodePlan, m memory, i int) int {
	next := d.value(p.elem, m, i)
	if next < 0 || d.data[i] == 'n' {
		return next
	}
	count := d.count
	inner, at, ok := p.elem.reach(m)
	if !ok {
		return next
	}
	var text string
	switch {
	case inner.op == opString || inner.op == opNumber:
		text = load[string](at)
	case inner.textual():
		if d.data[i] == '"' {
			text = d.viewText(i, next)
		}
	}
	for n := range p.checks.list {
		c := &p.checks.list[n]
		if (c.kind == checkLength || c.kind == checkText) && inner.textual() && d.data[i] != '"' {
			continue
		}
		holds := c.kind != checkRaw && c.holds(inner, at, text, count)
		if !holds && c.raw != nil {
			holds = c.raw(d.data[i:next:next])
		}
		if !holds {
			return d.refuse(ProblemRule, i)
		}
	}
	return next
}

// ruleError returns an error of Compile that names the struct type and the field with invalid rules.
func ruleError(t reflect.Type, field string, err error) error {
	return fmt.Errorf("%s.%s: %w", t, field, err)
}
