package router

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// A methodSet has a bit for every method that a router knows.
type methodSet uint64

// Every router knows the following methods. Other methods of routes get the next bits. anyMethod is the bit of
// routes for "*". A method that no route names has only this bit.
const (
	methodGet methodSet = 1 << iota
	methodHead
	methodPost
	methodPut
	methodPatch
	methodDelete
	methodOptions
	methodConnect
	methodTrace

	standardMethods = iota

	anyMethod methodSet = 1 << 63

	maxMethods = 63
)

// standardNames has the names of the standard methods in the order of their bits.
var standardNames = [standardMethods]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"}

// methodTable has the names of the other methods of routes, in the order of their bits.
type methodTable struct{ custom []string }

// standardBit returns the bit of a standard method, or 0.
func standardBit(method string) methodSet {
	switch method {
	case "GET":
		return methodGet
	case "HEAD":
		return methodHead
	case "POST":
		return methodPost
	case "PUT":
		return methodPut
	case "PATCH":
		return methodPatch
	case "DELETE":
		return methodDelete
	case "OPTIONS":
		return methodOptions
	case "CONNECT":
		return methodConnect
	case "TRACE":
		return methodTrace
	}
	return 0
}

// bit returns the bit of a method, or anyMethod if the method is not standard and no route names it. t may be nil.
func (t *methodTable) bit(method string) methodSet {
	if bit := standardBit(method); bit != 0 {
		return bit
	}
	if t != nil {
		if i := slices.Index(t.custom, method); i >= 0 {
			return 1 << (standardMethods + i)
		}
	}
	return anyMethod
}

// parse parses a set of methods. It returns the set, and the table with the new methods of the set. t may be nil.
func (t *methodTable) parse(text string) (methodSet, *methodTable, error) {
	if strings.TrimSpace(text) == "*" {
		return anyMethod, t, nil
	}
	var set methodSet
	for method := range strings.SplitSeq(text, ",") {
		method = strings.TrimSpace(method)
		switch {
		case method == "":
			return 0, t, errors.New(`empty method; write "*" for any`)
		case strings.ContainsFunc(method, func(r rune) bool { return !isTokenRune(r) }):
			return 0, t, fmt.Errorf("%q is not a method", method)
		}
		if upper := strings.ToUpper(method); upper != method && standardBit(upper) != 0 {
			return 0, t, fmt.Errorf("method %s must be written %s, as clients send it", method, upper)
		}
		bit := t.bit(method)
		if bit == anyMethod {
			var custom []string
			if t != nil {
				custom = t.custom
			}
			if len(custom) == maxMethods-standardMethods {
				return 0, t, fmt.Errorf("too many methods: %q exceeds the maximum of %d", method, maxMethods)
			}
			bit = 1 << (standardMethods + len(custom))
			t = &methodTable{custom: append(slices.Clone(custom), method)}
		}
		set |= bit
	}
	return set, t, nil
}

// allow returns a set as the value of an Allow header (RFC 9110 section 10.2.1), in the order of the bits. It adds
// OPTIONS, and adds HEAD if the set has GET.
func (t *methodTable) allow(set methodSet) string {
	set |= methodOptions
	if set&methodGet != 0 {
		set |= methodHead
	}
	var names []string
	for set &^= anyMethod; set != 0; set &= set - 1 {
		names = append(names, t.name(bits.TrailingZeros64(uint64(set))))
	}
	return strings.Join(names, ", ")
}

func (t *methodTable) name(i int) string {
	if i < standardMethods {
		return standardNames[i]
	}
	return t.custom[i-standardMethods]
}

// isTokenRune reports whether r may occur in a token (RFC 9110 section 5.6.2).
func isTokenRune(r rune) bool {
	return r < 0x80 && (isAlpha(byte(r)) || isDigit(byte(r)) || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
}
