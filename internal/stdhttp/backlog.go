package stdhttp

import (
	"net"
	"sync/atomic"
	"time"
)

// A lastListener gives out what is left in its backlog before it closes: closing
// resets those connections, whose clients may have sent requests already.
type lastListener struct {
	net.Listener
	stopping atomic.Bool
	taken    int // since then
}

// lastAccepts bounds the connections that are taken before a listener is closed,
// should another process still accept from it and they never end.
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
	_ = l.Close() // by another way perhaps closed already
	return nil, net.ErrClosed
}

// stop has Accept come to its end.
func (l *lastListener) stop() {
	l.stopping.Store(true)
	if d, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); !ok || d.SetDeadline(time.Unix(1, 0)) != nil {
		_ = l.Close() // by another way perhaps closed already
	}
}
