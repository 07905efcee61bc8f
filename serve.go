package dunlin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
)

// A server serves one listener by one of the engines.
type server interface {
	// serve answers what comes in until shutdown or a failure of the listener.
	serve(ln net.Listener) error
	// stopAccepting closes the listener, when the connections in its backlog have
	// been accepted. It returns early when ctx ends.
	stopAccepting(ctx context.Context)
	// shutdown, after stopAccepting, closes idle connections and waits for running
	// requests until ctx ends; then it closes what is left and returns ctx's
	// error.
	shutdown(ctx context.Context) error
}

// serving is the part of an App that knows what runs.
type serving struct {
	drainState
	sync.Mutex
	running []server
	stopped bool
	drained chan struct{} // closed when shutdown is over
}

// A place is a listener, and how it is served: by TLS unless config is nil.
type place struct {
	net.Listener
	config *tls.Config
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
func (a *App) Serve(ln net.Listener) error { return a.serve(place{ln, nil}) }

func (a *App) serve(p place) error {
	o, err := a.open(p)
	if err != nil {
		return err
	}
	return o.serve()
}

// An opened place has its server and is known to Shutdown.
type opened struct {
	place
	server  server
	drained <-chan struct{}
}

// open makes the server of a place. When it fails, the listener is closed.
func (a *App) open(p place) (*opened, error) {
	srv, engine, err := a.newServer(p)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("dunlin: serve %s: %w", p.Addr(), err), p.Close())
	}
	drained, ok := a.enlist(srv)
	if !ok {
		return nil, errors.Join(fmt.Errorf("dunlin: serve %s: the app was shut down", p.Addr()), p.Close())
	}
	a.config.Logger.Info("serving", "addr", p.Addr().String(), "engine", engine.String(), "tls", p.config != nil)
	if a.config.Ready != nil {
		a.config.Ready(p.Addr(), engine)
	}
	return &opened{p, srv, drained}, nil
}

// serve answers what comes in until Shutdown has finished or the listener fails.
func (o *opened) serve() error {
	if err := o.server.serve(o.Listener); err != nil {
		return fmt.Errorf("dunlin: serve %s: %w", o.Addr(), err)
	}
	<-o.drained
	return nil
}

// newServer chooses the engine for a place.
func (a *App) newServer(p place) (server, Engine, error) {
	a.memory.begin(a)
	a.counting.Store(a.config.RouteStats != StatsOff)
	switch {
	case p.config != nil:
		if err := checkCertificate(p.config); err != nil {
			return nil, EngineStd, err
		}
	case a.config.Engine != EngineStd && !a.config.H2C:
		srv, err := newLoopServer(a, p.Listener)
		if err == nil {
			return srv, EngineLoop, nil
		}
		if a.config.Engine == EngineLoop {
			return nil, EngineLoop, err
		}
		a.config.Logger.Debug("the loop engine cannot serve this listener", "reason", err.Error())
	}
	return newStdServer(a, p.config), EngineStd, nil
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
// finish and then returns; see also Drain. When ctx ends first it closes what is
// left and returns ctx's error. The app cannot serve again.
func (a *App) Shutdown(ctx context.Context) error {
	a.serving.unready.Store(true)
	return a.shutdown(ctx)
}

// shutdown is Shutdown of an app whose place another process may take, so that
// Readiness stays as it is.
func (a *App) shutdown(ctx context.Context) error {
	s := &a.serving
	s.Lock()
	running, first := s.running, !s.stopped
	s.stopped = true
	s.Unlock()
	errs := make([]error, len(running))
	var wg sync.WaitGroup
	for _, srv := range running {
		wg.Go(func() { srv.stopAccepting(ctx) })
	}
	wg.Wait()
	// Not before: clients whose connections are closed make new ones.
	a.beginDrain()
	for i, srv := range running {
		wg.Go(func() { errs[i] = srv.shutdown(ctx) })
	}
	wg.Wait()
	a.memory.end()
	if first && len(running) > 0 {
		close(s.drained)
	}
	return errors.Join(errs...)
}
