package redis

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/dunlinhttp/dunlin/backend"
	"github.com/dunlinhttp/dunlin/store"
)

// A gate keeps the calls to each part outside while a connection is being made. rueidis makes one by the first call that needs it, within that call's
// time, and all others wait for that one, however little time they have: a Redis to which a connection takes longer than a call may would
// never be connected to again, and calls would wait for the connection of a subscription beyond their time. So when one is begun, calls wait here,
// and go on when a visit that has more time has been at the part.
type gate struct {
	next  func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) // nil: by TCP
	shut  atomic.Int64                                                              // how many parts are
	mu    sync.Mutex
	parts []gatePart
}

type gatePart struct {
	shut  bool
	visit *visit // that is under way, nil for none
}

// A visit finds out whether a part is connected to, for all who wait.
type visit struct {
	over chan struct{}
	err  error // to be read when it is over
}

const (
	visitors = 8 // of one visit, at once: each takes one of two connections by chance
	visits   = 2 // until calls fail: the first may have waited for the connection of somebody with less time
)

// The keys of a context: of a visitor, who has time, and of a subscription, which has no deadline at all.
type (
	visiting    struct{}
	subscribing struct{}
)

// dial is that of rueidis. It shuts the gate, but for visitors, and for the connections that writes have for themselves.
func (g *gate) dial(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	if _, ends := ctx.Deadline(); ctx.Value(visiting{}) == nil && (ends || ctx.Value(subscribing{}) != nil) {
		g.close()
	}
	if g.next != nil {
		return g.next(ctx, addr, dialer, config)
	}
	if config != nil {
		return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", addr)
	}
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return backend.Wrap(c), nil
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.parts {
		if p := &g.parts[i]; !p.shut {
			p.shut = true
			g.shut.Add(1)
		}
	}
}

// pass waits until a part is connected to. It fails if that cannot be done, or when ctx ends.
func (s *redisStore) pass(ctx context.Context, key string, number bool) error {
	if s.gate.shut.Load() == 0 {
		return nil
	}
	g, p := s.gate, &s.gate.parts[s.Shard(key, number)]
	g.mu.Lock()
	if !p.shut {
		g.mu.Unlock()
		return nil
	}
	v := p.visit
	if v == nil {
		v = &visit{over: make(chan struct{})}
		p.visit = v
		go s.visit(p, v, s.redisKey(key, number))
	}
	g.mu.Unlock()
	select {
	case <-v.over:
		return s.errorOf(v.err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *redisStore) visit(p *gatePart, v *visit, key string) {
	defer close(v.over)
	for range visits {
		if v.err = s.visitOnce(key); v.err == nil || s.closing.Err() != nil {
			break
		}
	}
	if s.closing.Err() != nil {
		v.err = store.ErrClosed
	}
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	p.visit = nil
	if v.err == nil {
		p.shut = false
		s.gate.shut.Add(-1)
	}
}

// visitOnce asks for a key of Redis, by as many as make it likely that each connection is used.
func (s *redisStore) visitOnce(key string) error {
	ctx, cancel := context.WithTimeout(context.WithValue(s.closing, visiting{}, true), dialTimeout)
	defer cancel()
	l := s.use()
	defer l.calls.RUnlock()
	errs := make(chan error, visitors)
	for range visitors {
		go func() {
			err := l.client.Do(ctx, l.client.B().Arbitrary("EXISTS").Keys(key).Build()).Error()
			if _, answered := rueidis.IsRedisErr(err); answered {
				err = nil // the call hears it itself
			}
			errs <- err
		}()
	}
	var first error
	for range visitors {
		if err := <-errs; first == nil {
			first = err
		}
	}
	return first
}
