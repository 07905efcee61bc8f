package lifecycle

import (
	"crypto/tls"
	"fmt"
	"net"
)

// A Place is a listener, and how it is served: by TLS unless that is nil.
type Place struct {
	net.Listener
	TLS *tls.Config
}

// An inheritedListener came from systemd or the process before this one.
type inheritedListener struct {
	net.Listener
	name string
}

// The names of places, as a socket unit may give them by FileDescriptorName=.
const (
	nameClear = "http"
	nameTLS   = "https"
)

func (p Place) name() string {
	if p.TLS != nil {
		return nameTLS
	}
	return nameClear
}

// Addresses say where a program listens unless it inherits listeners.
type Addresses struct {
	Addr    string // in clear text, unless Secure is set and TLSAddr is not
	TLSAddr string // by TLS; "" for none
	Secure  *tls.Config
}

// listen returns where to serve: what was inherited, and the configured addresses
// that it does not stand for.
func (a *Addresses) listen(inherited []inheritedListener) (places []Place, err error) {
	defer func() {
		if err != nil {
			for _, p := range places {
				_ = p.Close()
			}
		}
	}()
	main := Place{nil, nil} // what Addr stands for
	if a.TLSAddr == "" {
		main.TLS = a.Secure
	}
	var haveMain, haveTLS bool
	for _, in := range inherited {
		p := Place{in.Listener, main.TLS}
		if in.name == nameTLS {
			p.TLS = a.Secure
		}
		places = append(places, p)
		if in.name == nameTLS && a.Secure == nil {
			return places, fmt.Errorf("%s was inherited as %s, but there is no certificate", in.Addr(), nameTLS)
		}
		haveTLS = haveTLS || p.TLS != nil
		haveMain = haveMain || p.TLS == main.TLS
	}
	add := func(addr string, config *tls.Config) {
		if err != nil {
			return
		}
		var ln net.Listener
		if ln, err = Listen(addr); err == nil {
			places = append(places, Place{ln, config})
		} else {
			err = fmt.Errorf("listen: %w", err)
		}
	}
	if !haveMain {
		add(a.Addr, main.TLS)
	}
	if a.TLSAddr != "" && !haveTLS {
		add(a.TLSAddr, a.Secure)
	}
	return places, err
}
