package httpcache

import "strings"

// ParseTargeted parses a targeted field (RFC 9213), such as CDN-Cache-Control. A targeted field replaces Cache-Control
// for some caches. It is a dictionary (RFC 9651 section 3.2). If the field is malformed or empty, ok is false and the
// caller must ignore the field.
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

// target sets a directive from a member of the dictionary. value is "" if the member is true. A value of the wrong
// type is ignored. If a directive is repeated, the shorter time is used.
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

// keyEnd returns the length of the dictionary key at the start of s, or 0.
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

// cutItem removes "=" and a bare item with its parameters from the start of s, if s begins with "=". The parameters
// are ignored.
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

// cutBare removes a number, a string, a token or a boolean from the start of s (RFC 9651 section 3.3). No directive
// has a value of another type.
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
