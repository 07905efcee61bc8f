//go:build linux

package loophttp

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/lifecycle"
)

// A Service is the engine of an app, made for its first listener and shared by all listeners. The zero value is ready.
type Service struct {
	once   sync.Once
	engine *engine.Engine
	err    error

	serving atomic.Pointer[engine.Engine] // engine, for other goroutines
}

// A loopServer serves one listener with the engine.
type loopServer struct{ engine *engine.Engine }

// NewServer returns the server for a listener, without TLS if secure is nil. It fails if the engine cannot serve the listener.
// Only the settings of the first call are used.
func (s *Service) NewServer(ln net.Listener, settings Settings, secure *lifecycle.TLS) (lifecycle.Server, error) {
	switch ln.(type) {
	case *net.TCPListener, *net.UnixListener:
	default:
		return nil, fmt.Errorf("the loop engine serves TCP and unix listeners, not a %T", ln)
	}
	if err := engine.Prepare(ln, keepAlive(settings.Server)); err != nil { // before start: an engine without a server would never end
		return nil, err
	}
	s.once.Do(func() { s.start(&settings) })
	if s.err != nil {
		return nil, s.err
	}
	if secure != nil {
		return &secureServer{loopServer{s.engine}, withProtocols(secure.Config), secure.Prompt, settings.Server}, nil
	}
	return &loopServer{s.engine}, nil
}

// start makes the engine.
func (s *Service) start(settings *Settings) {
	from := settings.Server
	h := newHandler(from, settings.MaxConcurrent)
	s.engine, s.err = engine.New(engine.Config{
		Start:           exchange.Began(),
		ReadBuffer:      max(readBuffer, from.MaxHead+1),
		OpenTimeout:     from.IdleTimeout,
		WriteGrace:      from.WriteTimeout,
		Budget:          from.Budget,
		SecureMemory:    settings.SecureMemory,
		MaxWorkers:      settings.MaxConcurrent,
		AdaptiveWorkers: from.AdaptiveLimit,
		QueueTarget:     from.QueueTarget,
		Shed:            from.Shed,

		Logger: from.Log,

		MinWriteRate:   from.MinWriteRate,
		KeepAlive:      keepAlive(from),
		MaxConns:       from.MaxConnections,
		MaxLoopConns:   from.MaxConnectionsPerLoop,
		Addresses:      from.Addresses,
		Proxies:        from.TrustedProxies(),
		ProxyHeader:    from.ProxyHeader,
		LoopRefusal:    exchange.ConnectionRefusal,
		AddressRefusal: exchange.AddressRefusal,

		CountSwitches: from.Counts.Switches, CountPauses: from.Counts.Pauses,
	}, h)
	if s.err == nil {
		settings.OnQuiet(func() int64 { return s.engine.DropFree() + h.dropFree() })
	}
	s.serving.Store(s.engine)
}

// keepAlive returns how long a peer may be silent before the first keep-alive probe, 0 for no probes.
func keepAlive(s *exchange.Server) time.Duration { return max(s.TCPKeepAlive, 0) }

// Stats returns the statistics of the event loops, and false if none run.
func (s *Service) Stats() (stats Stats, serving bool) {
	e := s.serving.Load()
	if e == nil {
		return Stats{}, false
	}
	from := e.Stats()
	return Stats{
		Connections: from.Conns, PerLoop: from.ConnsPerLoop,
		Accepted: from.Accepts, AcceptPauses: from.AcceptPauses, AcceptPaused: from.AcceptPaused,
		ReadPaused: from.PendingConns, SecureBytes: from.SecureBytes,
		Away: from.Away, Working: from.WorkersBusy, MostWorking: from.WorkersMost, Queued: from.JobsQueued,
		Takeovers: from.Takeovers,
		LoopWait:  from.LoopWait, LoopWaitMost: from.LoopWaitMost,
		QueueWait: from.QueueWait, QueueWaitMost: from.QueueWaitMost,
	}, true
}

// Engine returns the engine, for tests of it, or nil if none runs.
func (s *Service) Engine() *engine.Engine { return s.serving.Load() }

func (s *loopServer) Serve(ln net.Listener) error {
	// The engine returns net.ErrClosed itself after a shutdown. A listener that was closed by other code fails with an error
	// that wraps it.
	if err := s.engine.ServePrepared(ln, nil); err != net.ErrClosed {
		return err
	}
	return nil
}

func (s *loopServer) StopAccepting(context.Context) { s.engine.StopAccepting() }

func (s *loopServer) Shutdown(ctx context.Context) error { return s.engine.Shutdown(ctx) }
