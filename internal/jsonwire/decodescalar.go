package jsonwire

import (
	"bytes"
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"
)

// string reads a string from the position after its opening quote. It returns a copy of the decoded string (see Strings).
func (d *decoder) string(i int) (s string, next int) {
	data := d.data
	end := scanPlain(data, i)
	if end < len(data) && data[end] == '"' {
		// This is d.strings.copy, inlined, because most strings are short.
		n := end - i
		if rest := d.strings.rest; uint(n-1) < copyBlock && len(rest) >= copyBlock && len(data)-i >= copyBlock {
			*(*[copyBlock]byte)(rest) = [copyBlock]byte(data[i:])
			d.strings.rest = rest[n:]
			return bytesString(rest[:n]), end + 1
		}
		return d.strings.copy(data[i:end], len(data)-i), end + 1
	}
	return d.oddString(i, end)
}

// oddString reads a string that has an escape or a byte that is not ASCII. i is the position after the opening quote. The bytes
// from i to at are plain ASCII.
func (d *decoder) oddString(i, at int) (s string, next int) {
	next, escaped, ok := scanString(d.data, at)
	if !ok {
		return "", d.syntax(next)
	}
	raw := d.data[i : next-1]
	if !escaped && utf8.Valid(raw) {
		return d.strings.copy(raw, len(d.data)-i), next
	}
	extra := replacementBytes(raw)
	if extra > 0 && d.limits.InvalidUTF8 {
		return "", d.refuse(ProblemUTF8, i-1)
	}
	if extra > 0 && !d.charge(extra) {
		return "", -1
	}
	s, invalid := d.strings.unquote(raw, extra, len(d.data)-i)
	if invalid && d.limits.InvalidUTF8 {
		return "", d.refuse(ProblemUTF8, i-1)
	}
	return s, next
}

// word reads one of the words null, true and false. The caller has checked the first byte.
func (d *decoder) word(i int, word string) int {
	next, ok := scanWord(d.data, i, word)
	if !ok {
		return d.syntax(next)
	}
	return next
}

func (d *decoder) bool(m memory, i int) int {
	if d.data[i] == 't' {
		store(m, true)
		return d.word(i, "true")
	}
	store(m, false)
	return d.word(i, "false")
}

// maxDigits is the maximum number of digits with which no integer overflows a uint64.
const maxDigits = 19

// digits64 reads zero or more digits and returns their value n. n is invalid if there are more than maxDigits digits.
func digits64(data []byte, i int) (n uint64, next int) {
	for i < len(data) && data[i]-'0' <= 9 {
		n = n*10 + uint64(data[i]-'0')
		i++
	}
	return n, i
}

// continues reports whether a number continues at i with a fraction or an exponent.
func continues(data []byte, i int) bool {
	return i < len(data) && (data[i] == '.' || data[i]|0x20 == 'e')
}

// int reads a number into a signed integer of any size.
func (d *decoder) int(p *decodePlan, m memory, i int) int {
	data, first := d.data, i
	negative := data[i] == '-'
	if negative {
		first++
	}
	n, next := digits64(data, first)
	if next == first || next-first > maxDigits || data[first] == '0' && next-first > 1 || continues(data, next) || next-i > d.limits.MaxNumber {
		var ok bool
		if n, next, ok = d.longInt(i); !ok {
			return d.badNumber(p, i, next)
		}
	}
	v := int64(n)
	if negative {
		v = -v
	}
	// If n exceeds the maximum of an int64, the number overflows, unless it is the minimum -1<<63. In that case v is correct,
	// because the minimum is its own negation.
	if n > math.MaxInt64 && !(negative && n == 1<<63) {
		return d.badNumber(p, i, next)
	}
	switch p.op {
	case opInt64:
		store(m, v)
		return next
	case opInt32:
		if v == int64(int32(v)) {
			store(m, int32(v))
			return next
		}
	case opInt16:
		if v == int64(int16(v)) {
			store(m, int16(v))
			return next
		}
	default:
		if v == int64(int8(v)) {
			store(m, int8(v))
			return next
		}
	}
	return d.badNumber(p, i, next)
}

// uint reads a number into an unsigned integer of any size.
func (d *decoder) uint(p *decodePlan, m memory, i int) int {
	data := d.data
	n, next := digits64(data, i)
	if next == i || next-i > maxDigits || data[i] == '0' && next-i > 1 || continues(data, next) || next-i > d.limits.MaxNumber {
		var ok bool
		if n, next, ok = d.longInt(i); !ok || data[i] == '-' && !(n == 0 && d.limits.FractionlessFloat) {
			return d.badNumber(p, i, next)
		}
	}
	switch p.op {
	case opUint64:
		store(m, n)
		return next
	case opUint32:
		if n == uint64(uint32(n)) {
			store(m, uint32(n))
			return next
		}
	case opUint16:
		if n == uint64(uint16(n)) {
			store(m, uint16(n))
			return next
		}
	default:
		if n == uint64(uint8(n)) {
			store(m, uint8(n))
			return next
		}
	}
	return d.badNumber(p, i, next)
}

// longInt reads a number that the methods int and uint do not read themselves: the number has many digits, a fraction or an
// exponent, or is invalid or too long. n is the absolute value. ok is false if the value is not an integer, overflows 64 bits,
// or is refused. If it is refused, next is -1.
func (d *decoder) longInt(i int) (n uint64, next int, ok bool) {
	next = d.numberEnd(i)
	if next < 0 {
		return 0, next, false
	}
	text := d.data[i:next]
	if text[0] == '-' {
		text = text[1:]
	}
	n, end := digits64(text, 0)
	if end < len(text) {
		if !d.limits.FractionlessFloat {
			return 0, next, false
		}
		n, ok = wholeNumber(text)
		return n, next, ok
	}
	if len(text) > maxDigits {
		var err error
		n, err = strconv.ParseUint(bytesString(text), 10, 64)
		return n, next, err == nil
	}
	return n, next, true
}

// wholeNumber returns the value of a number without a sign that has a fraction or an exponent. ok is false if the value is not
// an integer of 64 bits.
func wholeNumber(text []byte) (n uint64, ok bool) {
	_, point := digits64(text, 0)
	digits, exponent, end := text[:point:point], 0, point
	if end < len(text) && text[end] == '.' {
		_, end = digits64(text, point+1)
		digits = append(digits, text[point+1:end]...)
		exponent = -(end - point - 1)
	}
	extreme := false
	if end < len(text) {
		e, err := strconv.Atoi(bytesString(text[end+1:]))
		extreme = err != nil || e > len(text)+maxDigits || -e > len(text)
		exponent += e
	}
	digits = bytes.TrimLeft(digits, "0")
	trimmed := bytes.TrimRight(digits, "0")
	exponent += len(digits) - len(trimmed)
	switch {
	case len(trimmed) == 0:
		return 0, true
	case extreme, exponent < 0, len(trimmed)+exponent > maxDigits+1:
		return 0, false
	}
	var room [maxDigits + 1]byte
	whole := append(room[:0], trimmed...)
	for range exponent {
		whole = append(whole, '0')
	}
	n, err := strconv.ParseUint(string(whole), 10, 64)
	return n, err == nil
}

// numberEnd checks the grammar and the length of a number and returns its end, or -1.
func (d *decoder) numberEnd(i int) int {
	next, ok := scanNumber(d.data, i)
	if !ok {
		return d.syntax(next)
	}
	if next-i > d.limits.MaxNumber {
		return d.refuse(ProblemNumber, i)
	}
	return next
}

// badNumber refuses the number data[i:next], which does not fit the type of p. If next is negative, the text has already been
// refused.
func (d *decoder) badNumber(p *decodePlan, i, next int) int {
	if next < 0 {
		return next
	}
	return d.mismatch(p, i)
}

// exactPowers has the powers of ten that float64 represents exactly.
var exactPowers = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// float reads a number into a floating-point number.
func (d *decoder) float(p *decodePlan, m memory, i int) int {
	if p.op == opFloat32 {
		next := d.numberEnd(i)
		if next < 0 {
			return next
		}
		v, err := strconv.ParseFloat(bytesString(d.data[i:next]), 32)
		if err != nil || v == 0 && d.underflows(i, next) {
			return d.mismatch(p, i)
		}
		store(m, float32(v))
		return next
	}
	v, next, ok := d.float64(i)
	if !ok {
		return d.badNumber(p, i, next)
	}
	store(m, v)
	return next
}

// float64 reads a number. next is negative if the text is refused. A number with up to 15 digits is an integer divided by a
// power of ten. The type float64 represents both exactly, so the result is rounded only once.
func (d *decoder) float64(i int) (v float64, next int, ok bool) {
	data, first := d.data, i
	if data[i] == '-' {
		first++
	}
	n, end := digits64(data, first)
	next = end
	if end < len(data) && data[end] == '.' {
		var fraction uint64
		if fraction, next = digits64(data, end+1); next-first <= 16 && next > end+1 {
			n = n*powersOf10[next-end-1] + fraction
		}
	}
	if next-first > 16 || end == first || next == end+1 || data[first] == '0' && end-first > 1 ||
		next < len(data) && data[next]|0x20 == 'e' || next-i > d.limits.MaxNumber {
		if next = d.numberEnd(i); next < 0 {
			return 0, next, false
		}
		v, err := strconv.ParseFloat(bytesString(data[i:next]), 64)
		return v, next, err == nil && !(v == 0 && d.underflows(i, next))
	}
	v = float64(n)
	if next > end {
		v /= exactPowers[next-end-1]
	}
	if first > i {
		v = -v
	}
	return v, next, true
}

// underflows reports whether the number data[i:next] is refused by Limits.Underflow. The number was rounded to zero.
func (d *decoder) underflows(i, next int) bool {
	return d.limits.Underflow && !IsZero(d.data[i:next])
}

// IsZero reports whether the text of a number is zero.
func IsZero(number []byte) bool {
	for _, c := range number {
		switch {
		case '1' <= c && c <= '9':
			return false
		case c|0x20 == 'e':
			return true
		}
	}
	return true
}

// number reads a json.Number: a number, or a string that contains a number.
func (d *decoder) number(p *decodePlan, m memory, i int) int {
	if d.data[i] != '"' {
		next := d.numberEnd(i)
		if next >= 0 {
			store(m, d.strings.copy(d.data[i:next], len(d.data)-i))
		}
		return next
	}
	s, next := d.string(i + 1)
	switch {
	case next < 0:
		return next
	case !isNumber(s), len(s) > d.limits.MaxNumber:
		return d.mismatch(p, i)
	}
	store(m, s)
	return next
}

// base64 reads a string that contains base64 into a slice of bytes.
func (d *decoder) base64(p *decodePlan, m memory, i int) int {
	text, next := d.lentText(i)
	if next < 0 {
		return next
	}
	if !d.charge(base64.StdEncoding.DecodedLen(len(text))) {
		return -1
	}
	b := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(b, text)
	if err != nil {
		return d.unfit(ProblemType, p, i, err)
	}
	store(m, b[:n])
	return next
}

// lentText reads a string and returns its decoded bytes, which are valid until the next call.
func (d *decoder) lentText(i int) (text []byte, next int) {
	end := scanPlain(d.data, i+1)
	if end < len(d.data) && d.data[end] == '"' {
		return d.data[i+1 : end : end], end + 1
	}
	s, next := d.oddString(i+1, end)
	return viewedBytes(s), next
}

// viewText returns the string data[i:next] decoded and without its quotes, as a view that is valid as long as data. The string
// has already been read once.
func (d *decoder) viewText(i, next int) string {
	raw := d.data[i+1 : next-1]
	if scanPlain(raw, 0) == len(raw) {
		return bytesString(raw)
	}
	var s Strings
	text, _ := s.unquote(raw, replacementBytes(raw), len(raw))
	return text
}
