package middleware

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/dunlinhttp/dunlin"
)

// AllowedHosts answers 421 Misdirected Request (RFC 9110 section 15.5.20) to requests for hosts that
// are not listed. So a client cannot put a host of its choice into links or caches, and a page cannot
// reach a service on a private address under the page's own host name (DNS rebinding).
// "*.example.com" matches every host below example.com. Port, case and a final dot are ignored.
//
// List all names that requests use, such as the address that health checks use. AllowedHosts panics
// for an invalid host.
func AllowedHosts(hosts ...string) dunlin.Middleware {
	if len(hosts) == 0 {
		panic("middleware: AllowedHosts: no hosts: all requests would be refused")
	}
	exact := make(map[string]bool)
	var below []string // with the leading dot
	for _, host := range hosts {
		name, wild := strings.CutPrefix(host, "*.")
		name = strings.ToLower(name)
		switch {
		case name != hostOnly(name) || !isHostName(name) && !isAddress(strings.Trim(name, "[]")):
			panic(fmt.Sprintf("middleware: AllowedHosts: %q is not a host: a host has no port and no scheme, and an asterisk only as *.example.com", host))
		case wild && isAddress(name):
			panic(fmt.Sprintf("middleware: AllowedHosts: %q: an IP address has no subdomains", host))
		case wild:
			below = append(below, "."+name)
		default:
			exact[strings.Trim(name, "[]")] = true
		}
	}
	allowed := func(asked string) bool {
		host := hostOnly(asked)
		if !isPortSuffix(strings.TrimPrefix(asked[len(host):], ".")) {
			return false
		}
		if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") && strings.IndexByte(host, ':') > 0 {
			host = host[1 : len(host)-1]
		}
		if exact[host] {
			return true
		}
		if strings.ToLower(host) != host {
			host = strings.ToLower(host)
			if exact[host] {
				return true
			}
		}
		for _, suffix := range below {
			if sub, ok := strings.CutSuffix(host, suffix); ok && isHostName(sub) {
				return true
			}
		}
		return false
	}
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			if !allowed(r.Host()) {
				return dunlin.Problem(&dunlin.ProblemDetails{Status: http.StatusMisdirectedRequest, Detail: "the requested host is not served here"})
			}
			return next(r)
		}
	}
}

// isPortSuffix reports whether s is empty, or a colon with or without a port (RFC 9110 section
// 4.2).
func isPortSuffix(s string) bool {
	port := 0
	for i := 0; i < len(s); i++ {
		switch {
		case i == 0 && s[i] != ':', i > 0 && (s[i] < '0' || s[i] > '9'), i > 5:
			return false
		case i > 0:
			port = 10*port + int(s[i]-'0')
		}
	}
	return port < 1<<16
}

// hostOnly returns the host without port and final dot.
func hostOnly(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i:], ']') < 0 && (host[0] == '[' || strings.IndexByte(host, ':') == i) {
		host = host[:i]
	}
	return strings.TrimSuffix(host, ".")
}
