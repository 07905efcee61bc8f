package dunlin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os/signal"
	"sync"
	"syscall"
)

// A server serves one listener by one of the engines.
type server interface {
	// serve answers what comes in until shutdown or a failure of the listener.
	serve(ln net.Listener) error
	// shutdown stops accepting, closes idle connections and waits for running
	// requests until ctx ends; then it closes what is left and returns ctx's
	// error.
	shutdown(ctx context.Context) error
}

// serving is the part of an App that knows what runs.
type serving struct {
	sync.Mutex
	running []server
	stopped bool
	drained chan struct{} // closed when shutdown is over
}

// ListenAndServe listens on the TCP address addr and serves it, see Serve.
func (a *App) ListenAndServe(addr string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("dunlin: listen: %w", err)
	}
	return a.Serve(ln)
}

// Serve answers the connections of ln until Shutdown, and returns nil when that
// has finished; or the error that made the listener fail. It closes ln. Several
// listeners may be served at the same time.
func (a *App) Serve(ln net.Listener) error {
	srv, engine, err := a.newServer(ln)
	if err != nil {
		return errors.Join(fmt.Errorf("dunlin: serve %s: %w", ln.Addr(), err), ln.Close())
	}
	drained, ok := a.enlist(srv)
	if !ok {
		return errors.Join(fmt.Errorf("dunlin: serve %s: the app was shut down", ln.Addr()), ln.Close())
	}
	a.config.Logger.Info("serving", "addr", ln.Addr().String(), "engine", engine.String())
	if a.config.Ready != nil {
		a.config.Ready(ln.Addr(), engine)
	}
	if err := srv.serve(ln); err != nil {
		return fmt.Errorf("dunlin: serve %s: %w", ln.Addr(), err)
	}
	<-drained
	return nil
}

// newServer chooses the engine for a listener.
func (a *App) newServer(ln net.Listener) (server, Engine, error) {
	if a.config.Engine != EngineStd {
		srv, err := newLoopServer(a, ln)
		if err == nil {
			return srv, EngineLoop, nil
		}
		if a.config.Engine == EngineLoop {
			return nil, EngineLoop, err
		}
		a.config.Logger.Debug("the loop engine cannot serve this listener", "reason", err.Error())
	}
	return newStdServer(a), EngineStd, nil
}

// enlist remembers a server for Shutdown; false when that has happened.
func (a *App) enlist(srv server) (drained <-chan struct{}, ok bool) {
	s := &a.serving
	s.Lock()
	defer s.Unlock()
	if s.stopped {
		return nil, false
	}
	if s.drained == nil {
		s.drained = make(chan struct{})
	}
	s.running = append(s.running, srv)
	return s.drained, true
}

// Shutdown stops accepting connections, closes idle ones, lets running requests
// finish and then returns. When ctx ends first it closes what is left and
// returns ctx's error. The app cannot serve again.
func (a *App) Shutdown(ctx context.Context) error {
	s := &a.serving
	s.Lock()
	running, first := s.running, !s.stopped
	s.stopped = true
	s.Unlock()
	errs := make([]error, len(running))
	var wg sync.WaitGroup
	for i, srv := range running {
		wg.Go(func() { errs[i] = srv.shutdown(ctx) })
	}
	wg.Wait()
	if first && len(running) > 0 {
		close(s.drained)
	}
	return errors.Join(errs...)
}

// Run serves Config.Addr until ctx ends or the process is told to stop by SIGINT
// or SIGTERM, then drains: it returns when running requests have finished, with
// an error when they had not after Config.DrainTimeout.
func (a *App) Run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	failed := make(chan error, 1)
	go func() { failed <- a.ListenAndServe(a.config.Addr) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	stop() // a second signal ends the process at once
	a.config.Logger.Info("draining", "timeout", a.config.DrainTimeout)
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.config.DrainTimeout)
	defer cancel()
	if err := a.Shutdown(deadline); err != nil {
		return fmt.Errorf("dunlin: drain: requests were still running after %v: %w", a.config.DrainTimeout, err)
	}
	return nil
}

// stdServer serves by net/http.
type stdServer struct{ http.Server }

func newStdServer(a *App) *stdServer {
	s := new(stdServer)
	s.Handler = a
	s.ReadHeaderTimeout = a.config.HeadTimeout
	s.IdleTimeout = a.config.IdleTimeout
	s.MaxHeaderBytes = a.config.MaxHead
	s.DisableGeneralOptionsHandler = true
	s.ErrorLog = slog.NewLogLogger(a.config.Logger.Handler(), slog.LevelWarn)
	return s
}

func (s *stdServer) serve(ln net.Listener) error {
	if err := s.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s *stdServer) shutdown(ctx context.Context) error {
	err := s.Shutdown(ctx)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}
