package negotiate

import (
	"iter"
	"strings"

	"github.com/dunlinhttp/dunlin"
)

// maxWeight is the maximum weight, and that of an element without a weight: 1, in thousandths.
const maxWeight = 1000

// elements yields the elements of a header such as Accept: the text before the first semicolon and
// the parameters after it. A semicolon or comma within quotes does not separate.
func elements(list string) iter.Seq2[string, string] {
	return func(yield func(element, params string) bool) {
		for list != "" {
			var item string
			item, list = cutUnquoted(list, ',')
			element, params := cutUnquoted(item, ';')
			if element = strings.Trim(element, " \t"); element != "" && !yield(element, params) {
				return
			}
		}
	}
}

// cutUnquoted cuts s at the first separator that is not within a quoted string.
func cutUnquoted(s string, separator byte) (before, after string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == separator && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// parameters yields the names and values of parameters.
func parameters(params string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for params != "" {
			var param string
			param, params = cutUnquoted(params, ';')
			name, value, _ := strings.Cut(param, "=")
			if name = strings.Trim(name, " \t"); name != "" && !yield(name, strings.Trim(value, " \t")) {
				return
			}
		}
	}
}

// weight returns the value of the parameter q, in thousandths: 1000 if there is no q, and 0 if it is
// malformed.
func weight(params string) int {
	for name, value := range parameters(params) {
		if strings.EqualFold(name, "q") {
			return thousandths(value)
		}
	}
	return maxWeight
}

// thousandths parses a qvalue (RFC 9110, section 12.4.2). It returns 0 for other text.
func thousandths(q string) int {
	if q == "" || q[0] != '0' && q[0] != '1' || len(q) > 5 || len(q) > 1 && q[1] != '.' {
		return 0
	}
	n, unit := int(q[0]-'0')*maxWeight, 100
	for i := 2; i < len(q); i++ {
		if q[i] < '0' || q[i] > '9' {
			return 0
		}
		n += int(q[i]-'0') * unit
		unit /= 10
	}
	if n > maxWeight {
		return 0
	}
	return n
}

// varyOn adds the name of a request header to Vary of the response, unless Vary already has it. block is a Vary field with this
// name alone.
func varyOn(resp dunlin.Response, name string, block *dunlin.HeaderBlock) dunlin.Response {
	if resp.Get("Vary") == "" {
		return resp.With(block)
	}
	for _, line := range resp.Values("Vary") {
		for item := range strings.SplitSeq(line, ",") {
			if item = strings.TrimSpace(item); item == "*" || strings.EqualFold(item, name) {
				return resp
			}
		}
	}
	return resp.AddHeader("Vary", name)
}
