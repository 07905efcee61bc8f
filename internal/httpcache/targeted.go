package httpcache

import "strings"

// ParseTargeted reads a field that says to some caches alone what Cache-Control says to all (RFC 9213), such as CDN-Cache-Control. It is a
// dictionary (RFC 9651 section 3.2): false is for one that is malformed, or empty, which then counts as if it were not there.
func ParseTargeted(lines ...string) (d Directives, ok bool) {
	d = ParseDirectives()
	s := strings.Trim(strings.Join(lines, ","), " ")
	if s == "" {
		return d, false
	}
	for {
		end := keyEnd(s)
		if end == 0 {
			return d, false
		}
		name := s[:end]
		value, rest, well := cutItem(s[end:])
		if !well {
			return d, false
		}
		d.target(name, value)
		if s = strings.TrimLeft(rest, " \t"); s == "" {
			return d, true
		}
		if s[0] != ',' {
			return d, false
		}
		s = strings.TrimLeft(s[1:], " \t")
	}
}

// target is set for the value of a dictionary: "" for true. One of another type than the directive has is left out, and of
// a time that is there twice the shorter counts, as in Cache-Control.
func (d *Directives) target(name, value string) {
	switch name {
	case "max-age", "s-maxage", "stale-while-revalidate", "stale-if-error":
		if value == "" || strings.Trim(value, "0123456789") != "" {
			return
		}
		d.set(name, value, true)
	default:
		if value == "" || value[0] == '"' {
			d.set(name, strings.Trim(value, `"`), value != "")
		}
	}
}

// keyEnd returns where a dictionary's key ends that a string begins with, 0 if it begins with none.
func keyEnd(s string) int {
	for i := range len(s) {
		c := s[i]
		lower := 'a' <= c && c <= 'z' || c == '*'
		if !lower && (i == 0 || (c < '0' || c > '9') && c != '_' && c != '-' && c != '.') {
			return i
		}
	}
	return len(s)
}

// cutItem takes "=" and a bare item off a string, if it begins so, and parameters, which mean nothing here.
func cutItem(s string) (value, rest string, ok bool) {
	if strings.HasPrefix(s, "=") {
		if value, s, ok = cutBare(s[1:]); !ok {
			return "", "", false
		}
		if value == "?1" {
			value = ""
		}
	}
	for strings.HasPrefix(s, ";") {
		s = strings.TrimLeft(s[1:], " ")
		end := keyEnd(s)
		if end == 0 {
			return "", "", false
		}
		if s = s[end:]; strings.HasPrefix(s, "=") {
			if _, s, ok = cutBare(s[1:]); !ok {
				return "", "", false
			}
		}
	}
	return value, s, true
}

// cutBare takes a number, a string, a token or a boolean off a string (RFC 9651 section 3.3). Others there are no directives for.
func cutBare(s string) (value, rest string, ok bool) {
	if strings.HasPrefix(s, `"`) {
		for i := 1; i < len(s); i++ {
			switch c := s[i]; {
			case c == '\\':
				i++
			case c == '"':
				return s[:i+1], s[i+1:], true
			case c < ' ' || c > '~':
				return "", "", false
			}
		}
		return "", "", false
	}
	end := strings.IndexAny(s, ",; \t")
	if end < 0 {
		end = len(s)
	}
	value, rest = s[:end], s[end:]
	if value == "?0" || value == "?1" {
		return value, rest, true
	}
	digits := strings.TrimPrefix(value, "-")
	if digits != "" && digits[0] >= '0' && digits[0] <= '9' {
		whole, part, point := strings.Cut(digits, ".")
		return value, rest, strings.Trim(whole+part, "0123456789") == "" && len(whole) <= 15 && (!point || part != "" && len(part) <= 3)
	}
	if value == "" || !isLetter(value[0]) && value[0] != '*' {
		return "", "", false
	}
	for i := range len(value) {
		if c := value[i]; !isLetter(c) && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~:/", c) < 0 {
			return "", "", false
		}
	}
	return value, rest, true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
