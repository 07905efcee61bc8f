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

// A Server is the net/http server of one listener.
type Server struct {
	http.Server
	service *Service
	secure  bool // the server uses TLS; TLSConfig may be set without TLS
	open    openConns
	// handlers counts the handlers that have hijacked a connection and have not returned. net/http does not wait for them.
	handlers sync.WaitGroup

	mu       sync.Mutex
	ln       *listener // set by Serve
	stopped  bool
	accepted chan struct{} // closed when Serve no longer accepts connections
}

// NewServer returns a server for one listener. It uses TLS if config is not nil.
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

// count updates s.open and the counters of the service for a change of a connection's state.
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

// noteIdle records that a connection is idle. net/http also reports an HTTP/2 connection as idle before its first request.
func (s *Server) noteIdle(own *timedConn, c net.Conn) {
	if own.unasked.Load() != nil {
		switch {
		case speaksHTTP2(c):
			own.http2.Store(true)
			if own.wasIdle {
				own.asked()
			}
			own.wasIdle = true
		case !s.secure && s.service.H2C: // noteRequest finds out whether the connection uses HTTP/2
		default:
			own.asked()
		}
	}
	if own.unasked.Load() == nil && !own.http2.Load() { // otherwise the connection uses HTTP/2
		own.setIdle(between)
	}
}

// Serve accepts connections from ln and serves them until accepting stops.
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

// lastRequests is the time for which the drain keeps idle keep-alive connections open. In this time a busy client may send one
// more request, which is answered as the last request of its connection. Without this time, the request could be sent while the
// server closes the connection.
const lastRequests = 250 * time.Millisecond

// firstRequest is the time for which the drain keeps connections open that have not received a request. Clients do not repeat
// their first request, and net/http closes such connections when it shuts down.
const firstRequest = 2 * time.Second

// Shutdown waits for running requests, and for handlers that have hijacked a connection. When ctx ends, it closes all remaining
// connections except those that handlers have hijacked.
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

// endIdle closes idle HTTP/1.1 connections: keep-alive connections after lastRequests, even if they become idle later, and new
// connections after firstRequest. It returns when all connections are closed. If the server supports HTTP/2, it returns when
// the HTTP/1.1 connections that were idle are closed, because net/http closes idle HTTP/2 connections with GOAWAY.
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
				return // net/http does not count a partial head as a request, and closes the connection
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

// StopAccepting accepts the connections in the backlog and closes the listener. If it returns before ctx ends, s.open has every
// accepted connection.
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

// errorLog passes the log output of net/http to a logger.
type errorLog struct {
	to    *slog.Logger
	lines *admission.Lines // at level Warn
}

// Write logs one line. A failed TLS handshake is logged at level Debug, because every port scanner causes one. Other lines are
// logged at level Warn, at most once a second, because clients may cause them.
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
