package lifecycle

import (
	"net"
	"slices"
	"strings"
	"sync"
)

// Ports are the addresses and ports of a program's listeners. The zero value has none. The methods are safe for concurrent use.
type Ports struct {
	mu     sync.RWMutex
	addrs  []net.Addr
	clear  []string // ports in clear text
	secure string   // the latest port with TLS
}

// Add adds the port of a listener.
func (s *Ports) Add(p Endpoint) {
	_, port, err := net.SplitHostPort(p.Addr().String())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addrs = append(s.addrs, p.Addr())
	if err != nil {
		return // a unix socket
	}
	if p.TLS != nil {
		s.secure = port
	} else {
		s.clear = append(s.clear, port)
	}
}

// Addrs returns the addresses of all listeners, in the order of Add.
func (s *Ports) Addrs() []net.Addr {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.addrs)
}

// SecureHost returns the host to which to redirect a client that came to host in clear text, with its port unless that is 443. It
// returns "" if host is malformed, or if there are domains and host is in none of them (certificates are for domains). A client
// that named a port of this program is redirected to the program's TLS port. Another port in the request means that a proxy or
// router in front maps ports: then the redirect is to port 443.
func (s *Ports) SecureHost(host string, domains []string) string {
	name, port := host, "80"
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name, port = host[:i], host[i+1:]
	}
	if name == "" || strings.ContainsAny(name, "/?#@\\ ,") {
		return ""
	}
	if len(domains) > 0 && !slices.ContainsFunc(domains, func(d string) bool { return inDomain(name, d) }) {
		return ""
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.secure == "" || s.secure == "443" {
		return name
	}
	if slices.Contains(s.clear, port) {
		return name + ":" + s.secure
	}
	return name
}

// inDomain reports whether a name is in a domain. "*." stands for one label.
func inDomain(name, domain string) bool {
	name = strings.TrimSuffix(name, ".")
	if parent, any := strings.CutPrefix(domain, "*."); any {
		label, rest, deeper := strings.Cut(name, ".")
		return deeper && label != "" && strings.EqualFold(rest, parent)
	}
	return strings.EqualFold(name, domain)
}
