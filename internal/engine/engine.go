//go:build linux

package engine

import (
	"context"
	"net"
)

// An Engine serves connections with event loops.
type Engine struct{ handler Handler }

// New starts an engine's loops. They use no processor time while there is
// nothing to do.
func New(cfg Config, h Handler) (*Engine, error) { panic("being written") }

// Serve accepts connections from ln, a TCP or unix listener, until Shutdown or
// Close, and then closes it. It may be called for several listeners.
// It returns net.ErrClosed after Shutdown or Close.
func (e *Engine) Serve(ln net.Listener) error { panic("being written") }

// Shutdown stops accepting, closes idle connections, and waits for the others to
// finish. When ctx ends first, it closes them as Close does and returns
// ctx's error.
func (e *Engine) Shutdown(ctx context.Context) error { panic("being written") }

// Close closes all listeners and connections at once. It does not wait for
// handlers that block; their connections are closed under them.
func (e *Engine) Close() error { panic("being written") }

// Stats is a snapshot of an engine's counts.
type Stats struct {
	Conns        int   // open connections
	ConnsPerLoop []int // by loop
	Accepts      uint64
	AcceptPauses uint64 // times accepting stopped for want of descriptors or MaxConns
	Takeovers    uint64 // loops taken from a driver that blocked
	Away         int    // connections with a detached driver or a worker
	WorkersBusy  int
	WorkersIdle  int
	JobsQueued   int
	QueueWait    int64 // nanoseconds the latest job waited for a worker
	PendingBytes int64 // output that peers have not taken yet
}

// Stats returns the engine's counts. Safe for concurrent use.
func (e *Engine) Stats() Stats { panic("being written") }
