package loophttp

import (
	"crypto/tls"
	"net"
	"slices"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A secureServer serves one listener with TLS.
type secureServer struct {
	loopServer
	config *tls.Config
	prompt bool // see engine.TLS
	from   *exchange.Server
}

// withProtocols returns config with HTTP/2 and HTTP/1.1 among its protocols.
func withProtocols(config *tls.Config) *tls.Config {
	config = config.Clone()
	config.NextProtos = slices.Clone(config.NextProtos)
	for _, proto := range [...]string{"h2", "http/1.1"} { // in the order of net/http
		if !slices.Contains(config.NextProtos, proto) {
			config.NextProtos = append(config.NextProtos, proto)
		}
	}
	return config
}

// Serve serves HTTP/1.1 and HTTP/2 on the engine's loops.
func (s *secureServer) Serve(ln net.Listener) error {
	by := &engine.TLS{
		Config:  s.config,
		Prompt:  s.prompt,
		Timeout: s.from.HeadTimeout,
		NotTLS:  exchange.ClearTextRefusal,
		Other:   closeUnlessHTTP,
	}
	if err := s.engine.ServePrepared(ln, by); err != net.ErrClosed {
		return err
	}
	return nil
}

// closeUnlessHTTP closes connections with an ALPN protocol other than HTTP. The application's settings may contain one, and a
// certificate authority uses its own (acme-tls/1). The server does not speak it, and a client could misread an HTTP answer.
func closeUnlessHTTP(proto string) func(*engine.Agreed) {
	switch proto {
	case "", "http/1.0", "http/1.1", "h2":
		return nil
	}
	return func(a *engine.Agreed) {
		_ = a.Secure(a.Socket).Close() // sends close_notify
		a.Closed()
	}
}
