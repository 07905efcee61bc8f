package dunlin

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/dunlinhttp/dunlin/internal/certfile"
	"github.com/dunlinhttp/dunlin/internal/devcert"
	"github.com/dunlinhttp/dunlin/internal/lifecycle"
	"github.com/dunlinhttp/dunlin/internal/loophttp"
)

// By TLS clients choose between HTTP/1.1 and HTTP/2. On the loop engine, HTTP/2 is
// served by net/http, on the same listener.

// ListenAndServeTLS listens on the TCP address addr and serves it by TLS with
// the certificate in the named PEM files, see Config.TLSCert; when both names
// are empty, with that of the Config. It returns as Serve does.
func (a *App) ListenAndServeTLS(addr, certFile, keyFile string) error {
	if certFile == "" && keyFile == "" {
		certFile, keyFile = a.config.TLSCert, a.config.TLSKey
	}
	config, err := a.tlsConfig(certFile, keyFile)
	if err != nil {
		return fmt.Errorf("dunlin: TLS: %w", err)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("dunlin: listen: %w", err)
	}
	return a.ServeTLS(ln, config)
}

// ServeTLS answers the connections of ln by TLS with the given settings, which
// must have a certificate and are not changed. Else it is as Serve.
func (a *App) ServeTLS(ln net.Listener, config *tls.Config) error {
	return a.serve(lifecycle.Place{Listener: ln, TLS: config})
}

// hasTLS reports whether the config has what TLS needs.
func (c *Config) hasTLS() bool { return c.TLS != nil || c.TLSCert != "" || c.TLSDevelopment }

// tlsConfig returns Config.TLS with the certificate in two files, if they are
// named, or else with that for development, if that is wanted.
func (a *App) tlsConfig(certFile, keyFile string) (*tls.Config, error) {
	config := a.config.TLS.Clone()
	if config == nil {
		config = new(tls.Config)
	}
	if certFile == "" && keyFile == "" {
		if a.config.TLSDevelopment {
			cert, err := devcert.OfUser(a.log)
			config.Certificates, config.GetCertificate = []tls.Certificate{cert}, nil
			return config, err
		}
		return config, nil
	}
	files, err := certfile.Load(certFile, keyFile, a.config.Logger)
	if err != nil {
		return nil, err
	}
	config.Certificates, config.GetCertificate = nil, files.Certificate
	return config, nil
}

// loopTLS returns how the loop engine is to secure a listener; nil for clear text.
func (a *App) loopTLS(config *tls.Config) *loophttp.TLS {
	if config == nil {
		return nil
	}
	config = config.Clone()
	config.NextProtos = slices.Clone(config.NextProtos)
	for _, proto := range [...]string{"h2", "http/1.1"} { // as net/http does it
		if !slices.Contains(config.NextProtos, proto) {
			config.NextProtos = append(config.NextProtos, proto)
		}
	}
	return &loophttp.TLS{Config: config, HTTP2: a.std.NewTaker()}
}

var errNoCertificate = errors.New("the TLS settings have no certificate")

// checkCertificate tells what net/http would say less clearly.
func checkCertificate(c *tls.Config) error {
	if c.GetCertificate == nil && c.GetConfigForClient == nil && len(c.Certificates) == 0 {
		return errNoCertificate
	}
	return nil
}
