package jsonwire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"strconv"
)

// pairs contains the two-digit numbers from 00 to 99.
const pairs = "00010203040506070809" +
	"10111213141516171819" +
	"20212223242526272829" +
	"30313233343536373839" +
	"40414243444546474849" +
	"50515253545556575859" +
	"60616263646566676869" +
	"70717273747576777879" +
	"80818283848586878889" +
	"90919293949596979899"

// powersOf10[d] is the smallest number of d+1 digits. powersOf10[0] is 0, because 0 also has one digit.
var powersOf10 = [...]uint64{
	0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
	1e16, 1e17, 1e18, 1e19,
}

// digits returns the number of decimal digits of u.
func digits(u uint64) int {
	// log10(2) is about 1233/4096. The comparison corrects the estimate.
	d := bits.Len64(u|1) * 1233 >> 12
	if u >= powersOf10[d] {
		d++
	}
	return max(d, 1)
}

// putUint writes u into b at n and returns the position after the digits. At least maxScalar bytes must be available there.
func putUint(b []byte, n int, u uint64) int {
	if u >= 1e4 {
		return putLong(b, n, u)
	}
	d := b[n : n+4]
	switch high, low := u/100, u%100*2; {
	case u < 10:
		d[0] = byte('0' + u)
		return n + 1
	case u < 100:
		d[0], d[1] = pairs[low], pairs[low+1]
		return n + 2
	case u < 1000:
		d[0], d[1], d[2] = byte('0'+high), pairs[low], pairs[low+1]
		return n + 3
	default:
		high *= 2
		d[0], d[1], d[2], d[3] = pairs[high], pairs[high+1], pairs[low], pairs[low+1]
		return n + 4
	}
}

// putLong is putUint for numbers of at least two digits. It writes pairs of digits, and begins with the last pair.
func putLong(b []byte, n int, u uint64) int {
	end := n + digits(u)
	i := end
	for u >= 100 {
		i -= 2
		pair := u % 100 * 2
		u /= 100
		b[i], b[i+1] = pairs[pair], pairs[pair+1]
	}
	if u >= 10 {
		b[n], b[n+1] = pairs[u*2], pairs[u*2+1]
	} else {
		b[n] = byte('0' + u)
	}
	return end
}

// putInt is putUint for signed numbers.
func putInt(b []byte, n int, i int64) int {
	if i < 0 {
		b[n] = '-'
		return putUint(b, n+1, -uint64(i))
	}
	return putUint(b, n, uint64(i))
}

func appendInt(dst []byte, i int64) []byte {
	n := len(dst)
	if cap(dst)-n < maxScalar {
		dst = grow(dst, maxScalar)
	}
	return dst[:putInt(dst[:cap(dst)], n, i)]
}

func appendUint(dst []byte, u uint64) []byte {
	n := len(dst)
	if cap(dst)-n < maxScalar {
		dst = grow(dst, maxScalar)
	}
	return dst[:putUint(dst[:cap(dst)], n, u)]
}

// appendFloat appends f in the format of ECMAScript: the shortest digits that are parsed as f, with an exponent if the absolute value
// is below 1e-6 or at least 1e21.
func appendFloat(dst []byte, f float64, width int, p *plan) ([]byte, *Error) {
	abs := math.Abs(f)
	if whole := int64(f); float64(whole) == f && abs < 1<<24 && !(f == 0 && math.Signbit(f)) {
		// Both float32 and float64 represent this value exactly, so its shortest digits are all of its digits.
		return appendInt(dst, whole), nil
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		v := reflect.New(p.typ).Elem()
		v.SetFloat(f)
		return dst, &Error{Err: &json.UnsupportedValueError{
			Value: v, Str: strconv.FormatFloat(f, 'g', -1, width),
		}}
	}
	small, large := abs < 1e-6, abs >= 1e21
	if width == 32 {
		small, large = float32(abs) < 1e-6, float32(abs) >= 1e21
	}
	if abs == 0 || !small && !large {
		return strconv.AppendFloat(dst, f, 'f', -1, width), nil
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, width)
	// strconv writes at least two digits in an exponent, and ECMAScript writes no leading zero: e-09 becomes e-9. Positive exponents
	// are at least 21.
	if n := len(dst); dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst, nil
}

// appendNumber appends a json.Number. The empty json.Number is written as 0.
func appendNumber(dst []byte, s string) ([]byte, *Error) {
	if s == "" {
		s = "0"
	}
	if !isNumber(s) {
		return dst, &Error{Err: fmt.Errorf("json: invalid number literal %q", s)}
	}
	return append(dst, s...), nil
}

// isNumber reports whether s is a JSON number (RFC 8259, section 6).
func isNumber(s string) bool {
	digits := func(s string) (n int) {
		for n < len(s) && '0' <= s[n] && s[n] <= '9' {
			n++
		}
		return n
	}
	if s != "" && s[0] == '-' {
		s = s[1:]
	}
	n := digits(s)
	if n == 0 || n > 1 && s[0] == '0' {
		return false
	}
	s = s[n:]
	if s != "" && s[0] == '.' {
		n = digits(s[1:])
		if n == 0 {
			return false
		}
		s = s[1+n:]
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		n = digits(s)
		if n == 0 {
			return false
		}
		s = s[n:]
	}
	return s == ""
}

func appendBase64(dst, b []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, b)
	return append(dst, '"')
}
