package schema

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dunlinhttp/dunlin/internal/jsonwire"
)

// string reads and checks a string. It returns false if the string is malformed.
func (c *checker) string(n *Node) bool {
	start := c.pos
	end, flags, ok := scanString(c.body, start)
	if c.pos = end; !ok {
		return c.syntax()
	}
	if flags&(notUTF8|surrogate) != 0 {
		c.violate("utf8", "")
		return true
	}
	if n == nil || n.Kind == Any || n.Kind == Custom {
		if n != nil {
			c.enum(n, c.body[start:end])
		}
		return true
	}
	if !n.IsText() {
		c.violate("type", n.wanted())
		return true
	}
	content := c.body[start+1 : end-1]
	if flags&escaped != 0 {
		c.scratch = appendUnescaped(c.scratch[:0], content)
		content = c.scratch
	}
	c.text(n, content)
	if n.Type == timeType && !c.broken && len(content) <= longestTime {
		if upper := upperTime(string(content)); upper != string(content) && c.rewrites() {
			c.write(start, end, `"`, upper, `"`)
		}
	}
	return true
}

// text checks the content of a string.
func (c *checker) text(n *Node, content []byte) {
	r := &n.Rules
	if r.MinLength.Set || r.MaxLength.Set {
		length := len(content)
		if !r.fitsBytes(length) { // if it fits, the number of characters satisfies the limits, too
			length = utf8.RuneCount(content)
		}
		if r.MinLength.Set && length < r.MinLength.N {
			c.violate("minLength", strconv.Itoa(r.MinLength.N))
		}
		if r.MaxLength.Set && length > r.MaxLength.N {
			c.violate("maxLength", strconv.Itoa(r.MaxLength.N))
		}
	}
	if r.Pattern != nil && !r.Pattern.Match(content) {
		c.violate("pattern", r.Pattern.String())
	}
	if r.enum != nil && !r.hasText(content) {
		c.violate("enum", r.enumText)
	}
	switch {
	case n.Kind == Bytes && !isBase64(string(content)):
		c.violate("format", "byte")
	case r.check != nil && !r.check(string(content)):
		c.violate("format", r.Format)
	case n.decodes != nil && n.decodes(content) != nil:
		c.violate("type", n.typeName())
	}
}

// typeName returns the name of the type of n for messages. If the type has no name, it returns the
// name of the JSON that n accepts.
func (n *Node) typeName() string {
	if n.Type != nil && n.Type.Name() != "" {
		return n.Type.Name()
	}
	return n.wanted()
}

// fitsBytes reports whether every string of n bytes satisfies MinLength and MaxLength, which count
// characters.
func (r *Rules) fitsBytes(n int) bool {
	return (!r.MaxLength.Set || n <= r.MaxLength.N) && (!r.MinLength.Set || (n+3)/4 >= r.MinLength.N)
}

// number checks a number, whose text is well-formed.
func (c *checker) number(n *Node, text []byte) {
	if n == nil {
		return
	}
	switch n.Kind {
	case Int, Uint:
		c.integer(n, text)
	case Float, Number:
		if n.Kind == Float && !fitsFloat(text, n.Bits) {
			c.violate("format", FloatFormat(n.Bits))
			return
		}
		c.bounds(n, text)
	case Any:
		if n.Type != nil && !fitsFloat(text, 64) {
			c.violate("format", "double")
			return
		}
		c.enum(n, text)
	case Custom:
		c.enum(n, text)
	default:
		c.violate("type", n.wanted())
	}
}

func fitsFloat(text []byte, bits int) bool {
	if len(text) < 16 && bits == 64 && strings.IndexByte(string(text), 'e') < 0 && strings.IndexByte(string(text), 'E') < 0 {
		return true
	}
	f, err := strconv.ParseFloat(string(text), bits)
	return err == nil && !math.IsInf(f, 0) && (f != 0 || jsonwire.IsZero(text))
}

// FitsFloat reports whether text is a JSON number and f, the number as a float, is acceptable: f must
// not be infinite, and f may be zero only if the number is zero.
func FitsFloat(text string, f float64) bool {
	return IsNumber(text) && !math.IsInf(f, 0) && (f != 0 || jsonwire.IsZero([]byte(text)))
}

// IsNumber reports whether text is a JSON number.
func IsNumber(text string) bool {
	end, ok := scanNumber([]byte(text), 0)
	return ok && end == len(text)
}

// FloatFormat returns the name of a floating-point type in OpenAPI's format registry.
func FloatFormat(bits int) string {
	if bits == 32 {
		return "float"
	}
	return "double"
}

// integer checks a number that must be an integer. In JSON Schema 1.0 and 1e2 are integers. They are
// rewritten without fraction and exponent.
func (c *checker) integer(n *Node, text []byte) {
	plain := text
	if !isPlainInteger(text) {
		d := parseDecimal(text)
		if !d.isInteger() {
			c.violate("type", "integer")
			return
		}
		var room [24]byte
		var ok bool
		if plain, ok = d.appendInteger(room[:0]); !ok {
			c.violate("format", IntegerFormat(n.Kind, n.Bits))
			return
		}
		if c.rewrites() {
			c.write(c.pos-len(text), c.pos, string(plain))
		}
	}
	var err error
	value, small := int64(0), false
	if n.Kind == Int {
		value, err = strconv.ParseInt(string(plain), 10, n.Bits)
		small = true
	} else {
		var u uint64
		if len(plain) > 1 && plain[0] == '-' && isZeros(plain[1:]) {
			plain = plain[1:] // -0 is 0, but strconv refuses -0 for an unsigned integer
			if c.rewrites() {
				c.write(c.pos-len(text), c.pos, "0")
			}
		}
		u, err = strconv.ParseUint(string(plain), 10, n.Bits)
		value, small = int64(u), u <= math.MaxInt64
	}
	if err != nil {
		c.violate("format", IntegerFormat(n.Kind, n.Bits))
		return
	}
	r := &n.Rules
	if !r.numeric {
		return
	}
	if !small || r.MultipleOf.set && !r.MultipleOf.small {
		c.bounds(n, text)
		return
	}
	if r.Minimum.set && r.Minimum.compareInt(value) < 0 {
		c.violate("minimum", r.Minimum.Text)
	}
	if r.Maximum.set && r.Maximum.compareInt(value) > 0 {
		c.violate("maximum", r.Maximum.Text)
	}
	if r.ExclusiveMinimum.set && r.ExclusiveMinimum.compareInt(value) <= 0 {
		c.violate("exclusiveMinimum", r.ExclusiveMinimum.Text)
	}
	if r.ExclusiveMaximum.set && r.ExclusiveMaximum.compareInt(value) >= 0 {
		c.violate("exclusiveMaximum", r.ExclusiveMaximum.Text)
	}
	if r.MultipleOf.set && value%r.MultipleOf.integer != 0 {
		c.violate("multipleOf", r.MultipleOf.Text)
	}
	c.enum(n, text)
}

func isZeros(text []byte) bool { return len(text) == 1 && text[0] == '0' }

// isPlainInteger reports whether a number has neither fraction nor exponent.
func isPlainInteger(text []byte) bool {
	for i, c := range text {
		if !isDigit(c) && (i > 0 || c != '-') {
			return false
		}
	}
	return true
}

// IntegerFormat returns the name of an integer type in OpenAPI's format registry.
func IntegerFormat(k Kind, bits int) string {
	name := "int" + strconv.Itoa(bits)
	if k == Uint {
		return "u" + name
	}
	return name
}

// bounds checks the numeric rules for a number of any type, without rounding.
func (c *checker) bounds(n *Node, text []byte) {
	r := &n.Rules
	if !r.numeric {
		return
	}
	d := parseDecimal(text)
	if r.Minimum.set && d.compare(&r.Minimum.decimal) < 0 {
		c.violate("minimum", r.Minimum.Text)
	}
	if r.Maximum.set && d.compare(&r.Maximum.decimal) > 0 {
		c.violate("maximum", r.Maximum.Text)
	}
	if r.ExclusiveMinimum.set && d.compare(&r.ExclusiveMinimum.decimal) <= 0 {
		c.violate("exclusiveMinimum", r.ExclusiveMinimum.Text)
	}
	if r.ExclusiveMaximum.set && d.compare(&r.ExclusiveMaximum.decimal) >= 0 {
		c.violate("exclusiveMaximum", r.ExclusiveMaximum.Text)
	}
	if r.MultipleOf.set && !r.MultipleOf.multiple(&d, text) {
		c.violate("multipleOf", r.MultipleOf.Text)
	}
	c.enum(n, text)
}

// enum reports a violation if the value is not one of the permitted values.
func (c *checker) enum(n *Node, text []byte) {
	if r := &n.Rules; r.enum != nil && !r.hasValue(text) {
		c.violate("enum", r.enumText)
	}
}

// Holds reports whether the text of a parameter satisfies the rules. The text must already have been
// parsed as the parameter's type. Holds does not allocate for the rules of strings, except in the
// check of a format, and for the bounds of signed integers.
func (n *Node) Holds(text string) bool {
	r := &n.Rules
	if !r.any {
		return true
	}
	switch {
	case n.IsText():
		length := len(text)
		if !r.fitsBytes(length) {
			length = utf8.RuneCountInString(text)
		}
		return (!r.MinLength.Set || length >= r.MinLength.N) && (!r.MaxLength.Set || length <= r.MaxLength.N) &&
			(r.Pattern == nil || r.Pattern.MatchString(text)) && (r.enum == nil || r.enum[text]) && (r.check == nil || r.check(text))
	case n.Kind == Int && r.enum == nil && (!r.MultipleOf.set || r.MultipleOf.small):
		v, err := strconv.ParseInt(text, 10, n.Bits)
		return err == nil && r.holdsInt(v)
	case n.Kind == Bool && r.enum == nil:
		return true
	}
	var found Report
	n.Scalar([]byte(text), "", "", "", &found)
	return found.OK()
}

// holdsInt reports whether an integer satisfies the numeric rules.
func (r *Rules) holdsInt(v int64) bool {
	return (!r.Minimum.set || r.Minimum.compareInt(v) >= 0) && (!r.Maximum.set || r.Maximum.compareInt(v) <= 0) &&
		(!r.ExclusiveMinimum.set || r.ExclusiveMinimum.compareInt(v) > 0) && (!r.ExclusiveMaximum.set || r.ExclusiveMaximum.compareInt(v) < 0) &&
		(!r.MultipleOf.set || v%r.MultipleOf.integer == 0)
}

// Scalar checks the text of a parameter: the content of a string, or a number or a boolean as in JSON.
// It adds violations with the given source, name and pointer to report.
func (n *Node) Scalar(text []byte, in, name, pointer string, report *Report) {
	if !n.Rules.any && n.decodes == nil {
		return
	}
	var c checker
	var found Report
	c.report, c.in = &found, in
	if n.IsText() {
		c.text(n, text)
	} else {
		c.pos = len(text)
		switch n.Kind {
		case Int, Uint, Float, Number:
			c.number(n, text)
		case Bool:
			c.enum(n, text)
		}
	}
	for _, v := range found.List {
		v.Name, v.Pointer = name, pointer
		report.Add(v)
	}
}

// Items checks the number of elements of a parameter with several values, and whether the elements are
// unique. texts has the elements as they were sent. The violations have the given source and name.
func (n *Node) Items(texts []string, in, name string, report *Report) {
	n.Count(len(texts), in, name, report)
	if !n.Rules.UniqueItems {
		return
	}
	seen := make(map[string]struct{}, len(texts))
	for i, text := range texts {
		if n.Elem != nil && (n.Elem.Kind == Int || n.Elem.Kind == Uint || n.Elem.Kind == Float) {
			d := parseDecimal([]byte(text))
			text = string(d.appendCanonical(nil))
		}
		if _, twice := seen[text]; twice {
			report.Add(Violation{In: in, Name: name, Rule: "uniqueItems", Limit: strconv.Itoa(i)})
			return
		}
		seen[text] = struct{}{}
	}
}

// Count checks the number of elements of a parameter.
func (n *Node) Count(count int, in, name string, report *Report) {
	r := &n.Rules
	if r.MinItems.Set && count < r.MinItems.N {
		report.Add(Violation{In: in, Name: name, Rule: "minItems", Limit: strconv.Itoa(r.MinItems.N)})
	}
	if r.MaxItems.Set && count > r.MaxItems.N {
		report.Add(Violation{In: in, Name: name, Rule: "maxItems", Limit: strconv.Itoa(r.MaxItems.N)})
	}
}
