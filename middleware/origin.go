package middleware

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// check panics for invalid settings, and for settings that do not do what they seem to do.
func (c *CORSConfig) check(who string) {
	fail := func(format string, args ...any) {
		panic("middleware: " + who + ": " + fmt.Sprintf(format, args...))
	}
	if len(c.Origins) == 0 {
		fail("Origins is empty: all other origins would be refused")
	}
	if slices.Contains(c.Origins, "*") {
		if len(c.Origins) > 1 {
			fail(`Origins has "*", which includes the others: %q`, c.Origins)
		}
		if c.Credentials {
			fail(`Origins is "*" with Credentials: browsers refuse that, and any page could act for its visitor; name the origins`)
		}
	}
	for _, o := range c.Origins {
		if o != "*" {
			parseOrigin(who, o)
		}
	}
	for what, names := range map[string][]string{"Methods": c.Methods, "Headers": c.Headers, "Expose": c.Expose} {
		for _, name := range names {
			switch {
			case name == "*" && c.Credentials:
				fail(`%s has "*", which is not a wildcard with Credentials: list the names`, what)
			case name != "*" && !isToken(name):
				fail("%s has %q, which is not a name", what, name)
			case what == "Methods" && (strings.EqualFold(name, "CONNECT") || strings.EqualFold(name, "TRACE") || strings.EqualFold(name, "TRACK")):
				fail("Methods has %q, which no page may use", name)
			case what == "Methods" && slices.Contains([]string{"DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"}, strings.ToUpper(name)) && name != strings.ToUpper(name):
				fail("Methods has %q, which browsers send as %s", name, strings.ToUpper(name))
			case what == "Headers" && strings.EqualFold(name, "Cookie"):
				fail("Headers has %q, which no page can set: cookies are sent with Credentials", name)
			case what == "Expose" && strings.EqualFold(name, "Set-Cookie"):
				fail("Expose has %q, which no page can read", name)
			}
		}
	}
}

// isToken reports whether s is a token (RFC 9110 section 5.6.2).
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// An originPattern matches one or several origins.
type originPattern struct {
	prefix  string // scheme and "://"
	host    string // without suffix
	suffix  string // ".example.com" for any host below example.com; "" for host alone
	port    string // with its colon; "" for the scheme's default
	anyPort bool
}

// matches reports whether the pattern matches an origin, spelled as browsers send it.
func (p *originPattern) matches(origin string) bool {
	rest, ok := strings.CutPrefix(origin, p.prefix)
	if !ok {
		return false
	}
	if p.anyPort {
		port, ok := strings.CutPrefix(rest, p.host)
		return ok && (port == "" || port[0] == ':' && isPort(port[1:]))
	}
	if rest, ok = strings.CutSuffix(rest, p.port); !ok {
		return false
	}
	below, ok := strings.CutSuffix(rest, p.suffix)
	return ok && isHostName(below)
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0 && s[0] != '0'
}

// isHostName reports whether s is one or more labels of a host name, spelled as browsers send it.
func isHostName(s string) bool {
	label := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_':
			label++
		case c == '.' && label > 0:
			label = 0
		default:
			return false
		}
	}
	return label > 0
}

// parseOrigin parses an origin or a pattern of origins. It panics for an origin that browsers never
// send, and for a pattern that also matches hosts of other owners.
func parseOrigin(who, text string) originPattern {
	fail := func(why string) {
		panic(fmt.Sprintf("middleware: %s: %q is not an origin in the form that browsers send: %s", who, text, why))
	}
	if text == "null" {
		fail("null is the origin of all sandboxed frames and local files, which are indistinguishable")
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme == "" {
		fail("it must begin with a scheme, such as https://")
	}
	for i := 0; i < len(scheme); i++ {
		if c := scheme[i]; !('a' <= c && c <= 'z' || i > 0 && ('0' <= c && c <= '9' || strings.IndexByte("+-.", c) >= 0)) {
			fail("its scheme must be in lower case")
		}
	}
	if i := strings.IndexAny(rest, "/?#@"); i >= 0 {
		fail("it ends with host and port, without a path or a user")
	}
	p := originPattern{prefix: scheme + "://", host: rest}
	end := strings.LastIndexByte(rest, ']') + 1
	if i := strings.IndexByte(rest[end:], ':'); i >= 0 {
		p.host, p.port = rest[:end+i], rest[end+i:]
		switch port := p.port[1:]; {
		case port == "*":
			p.anyPort, p.port = true, ""
		case !isPort(port):
			fail("its port is not valid")
		case scheme == "https" && port == "443", scheme == "http" && port == "80":
			fail("browsers omit the scheme's default port")
		}
	}
	if below, ok := strings.CutPrefix(p.host, "*."); ok {
		if p.anyPort {
			fail("an asterisk can replace the host or the port, not both")
		}
		p.host, p.suffix = below, "."+below
		if !strings.Contains(below, ".") || isAddress(below) {
			fail("an asterisk matches hosts below your own domain, such as https://*.example.com")
		}
	}
	switch {
	case strings.Contains(p.host, "*"):
		fail("an asterisk matches whole labels at the start of the host, https://*.example.com, or for the port: other patterns match hosts that an attacker could register")
	case p.host != strings.ToLower(p.host):
		fail("its host must be in lower case")
	case end > 0:
		if a, err := netip.ParseAddr(strings.Trim(p.host, "[]")); err != nil || !a.Is6() || "["+a.String()+"]" != p.host {
			fail("its host is not an IPv6 address in brackets in its shortest form")
		}
	case !isHostName(p.host):
		fail("its host is not valid; write international names as browsers send them (xn--...)")
	}
	return p
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
