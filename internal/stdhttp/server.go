package stdhttp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// A Server serves one listener.
type Server struct {
	http.Server
	service *Service
	conns   sync.WaitGroup // open connections; only grows while Serve runs
	unasked sync.WaitGroup // of these, those that nothing has been asked of yet

	mu       sync.Mutex
	ln       *listener // once it is being served
	stopped  bool
	accepted chan struct{} // closed when nothing is accepted any more

	open openConns
}

// NewServer makes the server for one listener: of TLS unless config is nil.
func (s *Service) NewServer(config *tls.Config) *Server {
	srv := &Server{service: s, accepted: make(chan struct{})}
	srv.Handler = http.HandlerFunc(s.serve)
	srv.ReadHeaderTimeout = s.HeadTimeout
	srv.IdleTimeout = s.IdleTimeout
	srv.MaxHeaderBytes = s.MaxHead
	srv.DisableGeneralOptionsHandler = true
	srv.ErrorLog = log.New(errorLog{s.Log}, "", 0)
	srv.ConnContext = withConn
	srv.ConnState = srv.count
	srv.TLSConfig = config.Clone()
	srv.Protocols = new(http.Protocols)
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetHTTP2(config != nil)
	srv.Protocols.SetUnencryptedHTTP2(s.H2C)
	return srv
}

// count keeps conns, and those of the service.
func (s *Server) count(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.conns.Add(1)
		s.service.open.Add(1)
		own := connOf(c)
		if own == nil || own.closed == nil {
			s.service.accepted.Add(1)
		}
		if own != nil {
			own.awaitFirst(&s.unasked)
		}
		s.open.add(own)
	case http.StateIdle:
		own := connOf(c)
		if own != nil && own.unasked.Load() != nil {
			if own.begun || !speaksHTTP2(c) {
				own.asked()
			}
			own.begun = true // HTTP/2 begins idle
		}
		own.setIdle(idle)
	case http.StateActive:
		connOf(c).setIdle(notIdle)
	case http.StateClosed, http.StateHijacked:
		own := connOf(c)
		s.open.remove(own)
		if own != nil {
			own.asked()
			own.release()
		}
		if own != nil && own.closed != nil {
			own.closed()
		} else {
			s.service.closed(c)
		}
		s.conns.Done()
		s.service.open.Add(-1)
	}
}

// Serve accepts connections of ln and serves them, until nothing is accepted any more.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return ln.Close()
	}
	s.ln = newListener(s.service, ln, s.TLSConfig != nil)
	s.mu.Unlock()
	defer close(s.accepted)
	var err error
	if s.TLSConfig != nil {
		err = s.ServeTLS(s.ln, "", "")
	} else {
		err = s.Server.Serve(s.ln)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// lastRequests is how long connections that are kept alive may send one more
// request, which is answered as their last, before those that are idle are
// closed: the request of a busy client must not cross with the close.
const lastRequests = 250 * time.Millisecond

// firstRequest is that time for connections on which nothing was asked yet: a client does not send
// what it asks first again, and net/http closes connections that it has heard of nothing from when it has begun to
// shut down.
const firstRequest = 2 * time.Second

// Shutdown lets running requests finish; what is left when ctx ends is closed.
func (s *Server) Shutdown(ctx context.Context) error {
	await(ctx, &s.conns, lastRequests)
	await(ctx, &s.unasked, firstRequest-lastRequests)
	if s.TLSConfig == nil && !s.Protocols.UnencryptedHTTP2() && !s.Protocols.HTTP2() {
		s.open.end(ctx, &s.conns)
	} else { // net/http says goodbye to those of HTTP/2
		s.open.awaitRead(ctx)
	}
	err := s.Server.Shutdown(ctx)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// await waits for all of a group, for so long at most.
func await(ctx context.Context, all *sync.WaitGroup, most time.Duration) {
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	wait := time.NewTimer(most)
	defer wait.Stop()
	select {
	case <-done:
	case <-wait.C:
	case <-ctx.Done():
	}
}

// StopAccepting empties the backlog and closes the listener. When it returns, and
// ctx has not ended, conns has every connection there will be.
func (s *Server) StopAccepting(ctx context.Context) {
	s.mu.Lock()
	ln := s.ln
	s.stopped = true
	s.mu.Unlock()
	if ln == nil {
		return
	}
	ln.stop()
	select {
	case <-s.accepted:
	case <-ctx.Done():
	}
}

// errorLog passes on what net/http logs as text.
type errorLog struct{ to *slog.Logger }

// Write logs one line: a failed TLS handshake, of which the world sends any
// number, at level Debug, everything else at level Warn.
func (l errorLog) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.HasPrefix(line, []byte("http: TLS handshake error")) {
		level = slog.LevelDebug
	}
	l.to.Log(context.Background(), level, string(bytes.TrimSuffix(line, []byte("\n"))))
	return len(line), nil
}
