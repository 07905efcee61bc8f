package schema

import (
	"math/big"
	bits64 "math/bits"
	"strconv"
)

// A decimal is the exact value of the text of a number: 0.digits × 10^exp. The digits neither begin nor
// end with a zero. Zero has no digits.
type decimal struct {
	negative bool
	whole    []byte // the significant digits are whole followed by fraction
	fraction []byte
	exp      int64
}

// maxExponent is the maximum absolute value of an exponent in a text. Larger exponents are replaced by
// it.
const maxExponent = 1 << 30

// parseDecimal parses a number that is well-formed according to RFC 8259.
func parseDecimal(text []byte) (d decimal) {
	if text[0] == '-' {
		d.negative = true
		text = text[1:]
	}
	i := 0
	for i < len(text) && isDigit(text[i]) {
		i++
	}
	d.whole = text[:i]
	if i < len(text) && text[i] == '.' {
		start := i + 1
		for i++; i < len(text) && isDigit(text[i]); i++ {
		}
		d.fraction = text[start:i]
	}
	if i < len(text) {
		d.exp = exponent(text[i+1:])
	}
	for len(d.whole) > 0 && d.whole[0] == '0' {
		d.whole = d.whole[1:]
	}
	d.exp += int64(len(d.whole))
	if len(d.whole) == 0 {
		for len(d.fraction) > 0 && d.fraction[0] == '0' {
			d.fraction = d.fraction[1:]
			d.exp--
		}
	}
	for len(d.fraction) > 0 && d.fraction[len(d.fraction)-1] == '0' {
		d.fraction = d.fraction[:len(d.fraction)-1]
	}
	if len(d.fraction) == 0 {
		for len(d.whole) > 0 && d.whole[len(d.whole)-1] == '0' {
			d.whole = d.whole[:len(d.whole)-1]
		}
	}
	if d.isZero() {
		return decimal{}
	}
	return d
}

func exponent(text []byte) int64 {
	negative := text[0] == '-'
	if negative || text[0] == '+' {
		text = text[1:]
	}
	n := int64(0)
	for _, c := range text {
		if n = n*10 + int64(c-'0'); n > maxExponent {
			n = maxExponent
		}
	}
	if negative {
		return -n
	}
	return n
}

func (d *decimal) isZero() bool { return len(d.whole) == 0 && len(d.fraction) == 0 }

func (d *decimal) digits() int { return len(d.whole) + len(d.fraction) }

// digit returns the significant digit i, or '0' if i is after the last digit.
func (d *decimal) digit(i int) byte {
	if i < len(d.whole) {
		return d.whole[i]
	}
	if i -= len(d.whole); i < len(d.fraction) {
		return d.fraction[i]
	}
	return '0'
}

// isInteger reports whether the value is an integer. Its text may have a fraction or an exponent.
func (d *decimal) isInteger() bool { return int64(d.digits()) <= d.exp || d.isZero() }

// compare returns -1 if d is less than e, 0 if they are equal, and +1 if d is greater.
func (d *decimal) compare(e *decimal) int {
	switch {
	case d.isZero() && e.isZero():
		return 0
	case d.isZero():
		return -e.sign()
	case e.isZero() || d.negative != e.negative:
		return d.sign()
	}
	order := 0
	switch {
	case d.exp != e.exp:
		order = 1
		if d.exp < e.exp {
			order = -1
		}
	default:
		for i := range max(d.digits(), e.digits()) {
			if a, b := d.digit(i), e.digit(i); a != b {
				order = 1
				if a < b {
					order = -1
				}
				break
			}
		}
	}
	return order * d.sign()
}

func (d *decimal) sign() int {
	if d.negative {
		return -1
	}
	return 1
}

// appendInteger appends an integer without fraction and exponent. It returns false if the integer
// has more than 20 digits.
func (d *decimal) appendInteger(b []byte) ([]byte, bool) {
	if d.isZero() {
		return append(b, '0'), true
	}
	if d.exp > 20 {
		return b, false
	}
	if d.negative {
		b = append(b, '-')
	}
	for i := range int(d.exp) {
		b = append(b, d.digit(i))
	}
	return b, true
}

// appendCanonical appends the canonical text of the number. Equal numbers have the same canonical text.
func (d *decimal) appendCanonical(b []byte) []byte {
	if d.isZero() {
		return append(b, '0')
	}
	if d.negative {
		b = append(b, '-')
	}
	b = append(append(b, d.whole...), d.fraction...)
	// parseDecimal has removed the zeros at both ends of the digits, so equal numbers have equal digits.
	return strconv.AppendInt(append(b, 'e'), d.exp, 10)
}

// A Bound is a number that a rule sets.
type Bound struct {
	Text    string // text of the number in JSON
	decimal decimal
	integer int64 // the number, if small is true
	small   bool  // the number is an integer that fits an int64
	set     bool
}

// IsSet reports whether the rule is set.
func (b *Bound) IsSet() bool { return b.set }

func newBound(text string) (Bound, bool) {
	if end, ok := scanNumber([]byte(text), 0); !ok || end != len(text) {
		return Bound{}, false
	}
	b := Bound{Text: text, decimal: parseDecimal([]byte(text)), set: true}
	n, err := strconv.ParseInt(text, 10, 64)
	b.integer, b.small = n, err == nil
	return b, true
}

// compareInt returns -1 if n is less than the bound, 0 if they are equal, and +1 if n is greater.
func (b *Bound) compareInt(n int64) int {
	if b.small {
		switch {
		case n < b.integer:
			return -1
		case n > b.integer:
			return 1
		}
		return 0
	}
	var text [24]byte
	d := parseDecimal(strconv.AppendInt(text[:0], n, 10))
	return d.compare(&b.decimal)
}

// compareUint is compareInt for unsigned integers.
func (b *Bound) compareUint(n uint64) int {
	var text [24]byte
	d := parseDecimal(strconv.AppendUint(text[:0], n, 10))
	return d.compare(&b.decimal)
}

// between returns the smallest and the largest integer from low to high that satisfies the bounds. If no
// integer satisfies them, ok is false and least > most. The argument compare compares an integer with a
// bound.
func (r *Rules) between(low, high uint64, compare func(*Bound, uint64) int) (least, most uint64, ok bool) {
	least, ok = firstOf(low, high, func(v uint64) bool {
		return (!r.Minimum.set || compare(&r.Minimum, v) >= 0) && (!r.ExclusiveMinimum.set || compare(&r.ExclusiveMinimum, v) > 0)
	})
	beyond, some := firstOf(low, high, func(v uint64) bool {
		return r.Maximum.set && compare(&r.Maximum, v) > 0 || r.ExclusiveMaximum.set && compare(&r.ExclusiveMaximum, v) >= 0
	})
	if most = high; some {
		most = beyond - 1
	}
	if !ok || some && beyond == low || least > most {
		return 1, 0, false
	}
	return least, most, true
}

// betweenSigned is like the method between, for signed integers.
func (r *Rules) betweenSigned(low, high int64) (least, most int64, ok bool) {
	const flip = 1 << 63 // maps the order of signed integers to the order of unsigned integers
	from, to, ok := r.between(uint64(low)^flip, uint64(high)^flip, func(b *Bound, v uint64) int { return b.compareInt(int64(v ^ flip)) })
	if !ok {
		return 1, 0, false
	}
	return int64(from ^ flip), int64(to ^ flip), true
}

// firstOf returns the first number from low to high that satisfies the condition so. It returns false if
// no number satisfies the condition. If a number satisfies the condition, all larger numbers must
// satisfy it, too.
func firstOf(low, high uint64, so func(uint64) bool) (uint64, bool) {
	for low < high {
		if middle := low + (high-low)/2; so(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low, so(low)
}

// multiple reports whether the number d, whose text is text, is a multiple of the bound. The bound must
// be positive.
func (b *Bound) multiple(d *decimal, text []byte) bool {
	if d.isZero() {
		return true
	}
	// Each of the two numbers is an integer, D or S, times a power of ten. D does not end in a zero.
	step := &b.decimal
	power := (d.exp - int64(d.digits())) - (step.exp - int64(step.digits()))
	if power < 0 {
		return false
	}
	if step.digits() <= 18 {
		var s uint64
		for i := range step.digits() {
			s = s*10 + uint64(step.digit(i)-'0')
		}
		return d.modulo(s, power) == 0
	}
	if power > 1000 {
		return false // refused, because a few bytes from a client must not cause a long computation
	}
	n, ok := new(big.Rat).SetString(string(text))
	by, okBy := new(big.Rat).SetString(b.Text)
	return ok && okBy && n.Quo(n, by).IsInt()
}

// modulo returns the remainder of D × 10^power divided by s, where D is the integer of the significant
// digits. s must be less than 10^18.
func (d *decimal) modulo(s uint64, power int64) uint64 {
	times := func(a, b uint64) uint64 {
		high, low := bits64.Mul64(a, b)
		return bits64.Rem64(high, low, s)
	}
	left := uint64(0)
	for i := range d.digits() {
		left = (left*10 + uint64(d.digit(i)-'0')) % s // the dividend is less than 10^19, so it does not overflow
	}
	for base := 10 % s; power > 0; power >>= 1 {
		if power&1 == 1 {
			left = times(left, base)
		}
		base = times(base, base)
	}
	return left
}
