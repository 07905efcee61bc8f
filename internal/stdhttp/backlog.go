package stdhttp

import (
	"net"
	"sync/atomic"
	"time"
)

// A lastListener accepts the rest of its backlog before it closes. Closing resets the connections in the backlog,
// whose clients may have sent requests already.
type lastListener struct {
	net.Listener
	stopping atomic.Bool
	taken    int // number of connections accepted since
}

// lastAccepts limits the number of connections accepted before a listener closes, in case another process accepts from
// it and connections never stop.
const lastAccepts = 1 << 14

// Accept returns net.ErrClosed after the last connection before stop.
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
	_ = l.Close() // may be closed already
	return nil, net.ErrClosed
}

// stop makes Accept return net.ErrClosed.
func (l *lastListener) stop() {
	l.stopping.Store(true)
	if d, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); !ok || d.SetDeadline(time.Unix(1, 0)) != nil {
		_ = l.Close() // may be closed already
	}
}
