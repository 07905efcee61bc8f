package dunlin

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"slices"

	"github.com/dunlinhttp/dunlin/internal/certfile"
	"github.com/dunlinhttp/dunlin/internal/devcert"
	"github.com/dunlinhttp/dunlin/internal/lifecycle"
)

// ListenAndServeTLS listens on the TCP address addr and serves TLS with the certificate in the named PEM files, see
// Config.TLS.Cert. If both names are empty it uses the certificate of the Config. It returns as Serve does.
func (a *App) ListenAndServeTLS(addr, certFile, keyFile string) error {
	if certFile == "" && keyFile == "" {
		certFile, keyFile = a.config.TLS.Cert, a.config.TLS.Key
	}
	config, err := a.tlsConfig(certFile, keyFile)
	if err != nil {
		return fmt.Errorf("dunlin: TLS: %w", err)
	}
	ln, done, err := lifecycle.ListenShared(addr)
	if err != nil {
		return fmt.Errorf("dunlin: listen: %w", err)
	}
	defer done()
	return a.serve(lifecycle.Endpoint{Listener: ln, TLS: config})
}

// ServeTLS is Serve for TLS. config must have a certificate. ServeTLS does not change config.
func (a *App) ServeTLS(ln net.Listener, config *tls.Config) error {
	return a.serve(lifecycle.Endpoint{Listener: ln, TLS: &lifecycle.TLS{Config: cmp.Or(config, new(tls.Config))}})
}

// served reports whether the config has a certificate or a source of one.
func (t *TLSConfig) served() bool {
	return t.Config != nil || t.Cert != "" || t.Development || t.Issuer != nil
}

// A TLSIssuer obtains certificates from an authority, see Config.TLS.Issuer.
type TLSIssuer interface {
	// Certificates returns the certificates for the names. It must not use the network: Renew obtains missing
	// certificates. It fails if the certificates can never be obtained. Later failures are reported to log.
	Certificates(domains []string, log *slog.Logger) (TLSCertificates, error)
}

// TLSCertificates are the certificates of a [TLSIssuer], including certificates that it has not obtained yet. Its
// methods must be safe for concurrent use.
type TLSCertificates interface {
	// GetCertificate implements the field GetCertificate of a [tls.Config].
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Protocols returns the ALPN protocols of the authority's own checks, such as acme-tls/1. A connection that agrees
	// on one of them is closed after the handshake.
	Protocols() []string
	// Challenge returns the answer to a request of the authority for a path of host. It reports false if there is no
	// answer. It is called for paths below /.well-known/acme-challenge/, before routing.
	Challenge(host, path string) (answer string, ok bool)
	// Renew obtains the certificates and renews them before they expire, until ctx ends. It is called once, when the
	// app begins to serve.
	Renew(ctx context.Context)
}

// tlsConfig returns Config.TLS.Config with the certificate in the two files, if they are named, or else with the certificate of
// Config.TLS.Development or the certificates of Config.TLS.Issuer.
func (a *App) tlsConfig(certFile, keyFile string) (*lifecycle.TLS, error) {
	config := a.config.TLS.Config.Clone()
	if config == nil {
		config = new(tls.Config)
	}
	if certFile == "" && keyFile == "" {
		if a.config.TLS.Development {
			cert, err := devcert.OfUser(a.log)
			config.Certificates, config.GetCertificate = []tls.Certificate{cert}, nil
			return &lifecycle.TLS{Config: config}, err
		}
		if a.config.TLS.Issuer != nil {
			certs, err := a.issued()
			if err != nil {
				return nil, err
			}
			config.Certificates, config.GetCertificate = nil, certs.GetCertificate
			config.NextProtos = append(slices.Clone(config.NextProtos), certs.Protocols()...)
		}
		return &lifecycle.TLS{Config: config}, nil
	}
	files, err := certfile.Load(certFile, keyFile, a.asyncLog)
	if err != nil {
		return nil, err
	}
	config.Certificates, config.GetCertificate = nil, files.Certificate
	return &lifecycle.TLS{Config: config, Prompt: true}, nil
}

// issued returns the certificates of Config.TLS.Issuer, which it obtains on the first call.
func (a *App) issued() (TLSCertificates, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if certs := a.secure.issued.Load(); certs != nil {
		return *certs, nil
	}
	certs, err := a.config.TLS.Issuer.Certificates(a.config.TLS.Domains, a.asyncLog)
	if err != nil {
		return nil, fmt.Errorf("Config.TLS.Domains: %w", err)
	}
	a.secure.issued.Store(&certs)
	return certs, nil
}
