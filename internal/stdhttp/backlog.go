package stdhttp

import (
	"net"
	"sync/atomic"
	"time"
)

// A lastListener accepts the rest of its backlog before it closes. If it closed at once, the system would reset the
// connections in the backlog, although their clients may already have sent requests.
type lastListener struct {
	net.Listener
	stopping atomic.Bool
	taken    int // number of connections that were accepted since stop
}

// lastAccepts is the maximum number of connections that are accepted after stop. Another process may share the
// listener, so that new connections could keep arriving in the backlog without end.
const lastAccepts = 1 << 14

// Accept returns net.ErrClosed after it has returned the connections that were in the backlog at the time of stop.
func (l *lastListener) Accept() (net.Conn, error) {
	if !l.stopping.Load() {
		if conn, err := l.Listener.Accept(); err == nil || !l.stopping.Load() {
			return conn, err
		}
	}
	if l.taken++; l.taken <= lastAccepts {
		if conn, err := acceptNow(l.Listener); err == nil {
			return conn, nil
		}
	}
	_ = l.Close() // the listener may already be closed
	return nil, net.ErrClosed
}

// stop makes Accept return net.ErrClosed when the backlog is empty.
func (l *lastListener) stop() {
	l.stopping.Store(true)
	if d, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); !ok || d.SetDeadline(time.Unix(1, 0)) != nil {
		_ = l.Close() // the listener may already be closed
	}
}
