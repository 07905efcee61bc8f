package dunlin

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/lifecycle"
)

// loopState is the one engine of an app, made for its first listener and
// shared by all.
type loopState struct {
	once   sync.Once
	engine *engine.Engine
	err    error

	serving atomic.Pointer[engine.Engine] // engine, for whoever comes by
}

// loopServer serves one listener by the app's engine.
type loopServer struct{ engine *engine.Engine }

// newLoopServer returns the server for a listener, or why the loop engine
// cannot serve it.
func newLoopServer(a *App, ln net.Listener) (lifecycle.Server, error) {
	switch ln.(type) {
	case *net.TCPListener, *net.UnixListener:
	default:
		return nil, fmt.Errorf("the loop engine serves TCP and unix listeners, not a %T", ln)
	}
	a.loop.once.Do(func() {
		h := newLoopHandler(a)
		h.limits.MaxHead = a.config.MaxHead
		h.limits.MaxFields = a.config.MaxHeaders
		h.limits.MaxTarget = a.config.MaxHead
		a.loop.engine, a.loop.err = engine.New(engine.Config{
			ReadBuffer:       max(readBuffer, a.config.MaxHead+1),
			OpenTimeout:      a.config.IdleTimeout,
			WriteGrace:       a.config.WriteTimeout,
			Budget:           &a.memory.budget,
			Holders:          a.memory.holders,
			MaxWorkers:       a.maxConcurrent(),
			AdaptiveWorkers:  a.config.AdaptiveLimit,
			QueueTarget:      a.config.QueueTarget,
			Shed:             &a.shed,
			LeaveDescriptors: a.config.DisableDescriptorGrowth,

			Logger: a.aside,

			MinWriteRate:   a.config.MinWriteRate,
			KeepAlive:      max(a.config.TCPKeepAlive, 0),
			MaxConns:       a.config.MaxConnections,
			MaxLoopConns:   a.config.MaxConnectionsPerLoop,
			Addresses:      a.server.Addresses,
			LoopRefusal:    loopRefusal,
			AddressRefusal: addressRefusal,
		}, h)
		if a.loop.err == nil {
			a.memory.onQuiet(func() int64 { return a.loop.engine.LetGo() + h.letGo() })
		}
		a.loop.serving.Store(a.loop.engine)
	})
	if a.loop.err != nil {
		return nil, a.loop.err
	}
	if err := a.loop.engine.Prepare(ln); err != nil {
		return nil, err
	}
	return &loopServer{a.loop.engine}, nil
}

// maxConcurrent is Config.MaxConcurrent or its default.
func (a *App) maxConcurrent() int { return cmp.Or(a.config.MaxConcurrent, a.memory.maxConcurrent()) }

func (s *loopServer) Serve(ln net.Listener) error {
	// The engine's own word for a shutdown; a listener that somebody else closed
	// fails with an error that wraps it.
	if err := s.engine.Serve(ln); err != net.ErrClosed {
		return err
	}
	return nil
}

func (s *loopServer) StopAccepting(context.Context) { s.engine.StopAccepting() }

func (s *loopServer) Shutdown(ctx context.Context) error { return s.engine.Shutdown(ctx) }
