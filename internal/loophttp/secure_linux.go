package loophttp

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/certfile"
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/lifecycle"
)

// A secureServer serves one listener by TLS.
type secureServer struct {
	loopServer
	by    *TLS
	from  *exchange.Server
	taker sync.WaitGroup
}

func (s *Service) secure(by *TLS, from *exchange.Server) lifecycle.Server {
	return &secureServer{loopServer: loopServer{s.engine}, by: by, from: from}
}

// Serve serves HTTP/1.1 on the engine's loops, and has HTTP/2 served elsewhere.
func (s *secureServer) Serve(ln net.Listener) error {
	by := &engine.TLS{
		Config:  s.by.Config,
		Prompt:  certfile.Gives(s.by.Config.GetCertificate),
		Timeout: s.from.HeadTimeout,
		NotTLS:  s.from.ClearTextRefusal,
		Other:   s.other,
	}
	if h2 := s.by.HTTP2; h2 != nil {
		s.taker.Go(func() { _ = h2.Serve() }) // there is nothing in it that could fail
		defer s.taker.Wait()
	}
	if err := s.engine.ServePrepared(ln, by); err != net.ErrClosed {
		return err
	}
	return nil
}

// other returns what serves a protocol, if others do. What is not HTTP nobody speaks here: whoever has agreed to it, because
// the application's settings have it or an authority looks for a certificate, is not to take an answer for something else.
func (s *secureServer) other(proto string) func(*engine.Agreed) {
	switch h2 := s.by.HTTP2; {
	case proto == "" || proto == "http/1.1" || proto == "http/1.0" || proto == "h2" && h2 == nil:
		return nil
	case proto == "h2":
		return func(a *engine.Agreed) { h2.Take(a.Wire, a.Secure, a.Remote, a.Closed) }
	}
	return func(a *engine.Agreed) {
		_ = a.Secure(a.Wire).Close() // which says so to the client
		a.Closed()
	}
}

// lastHandshakes is for how long connections that were accepted may shake hands before those of
// HTTP/2 are not taken any more.
const lastHandshakes = time.Second

// Shutdown ends both. Who was accepted may still send a request.
func (s *secureServer) Shutdown(ctx context.Context) error {
	var own, h2 error
	var both sync.WaitGroup
	both.Go(func() { own = s.engine.Shutdown(ctx) })
	if taker := s.by.HTTP2; taker != nil {
		s.awaitHandshakes(ctx)
		h2 = taker.Shutdown(ctx)
	}
	both.Wait()
	return errors.Join(own, h2)
}

func (s *secureServer) awaitHandshakes(ctx context.Context) {
	tick := time.NewTicker(lastHandshakes / 200)
	defer tick.Stop()
	for until := time.Now().Add(lastHandshakes); time.Now().Before(until); {
		if s.engine.Stats().Opening == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
