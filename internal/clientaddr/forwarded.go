package clientaddr

import (
	"net/netip"
	"strings"
)

// lastForwarded splits the last element off the value of Forwarded. Elements are separated by
// commas, which may also occur in quoted strings (RFC 7239 section 4). It reads backwards, so that
// text before the element, which a client may have forged, does not influence the start of the
// element.
func lastForwarded(list string) (rest, element string) {
	quoted := false
	for i := len(list) - 1; i >= 0; i-- {
		switch list[i] {
		case '"':
			if !quoted || !escaped(list, i) {
				quoted = !quoted
			}
		case ',':
			if !quoted {
				return list[:i], strings.Trim(list[i+1:], " \t")
			}
		}
	}
	return "", strings.Trim(list, " \t")
}

// escaped reports whether an odd number of backslashes precedes s[i].
func escaped(s string, i int) bool {
	n := 0
	for i--; i >= 0 && s[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// forwardedFor returns the address in the parameter for of an element. It returns the zero AddrPort
// if there is no address: the node may be an obfuscated identifier or unknown (RFC 7239 section 6).
func forwardedFor(element string) netip.AddrPort {
	node, ok := forwardedParam(element, "for")
	if !ok {
		return netip.AddrPort{}
	}
	if n := strings.LastIndexByte(node, ':'); n > 0 && n+1 < len(node) && node[n+1] == '_' {
		node = node[:n] // an obfuscated port
	}
	if strings.IndexByte(node, ':') >= 0 && node[0] != '[' && strings.Count(node, ":") > 1 {
		return netip.AddrPort{} // an IPv6 address must be in brackets
	}
	return parseAddrPort(node)
}

// forwardedParam returns the value of one parameter of an element, which is
//
//	element = [ pair ] *( ";" [ pair ] )    pair = token "=" ( token / quoted-string )
//
// It reports false if the element is malformed, or does not have the parameter exactly once. A
// value with escaped characters counts as malformed, since addresses and schemes have none. An
// unquoted value may contain colons and brackets, because some proxies write it so.
func forwardedParam(element, name string) (value string, ok bool) {
	for element != "" {
		i := strings.IndexAny(element, "=;")
		if i < 0 {
			return "", false
		}
		if element[i] == ';' {
			if strings.Trim(element[:i], " \t") != "" {
				return "", false
			}
			element = element[i+1:]
			continue
		}
		found := strings.Trim(element[:i], " \t")
		if found == "" || strings.ContainsAny(found, "\" \t\\") {
			return "", false
		}
		element = element[i+1:]
		var v string
		if element != "" && element[0] == '"' {
			end := strings.IndexByte(element[1:], '"') + 1
			if end == 0 {
				return "", false
			}
			v, element = element[1:end], strings.TrimLeft(element[end+1:], " \t")
			if element != "" && element[0] != ';' || strings.IndexByte(v, '\\') >= 0 {
				return "", false
			}
			element = strings.TrimPrefix(element, ";")
		} else {
			v, element, _ = strings.Cut(element, ";")
			v = strings.TrimRight(v, " \t")
			if v == "" || strings.ContainsAny(v, "\" \t\\=") {
				return "", false
			}
		}
		if strings.EqualFold(found, name) {
			if ok {
				return "", false
			}
			value, ok = v, true
		}
	}
	return value, ok
}
