package lifecycle

import (
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
)

// An Endpoint is a listener with its TLS configuration, which is nil for clear text.
type Endpoint struct {
	net.Listener
	TLS  *TLS
	name string // identifies the listener in the next process; "" means its address
	open open   // nil: use Program.Open
}

// TLS is the TLS configuration of an endpoint.
type TLS struct {
	*tls.Config
	Prompt bool // GetCertificate never blocks
}

// open makes the server of an endpoint, see Program.Open.
type open = func(Endpoint) (serve func() error, err error)

// An inheritedListener is a listener from systemd or from the previous process.
type inheritedListener struct {
	net.Listener
	name string
}

// Names of listeners. A listener with one of these names matches the corresponding address of the configuration, whatever address
// it is bound to. A socket unit of systemd sets http and https by FileDescriptorName=. A process uses any-port and any-port-tls
// for the listeners that it passes to the next process if the system has chosen their port.
const (
	nameClear   = "http"
	nameTLS     = "https"
	nameAnyPort = "any-port"
	nameAnyTLS  = "any-port-tls"
	nameInner   = "inner" // of the first inner address; the second is inner-2, and so on
)

// Addresses are the addresses of a program, for which it listens or inherits listeners.
type Addresses struct {
	Addr    string // clear text, unless Secure is set and TLSAddr is empty
	TLSAddr string // TLS; "" for none
	Secure  *TLS
	Inner   []Inner
}

// An Inner is an address in clear text with a server of its own.
type Inner struct {
	Addr string
	Open func(Endpoint) (serve func() error, err error)
}

// CheckAddress returns an error if addr can never be listened on.
func CheckAddress(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return fmt.Errorf("address %s: port %q must be a number or the name of a service; 0 lets the system choose", addr, port)
	}
	return nil
}

// listen returns the endpoints of all addresses, the inner addresses first. It uses the inherited listeners of an
// address, and listens if there are none.
func (a *Addresses) listen() (endpoints []Endpoint, err error) {
	for _, in := range a.Inner {
		for _, public := range []string{a.Addr, a.TLSAddr} {
			if overlap(in.Addr, public) {
				return nil, fmt.Errorf("inner address %s: it overlaps the public address %s; an inner address has a port of its own", in.Addr, public)
			}
		}
	}
	public, err := a.listenPublic()
	for i, in := range a.Inner {
		if err != nil {
			break
		}
		var inner []Endpoint
		inner, err = in.listen(i)
		endpoints = append(endpoints, inner...)
	}
	endpoints = append(endpoints, public...)
	if err != nil {
		for _, p := range endpoints {
			_ = p.Close()
		}
		return nil, err
	}
	return endpoints, nil
}

// listen returns the endpoints of the inner address with this index.
func (in *Inner) listen(index int) (endpoints []Endpoint, err error) {
	name := nameInner
	if index > 0 {
		name += "-" + strconv.Itoa(index+1)
	}
	anyPort := nameAnyPort + "-" + name
	for _, from := range process.claim(in.Addr, name, anyPort) {
		endpoints = append(endpoints, Endpoint{from.Listener, nil, from.name, in.Open})
	}
	if len(endpoints) > 0 {
		return endpoints, nil
	}
	ln, err := Listen(in.Addr)
	if err != nil {
		return nil, fmt.Errorf("inner address %s: %w", in.Addr, err)
	}
	p := Endpoint{ln, nil, "", in.Open}
	if hasAnyPort(in.Addr) {
		p.name = anyPort
	}
	return []Endpoint{p}, nil
}

// overlap reports whether a client can reach both addresses at one host and port.
func overlap(a, b string) bool {
	x, errX := net.ResolveTCPAddr("tcp", a)
	y, errY := net.ResolveTCPAddr("tcp", b)
	if errX != nil || errY != nil || x.Port != y.Port || x.Port == 0 {
		return false // listening reports the error
	}
	every := func(ip net.IP) bool { return ip == nil || ip.IsUnspecified() }
	return every(x.IP) || every(y.IP) || x.IP.Equal(y.IP) && x.Zone == y.Zone
}

// listenPublic returns the endpoints of Addr and TLSAddr.
func (a *Addresses) listenPublic() (endpoints []Endpoint, err error) {
	var main *TLS // the TLS configuration of Addr
	if a.TLSAddr == "" {
		main = a.Secure
	}
	for _, in := range process.claim(a.Addr, nameClear, nameAnyPort) {
		endpoints = append(endpoints, Endpoint{in.Listener, main, in.name, nil})
	}
	haveMain, haveTLS := len(endpoints) > 0, false
	for _, in := range process.claim(a.TLSAddr, nameTLS, nameAnyTLS) {
		endpoints = append(endpoints, Endpoint{in.Listener, a.Secure, in.name, nil})
		if a.Secure == nil {
			return endpoints, fmt.Errorf("%s was inherited as %s, but there is no certificate", in.Addr(), nameTLS)
		}
		haveTLS = true
	}
	haveMain = haveMain || haveTLS && main != nil
	add := func(addr string, config *TLS, anyPort string) {
		if err != nil {
			return
		}
		ln, listenErr := Listen(addr)
		if listenErr != nil {
			err = fmt.Errorf("listen: %w", listenErr)
			return
		}
		p := Endpoint{ln, config, "", nil}
		if hasAnyPort(addr) {
			p.name = anyPort
		}
		endpoints = append(endpoints, p)
	}
	if !haveMain {
		add(a.Addr, main, nameAnyPort)
	}
	if a.TLSAddr != "" && !haveTLS {
		add(a.TLSAddr, a.Secure, nameAnyTLS)
	}
	return endpoints, err
}

// hasAnyPort reports whether the system chooses the port of an address.
func hasAnyPort(addr string) bool {
	at, err := net.ResolveTCPAddr("tcp", addr)
	return err == nil && at.Port == 0
}

// matches reports whether a listener matches an address: it has the name of the address, or is bound to the address. If the
// system chooses the port of the address, the listener must have the name anyPort and the same host.
func (in inheritedListener) matches(addr, name, anyPort string) bool {
	if in.name == name && name != "" {
		return true
	}
	bound, ok := in.Addr().(*net.TCPAddr)
	if !ok || addr == "" {
		return false // a unix socket matches an address only by its name
	}
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return false // listening reports the error
	}
	everyHost := at.IP == nil || at.IP.IsUnspecified()
	if at.Zone != bound.Zone || everyHost != bound.IP.IsUnspecified() || !everyHost && !at.IP.Equal(bound.IP) {
		return false
	}
	return at.Port == bound.Port || at.Port == 0 && in.name == anyPort && anyPort != ""
}
