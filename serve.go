package dunlin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/dunlinhttp/dunlin/internal/certfile"
	"github.com/dunlinhttp/dunlin/internal/gcpace"
	"github.com/dunlinhttp/dunlin/internal/lifecycle"
	"github.com/dunlinhttp/dunlin/stats"
)

// ListenAndServe listens on the TCP address addr and serves the listener as Serve does. Run describes restarts.
func (a *App) ListenAndServe(addr string) error {
	ln, done, err := lifecycle.ListenShared(addr)
	if err != nil {
		return fmt.Errorf("dunlin: listen: %w", err)
	}
	defer done()
	return a.Serve(ln)
}

// Serve answers the connections of ln until Shutdown, and closes ln. It returns nil when Shutdown has finished, or the
// error of the listener. Several listeners may be served at the same time.
func (a *App) Serve(ln net.Listener) error { return a.serve(lifecycle.Endpoint{Listener: ln}) }

func (a *App) serve(p lifecycle.Endpoint) error {
	defer a.logs.FlushLast(context.Background()) // the caller may end the program after this
	serve, err := a.open(p)
	if err != nil {
		return fmt.Errorf("dunlin: %w", err)
	}
	if err := serve(); err != nil {
		// One call of Unwrap returns the listener's error.
		return fmt.Errorf("dunlin: serve %s: %w", p.Addr(), errors.Unwrap(err))
	}
	return nil
}

// open makes the server of an endpoint and registers it for Shutdown. It returns the function that serves the endpoint until
// Shutdown has finished or the listener fails. If open fails, it closes the listener.
func (a *App) open(p lifecycle.Endpoint) (serve func() error, err error) {
	var srv lifecycle.Server
	var engine Engine
	drained, err := a.servers.Add(func() (lifecycle.Server, error) {
		srv, engine, err = a.newServer(p)
		return srv, err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("serve %s: %w", p.Addr(), err), p.Close())
	}
	a.ports.Add(p)
	a.asyncLog.Info("serving", "addr", p.Addr().String(), "engine", engine.String(), "tls", p.TLS != nil)
	if a.config.Ready != nil {
		a.config.Ready(p.Addr(), engine)
	}
	if a.secure != nil && p.TLS != nil {
		if certs := a.secure.issued.Load(); certs != nil {
			a.renewal.Do(func() {
				a.Go("certificates", func(ctx context.Context) error { (*certs).Renew(ctx); return nil })
			})
		}
	}
	return func() error {
		if err := srv.Serve(p.Listener); err != nil {
			return fmt.Errorf("serve %s: %w", p.Addr(), err)
		}
		<-drained
		return nil
	}, nil
}

// newServer chooses the engine for an endpoint and makes its server.
func (a *App) newServer(p lifecycle.Endpoint) (lifecycle.Server, Engine, error) {
	if budget := a.memory.Begin(gcpace.Settings{Limit: int64(a.config.Limits.Memory), NoPacing: a.config.Process.DisableGCPacing, Log: a.asyncLog}); budget > 0 {
		a.memory.Budget.SetBound(budget)
	}
	a.server.Counting.Store(a.config.RouteStats != stats.Off)
	if p.TLS != nil {
		if err := certfile.Check(p.TLS.Config); err != nil {
			return nil, EngineStd, err
		}
		p.TLS = &lifecycle.TLS{Config: a.tickets.Secure(p.TLS.Config, p.Addr().String()), Prompt: p.TLS.Prompt}
	}
	if a.config.Engine != EngineStd {
		srv, err := a.loop.NewServer(p.Listener, a.loopSettings(), p.TLS)
		if err == nil {
			a.memory.LoopServes()
			return srv, EngineLoop, nil
		}
		if a.config.Engine == EngineLoop {
			return nil, EngineLoop, err
		}
		a.log.Debug("the loop engine cannot serve this listener", "reason", err.Error())
	}
	var config *tls.Config
	if p.TLS != nil {
		config = p.TLS.Config
	}
	return a.std.NewServer(config), EngineStd, nil
}

// Shutdown stops accepting connections, closes idle connections, and returns when running requests and workers have
// finished; see also Drain. If ctx ends first, Shutdown closes the remaining connections and returns the error of ctx.
// The app cannot serve again.
func (a *App) Shutdown(ctx context.Context) error {
	a.servers.Unready()
	return a.shutdown(ctx)
}

// shutdown is Shutdown without the change of Readiness, for a restart in which another process serves the listeners.
func (a *App) shutdown(ctx context.Context) error {
	err := a.servers.Shutdown(ctx, a.memory.End)
	a.logs.FlushLast(ctx)
	return err
}
