// Package urlquery reads the query of a URL pair by pair, with the rules of net/url.
package urlquery

import "strings"

// Next returns the first key and value of a query, and the rest of the query. For a pair with a semicolon, which is invalid, key
// and value are empty.
func Next(query string) (key, value, rest string) {
	pair, rest, _ := strings.Cut(query, "&")
	if strings.IndexByte(pair, ';') >= 0 {
		return "", "", rest
	}
	key, value, _ = strings.Cut(pair, "=")
	return key, value, rest
}

// AppendUnescaped appends s to dst. It decodes %XX, and replaces + by a space. It returns false for an invalid escape.
func AppendUnescaped(dst []byte, s string) ([]byte, bool) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '+':
			dst = append(dst, ' ')
		case '%':
			if i+2 >= len(s) {
				return dst, false
			}
			hi, lo := unhex(s[i+1]), unhex(s[i+2])
			if hi < 0 || lo < 0 {
				return dst, false
			}
			dst = append(dst, byte(hi<<4|lo))
			i += 2
		default:
			dst = append(dst, c)
		}
	}
	return dst, true
}

// unhex returns the value of a hexadecimal digit, -1 for any other byte.
func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
