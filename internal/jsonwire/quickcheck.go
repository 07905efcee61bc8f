package jsonwire

import "math"

// Most checks consist of a range of lengths, counts or numbers, and perhaps a format. A quick check tests such a range where the value
// is read, without a call for each check. If the quick check fails, the value may still be valid: then the checks themselves decide.

// A quickCheck is a range of values that satisfy all checks of a type. Values outside of the range may satisfy the checks, too.
type quickCheck struct {
	kind   quickKind
	low    uint64            // minimum of an integer, a length or a count
	span   uint64            // maximum minus low
	above  float64           // exclusive lower bound of a floating-point number
	below  float64           // exclusive upper bound of a floating-point number
	text   func(string) bool // must also return true for a string; may be nil
	signed op                // operation that reads the signed integer
}

type quickKind uint8

const (
	quickNone quickKind = iota
	quickText
	quickInt
	quickFloat
	quickCount
)

// quickOf returns the quick check for values of p. The result is the zero quickCheck if the checks cannot be tested in this way.
func (c *checks) quickOf(p *decodePlan) (q quickCheck) {
	if !c.plain || len(c.list) == 0 || len(c.list) > 2 {
		return q
	}
	first := &c.list[0]
	switch {
	case p.op == opString:
		return c.quickTextOf()
	case len(c.list) > 1:
	case first.kind == checkIntRange && int64(first.min) <= int64(first.max):
		q = quickCheck{kind: quickInt, low: first.min, span: first.max - first.min, signed: p.op}
	case first.kind == checkFloatRange && p.op == opFloat64:
		q = quickCheck{kind: quickFloat, above: math.Float64frombits(first.min), below: math.Float64frombits(first.max)}
	case first.kind == checkCount && p.op == opSlice && first.min <= first.max:
		q = quickCheck{kind: quickCount, low: first.min, span: first.max - first.min}
	}
	return q
}

// quickTextOf returns the quick check for strings. It uses the number of bytes: a string of n bytes has at least n/4 and at most n
// characters.
func (c *checks) quickTextOf() quickCheck {
	q := quickCheck{kind: quickText, span: math.MaxInt64}
	for i := range c.list {
		switch check := &c.list[i]; check.kind {
		case checkLength:
			if check.min > 0 {
				q.low = 4*check.min - 3
			}
			if check.min > math.MaxInt64/4 || check.max < q.low || i > 0 {
				return quickCheck{}
			}
			q.span = check.max - q.low
		case checkText:
			if q.text != nil {
				return quickCheck{}
			}
			q.text = check.text
		default:
			return quickCheck{}
		}
	}
	return q
}

// holdsText reports whether the quick check accepts the string s. q must be of the kind quickText.
func (q *quickCheck) holdsText(s string) bool {
	return uint64(len(s))-q.low <= q.span && (q.text == nil || q.text(s))
}

// checked reads a value and checks its rules.
func (d *decoder) checked(p *decodePlan, m memory, i int) int {
	next := -1
	c := d.data[i]
	q := &p.checks.quick
	switch {
	case q.kind == quickText && c == '"':
		var s string
		if s, next = d.string(i + 1); next < 0 {
			return next
		}
		store(m, s)
		if q.holdsText(s) {
			return next
		}
	case q.kind == quickInt && (c == '-' || c-'0' <= 9):
		if next = d.int(p.elem, m, i); next < 0 || uint64(loadInt(q.signed, m))-q.low <= q.span {
			return next
		}
	case q.kind == quickFloat && (c == '-' || c-'0' <= 9):
		v, after, ok := d.float64(i)
		if !ok {
			return d.badNumber(p.elem, i, after)
		}
		store(m, v)
		if next = after; q.above < v && v < q.below {
			return next
		}
	case q.kind == quickCount && c == '[':
		if next = d.slice(p.elem, m, i); next < 0 || uint64(d.count)-q.low <= q.span {
			return next
		}
	case p.checks.plain && c != 'n':
		if next = d.value(p.elem, m, i); next < 0 {
			return next
		}
	default:
		return d.checkedDeep(p, m, i)
	}
	return d.judge(p, m, i, next)
}

// judge runs the checks of the value at m, which was read from data[i:next]. The checks must be plain (see checks.plain).
func (d *decoder) judge(p *decodePlan, m memory, i, next int) int {
	inner, text := p.elem, ""
	if inner.op == opString {
		text = load[string](m)
	}
	count := d.count
	for n := range p.checks.list {
		c := &p.checks.list[n]
		if !c.holds(inner, m, text, count) && (c.raw == nil || !c.raw(d.data[i:next:next])) {
			return d.refuse(ProblemRule, i)
		}
	}
	return next
}
