package router

import "strings"

// builtins has the constraints that every router has. Each has an expression that matches all values that its function
// accepts, and perhaps more. The detection of conflicts compares expressions, because it cannot compare functions.
var builtins = map[string]*constraint{
	"int":   builtin("int", intValue, `-?[0-9]+`),
	"uint":  builtin("uint", uintValue, `[0-9]+`),
	"uuid":  builtin("uuid", uuidValue, `[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`),
	"ipv4":  builtin("ipv4", ipv4Value, `[0-9]{1,3}(\.[0-9]{1,3}){3}`),
	"ipv6":  builtin("ipv6", ipv6Value, `[0-9a-fA-F]{0,4}:[0-9a-fA-F]{0,4}:[0-9a-fA-F:.]*`),
	"hex":   builtin("hex", hexValue, `[0-9a-fA-F]+`),
	"alpha": builtin("alpha", alphaValue, `[a-zA-Z]+`),
	"alnum": builtin("alnum", alnumValue, `[0-9a-zA-Z]+`),
	"slug":  builtin("slug", slugValue, `[a-z0-9]+(-[a-z0-9]+)*`),
	"date":  builtin("date", dateValue, `[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])`),
	"bool":  builtin("bool", boolValue, `true|false`),
}

func builtin(name string, kind valueKind, superset string) *constraint {
	return &constraint{text: name, kind: kind, superset: superset}
}

// A valueKind identifies the function that checks a value. Unlike a function value it is small enough for a node.
type valueKind uint8

const (
	anyValue valueKind = iota // parameter without a constraint
	intValue
	uintValue
	uuidValue
	ipv4Value
	ipv6Value
	hexValue
	alphaValue
	alnumValue
	slugValue
	dateValue
	boolValue
	otherValue // every other segment with parameters
)

// valueChecks has the function of each kind except otherValue. No function accepts an empty segment, "." or "..".
var valueChecks = [16]func(string) bool{
	anyValue:   matchAny,
	intValue:   matchInt,
	uintValue:  matchUint,
	uuidValue:  matchUUID,
	ipv4Value:  matchIPv4,
	ipv6Value:  matchIPv6,
	hexValue:   matchHex,
	alphaValue: matchAlpha,
	alnumValue: matchAlnum,
	slugValue:  matchSlug,
	dateValue:  matchDate,
	boolValue:  matchBool,
}

// matches reports whether the function of kind k accepts the value. k must not be otherValue.
func (k valueKind) matches(value string) bool { return valueChecks[k&15](value) }

// matchAny accepts all values except "", "." and "..".
func matchAny(s string) bool { return s != "" && (s[0] != '.' || !isDotSegment(s)) }

// matchInt accepts decimal integers, with an optional minus sign, that fit an int64.
func matchInt(s string) bool {
	if digits, negative := strings.CutPrefix(s, "-"); negative {
		return fitsDecimal(digits, "9223372036854775808")
	}
	return fitsDecimal(s, "9223372036854775807")
}

// matchUint accepts decimal integers without a sign that fit a uint64.
func matchUint(s string) bool { return fitsDecimal(s, "18446744073709551615") }

// fitsDecimal reports whether s consists of digits and its number is at most limit. limit must not have leading zeros.
func fitsDecimal(s, limit string) bool {
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) {
			return false
		}
	}
	if len(s) < len(limit) {
		return s != ""
	}
	s = strings.TrimLeft(s, "0")
	return len(s) < len(limit) || len(s) == len(limit) && s <= limit
}

// matchUUID accepts the 8-4-4-4-12 form in upper or lower case, with any version and variant. It checks eight bytes at a
// time, after it has replaced the hyphens among them by digits.
func matchUUID(s string) bool {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	const digit = '-' ^ '0'
	return hexWord(load(s, 0)) &&
		hexWord(load(s, 9)^digit<<32) && // 9-12 13 14-16
		hexWord(load(s, 16)^digit<<16^digit<<56) && // 16-17 18 19-22 23
		hexWord(load(s, 24)) && hexWord(load(s, 28))
}

// hexWord reports whether all 8 bytes of a word are hexadecimal digits.
func hexWord(word uint64) bool {
	const each, top = 0x0101010101010101, 0x8080808080808080
	// Adding 0x80-x to a byte below 0x80 sets the top bit of the byte if the byte is at least x. The addition does not
	// carry into the next byte.
	digits := (word + (0x80-'0')*each) &^ (word + (0x80-'9'-1)*each)
	letters := word | 0x20*each
	letters = (letters + (0x80-'a')*each) &^ (letters + (0x80-'f'-1)*each)
	return (digits|letters)&top&^word == top
}

// matchIPv4 accepts four decimal numbers up to 255 without leading zeros.
func matchIPv4(s string) bool {
	if len(s) < len("0.0.0.0") || len(s) > len("255.255.255.255") {
		return false
	}
	i := 0
	for octet := 1; ; octet++ {
		if i == len(s) || !isDigit(s[i]) {
			return false
		}
		first := i
		value := uint(s[i] - '0')
		for i++; i < len(s) && isDigit(s[i]); i++ {
			value = 10*value + uint(s[i]-'0')
		}
		// An address has at most 15 digits, so value cannot overflow.
		if value > 255 || s[first] == '0' && i > first+1 {
			return false
		}
		if octet == 4 {
			return i == len(s)
		}
		if i == len(s) || s[i] != '.' {
			return false
		}
		i++
	}
}

// matchIPv6 accepts the text forms of RFC 4291 section 2.2, without a zone.
func matchIPv6(s string) bool {
	const hextets = 8
	n, gap := 0, false // number of groups read; whether "::" was read
	complete := func() bool { return gap && n < hextets || !gap && n == hextets }
	if rest, ok := strings.CutPrefix(s, "::"); ok {
		s, gap = rest, true
		if s == "" {
			return true
		}
	}
	for {
		digits := 0
		for digits < len(s) && isHex(s[digits]) {
			digits++
		}
		if digits > 0 && digits < len(s) && s[digits] == '.' {
			// An IPv4 address replaces the last two groups.
			n += 2
			return matchIPv4(s) && complete()
		}
		if digits == 0 || digits > 4 {
			return false
		}
		n++
		s = s[digits:]
		switch {
		case s == "":
			return complete()
		case s[0] != ':' || n == hextets:
			return false
		}
		s = s[1:]
		if rest, ok := strings.CutPrefix(s, ":"); ok {
			if gap {
				return false
			}
			s, gap = rest, true
			if s == "" {
				return complete()
			}
		}
	}
}

func matchHex(s string) bool { return s != "" && hexOnly(s) }

func matchAlpha(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isAlpha(s[i]) {
			return false
		}
	}
	return s != ""
}

func matchAlnum(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isAlpha(s[i]) && !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

// matchSlug accepts words of lower-case letters and digits, joined by single hyphens.
func matchSlug(s string) bool {
	word := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z' || isDigit(c):
			word = true
		case c == '-' && word:
			word = false
		default:
			return false
		}
	}
	return word
}

// matchDate accepts the days of the Gregorian calendar as YYYY-MM-DD (RFC 3339 full-date).
func matchDate(s string) bool {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return false
	}
	for _, i := range [...]int{0, 1, 2, 3, 5, 6, 8, 9} {
		if !isDigit(s[i]) {
			return false
		}
	}
	two := func(i int) int { return int(s[i]-'0')*10 + int(s[i+1]-'0') }
	year, month, day := two(0)*100+two(2), two(5), two(8)
	if month < 1 || month > 12 || day < 1 {
		return false
	}
	days := [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		days = 29
	}
	return day <= days
}

func matchBool(s string) bool { return s == "true" || s == "false" }

func hexOnly(s string) bool {
	for len(s) >= 8 {
		if !hexWord(load(s, 0)) {
			return false
		}
		s = s[8:]
	}
	for i := 0; i < len(s); i++ {
		if !isHex(s[i]) {
			return false
		}
	}
	return true
}
