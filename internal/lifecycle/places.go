package lifecycle

import (
	"crypto/tls"
	"fmt"
	"net"
)

// A Place is a listener, and how it is served: by TLS unless that is nil.
type Place struct {
	net.Listener
	TLS  *tls.Config
	name string // the next process knows the listener by it, or by its address if that is ""
}

// An inheritedListener came from systemd or the process before this one.
type inheritedListener struct {
	net.Listener
	name string
}

// The names of listeners that stand for an address of the configuration, whatever they are bound to. A socket unit
// gives the first two by FileDescriptorName=, a process those with a port that the system has chosen to the next one.
const (
	nameClear   = "http"
	nameTLS     = "https"
	nameAnyPort = "any-port"
	nameAnyTLS  = "any-port-tls"
)

// Addresses say where a program listens unless it inherits listeners.
type Addresses struct {
	Addr    string // in clear text, unless Secure is set and TLSAddr is not
	TLSAddr string // by TLS; "" for none
	Secure  *tls.Config
}

// listen returns where to serve: inherited listeners, and the configured addresses for which there are none.
func (a *Addresses) listen() (places []Place, err error) {
	defer func() {
		if err != nil {
			for _, p := range places {
				_ = p.Close()
			}
		}
	}()
	var main *tls.Config // how Addr is served
	if a.TLSAddr == "" {
		main = a.Secure
	}
	for _, in := range process.claim(a.Addr, nameClear, nameAnyPort) {
		places = append(places, Place{in.Listener, main, in.name})
	}
	haveMain, haveTLS := len(places) > 0, false
	for _, in := range process.claim(a.TLSAddr, nameTLS, nameAnyTLS) {
		places = append(places, Place{in.Listener, a.Secure, in.name})
		if a.Secure == nil {
			return places, fmt.Errorf("%s was inherited as %s, but there is no certificate", in.Addr(), nameTLS)
		}
		haveTLS = true
	}
	haveMain = haveMain || haveTLS && main != nil
	add := func(addr string, config *tls.Config, anyPort string) {
		if err != nil {
			return
		}
		ln, listenErr := Listen(addr)
		if listenErr != nil {
			err = fmt.Errorf("listen: %w", listenErr)
			return
		}
		p := Place{ln, config, ""}
		if hasAnyPort(addr) {
			p.name = anyPort
		}
		places = append(places, p)
	}
	if !haveMain {
		add(a.Addr, main, nameAnyPort)
	}
	if a.TLSAddr != "" && !haveTLS {
		add(a.TLSAddr, a.Secure, nameAnyTLS)
	}
	return places, err
}

// hasAnyPort reports whether the system chooses the port of an address.
func hasAnyPort(addr string) bool {
	at, err := net.ResolveTCPAddr("tcp", addr)
	return err == nil && at.Port == 0
}

// standsFor reports whether a listener is the one for an address: it is bound to that, or has a name that says so.
// A listener on a port chosen by the system needs the name anyPort, and must be bound to the same host.
func (in inheritedListener) standsFor(addr, name, anyPort string) bool {
	if in.name == name && name != "" {
		return true
	}
	bound, ok := in.Addr().(*net.TCPAddr)
	if !ok || addr == "" {
		return false // a unix socket has a name, or is nobody's
	}
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return false // listening says why
	}
	everyHost := at.IP == nil || at.IP.IsUnspecified()
	if at.Zone != bound.Zone || everyHost != bound.IP.IsUnspecified() || !everyHost && !at.IP.Equal(bound.IP) {
		return false
	}
	return at.Port == bound.Port || at.Port == 0 && in.name == anyPort && anyPort != ""
}
