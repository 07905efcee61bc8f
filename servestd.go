package dunlin

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
	"sync/atomic"
	"time"
)

// stdServer serves one listener by net/http.
type stdServer struct {
	http.Server
	app   *App
	conns sync.WaitGroup // open connections; only grows while Serve runs

	mu       sync.Mutex
	ln       *stdListener // once it is being served
	stopped  bool
	accepted chan struct{} // closed when nothing is accepted any more
}

// newStdServer makes the server for one listener: of TLS unless config is nil.
func newStdServer(a *App, config *tls.Config) *stdServer {
	s := &stdServer{app: a, accepted: make(chan struct{})}
	limited := a.config.MaxRequestsPerConnection > 0
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if limited && a.lastOfConnection(req) || a.servers.IsDraining() {
			// HTTP/2 makes a GOAWAY of it.
			w.Header().Set("Connection", "close")
		}
		if len(req.Header) > a.config.MaxHeaders {
			a.tooManyHeaders(w, req)
			return
		}
		if req.ProtoMajor == 2 {
			a.serveStream(w, req)
			return
		}
		a.ServeHTTP(w, req)
	})
	s.ReadHeaderTimeout = a.config.HeadTimeout
	s.IdleTimeout = a.config.IdleTimeout
	s.MaxHeaderBytes = a.config.MaxHead
	s.DisableGeneralOptionsHandler = true
	s.ErrorLog = log.New(stdLog{a.aside}, "", 0)
	s.ConnContext = withStdConn
	s.ConnState = s.count
	s.TLSConfig = config.Clone()
	s.Protocols = new(http.Protocols)
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(config != nil)
	s.Protocols.SetUnencryptedHTTP2(a.config.H2C)
	return s
}

// connCount counts connections.
type connCount struct {
	open     atomic.Int64
	accepted atomic.Uint64
}

// count keeps conns, and those of the app.
func (s *stdServer) count(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.conns.Add(1)
		s.app.conns.open.Add(1)
		s.app.conns.accepted.Add(1)
	case http.StateClosed, http.StateHijacked:
		if own := stdConnOf(c); own != nil {
			own.release()
		}
		s.app.clients.gone(c)
		s.conns.Done()
		s.app.conns.open.Add(-1)
	}
}

func (s *stdServer) Serve(ln net.Listener) error {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return ln.Close()
	}
	s.ln = newStdListener(s.app, ln, s.TLSConfig != nil)
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

func (s *stdServer) Shutdown(ctx context.Context) error {
	gone := make(chan struct{})
	go func() {
		s.conns.Wait()
		close(gone)
	}()
	wait := time.NewTimer(lastRequests)
	defer wait.Stop()
	select {
	case <-gone:
	case <-wait.C:
	case <-ctx.Done():
	}
	err := s.Server.Shutdown(ctx)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// stopAccepting empties the backlog and closes the listener. When it returns, and
// ctx has not ended, conns has every connection there will be.
func (s *stdServer) StopAccepting(ctx context.Context) {
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

// stdLog passes on what net/http logs as text.
type stdLog struct{ to *slog.Logger }

// Write logs one line: a failed TLS handshake, of which the world sends any
// number, at level Debug, everything else at level Warn.
func (l stdLog) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	if bytes.HasPrefix(line, []byte("http: TLS handshake error")) {
		level = slog.LevelDebug
	}
	l.to.Log(context.Background(), level, string(bytes.TrimSuffix(line, []byte("\n"))))
	return len(line), nil
}
