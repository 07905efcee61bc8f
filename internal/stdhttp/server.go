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

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/logqueue"
)

// A Server serves one listener.
type Server struct {
	http.Server
	service *Service
	secure  bool // it serves TLS; TLSConfig is set without it, too
	open    openConns
	// handlers counts running handlers with hijacked connections, which net/http no longer tracks.
	handlers sync.WaitGroup

	mu       sync.Mutex
	ln       *listener // set while serving
	stopped  bool
	accepted chan struct{} // closed when accepting has stopped
}

// NewServer returns the server of one listener. It serves TLS if config is not nil.
func (s *Service) NewServer(config *tls.Config) *Server {
	srv := &Server{service: s, secure: config != nil, open: newOpenConns(), accepted: make(chan struct{})}
	srv.Handler = http.HandlerFunc(s.serve)
	srv.ReadHeaderTimeout = s.HeadTimeout
	srv.IdleTimeout = s.IdleTimeout
	srv.WriteTimeout = noTimeout
	srv.MaxHeaderBytes = s.MaxHead
	srv.DisableGeneralOptionsHandler = true
	srv.ErrorLog = log.New(errorLog{s.Log, &s.lines}, "", 0)
	srv.ConnContext = withConn
	srv.ConnState = srv.count
	srv.TLSConfig = config.Clone()
	srv.Protocols = new(http.Protocols)
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetHTTP2(config != nil)
	srv.Protocols.SetUnencryptedHTTP2(s.H2C)
	srv.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: s.MaxStreamsPerConnection}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.servers = append(s.servers, srv)
	return srv
}

// count updates open and the counters of the service.
func (s *Server) count(c net.Conn, state http.ConnState) {
	own := connOf(c)
	switch state {
	case http.StateNew:
		s.service.open.Add(1)
		s.service.accepted.Add(1)
		if own != nil {
			_, own.secure = c.(*tls.Conn)
			own.handlers = &s.handlers
		}
		s.open.add(own)
	case http.StateIdle:
		if own != nil {
			s.noteIdle(own, c)
		}
	case http.StateActive:
		own.setIdle(busy)
	case http.StateClosed, http.StateHijacked:
		s.open.remove(own)
		if own != nil {
			own.release()
		}
		s.service.closed(c)
		s.service.open.Add(-1)
	}
}

// noteIdle records that a connection is idle. An HTTP/2 connection is idle also before its first request.
func (s *Server) noteIdle(own *timedConn, c net.Conn) {
	if own.unasked.Load() != nil {
		switch {
		case speaksHTTP2(c):
			own.http2.Store(true)
			if own.wasIdle {
				own.asked()
			}
			own.wasIdle = true
		case !s.secure && s.service.H2C: // noteRequest handles it
		default:
			own.asked()
		}
	}
	if own.unasked.Load() == nil && !own.http2.Load() { // otherwise it uses HTTP/2
		own.setIdle(between)
	}
}

// Serve accepts connections of ln and serves them until accepting stops.
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

// lastRequests is the time in which keep-alive connections may send one more request, which is answered as their last, before
// idle ones are closed: a request of a busy client must not cross the close.
const lastRequests = 250 * time.Millisecond

// firstRequest is the same time for connections without any request: clients do not retry their first request, and net/http closes
// connections without input once it shuts down.
const firstRequest = 2 * time.Second

// Shutdown waits for running requests and for handlers with hijacked connections. When ctx ends, the remaining
// connections are closed, except hijacked ones.
func (s *Server) Shutdown(ctx context.Context) error {
	s.service.drainSwitched(ctx)
	s.endIdle(ctx)
	err := s.Server.Shutdown(ctx)
	if err != nil {
		s.service.closeSwitched()
		return errors.Join(err, s.Close())
	}
	returned := make(chan struct{})
	go func() { s.handlers.Wait(); close(returned) }()
	select {
	case <-returned:
		return nil
	case <-ctx.Done():
		s.service.closeSwitched()
		return ctx.Err()
	}
}

// endIdle closes idle HTTP/1.1 connections: keep-alive connections after lastRequests, even if they become idle later,
// and new ones after firstRequest. It returns when all are closed. If the server has HTTP/2, whose idle connections
// net/http closes with GOAWAY, it returns when the connections that were idle are closed.
func (s *Server) endIdle(ctx context.Context) {
	last, first := atMostHalf(ctx, lastRequests), atMostHalf(ctx, firstRequest)
	http2 := s.secure || s.Protocols.UnencryptedHTTP2()
	s.open.noteBusy()
	for began := time.Now(); s.open.count.Load() > 0; {
		since := time.Since(began)
		next := last - since
		if next <= 0 {
			next = first - since
			isLate := next <= 0
			rest := s.open.endIdle(isLate, last)
			switch {
			case isLate && rest.begun > 0 && since > first+s.service.HeadTimeout:
				return // net/http does not count a partial head as a request
			case !http2:
			case (isLate || s.open.unasked.Load() == 0) && rest.idle == 0 && (rest.begun == 0 || since >= first+last/2):
				return
			}
			if isLate {
				next = time.Second
			}
		}
		if !s.open.wait(ctx, next) {
			return
		}
	}
}

// StopAccepting empties the backlog and closes the listener. When it returns before ctx ends, open has every
// connection.
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

// errorLog forwards net/http's log output.
type errorLog struct {
	to    *slog.Logger
	lines *admission.Lines // at level Warn
}

// Write logs one line. A failed TLS handshake, which any port scanner causes, is logged at level Debug. Others are
// logged at level Warn, at most once a second, since clients may cause them.
func (l errorLog) Write(line []byte) (int, error) {
	text := logqueue.Short(string(bytes.TrimSuffix(line, []byte("\n"))))
	if bytes.HasPrefix(line, []byte("http: TLS handshake error")) {
		l.to.Debug(text)
		return len(line), nil
	}
	if count, due := l.lines.Note(); due {
		l.to.Warn(text, "count", count)
	}
	return len(line), nil
}
