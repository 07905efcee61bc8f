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

// A gate holds back calls to a part while a connection to it is being made. rueidis makes a connection within the first call
// that needs it, under the deadline of that call, and all other calls wait for that attempt. Without the gate, a Redis whose
// connections take longer than the deadline of a call would never be reconnected, and calls would wait beyond their deadlines
// for the connection of a subscription. Therefore calls wait at the gate while a connection is being made, and continue after a
// visit with a longer deadline has reached the part.
type gate struct {
	next  func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) // nil: TCP
	shut  atomic.Int64                                                              // number of shut parts
	mu    sync.Mutex
	parts []gatePart
}

type gatePart struct {
	shut  bool
	visit *visit // the current visit; nil for none
}

// A visit finds out, for all waiting calls, whether a part is connected.
type visit struct {
	over chan struct{}
	err  error // may be read after the end of the visit
}

const (
	visitors = 8 // concurrent calls of one visit: each uses one of two connections at random
	visits   = 2 // attempts before calls fail: the first may have waited for a connection with an earlier deadline
)

// Keys of values in a context. They mark a visitor, which has a later deadline, and a subscription, which has no deadline.
type (
	visiting    struct{}
	subscribing struct{}
)

// dial is the dial function of rueidis. It shuts the gate, except for visitors and for the dedicated connections of writes.
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

// pass waits until a part is connected. It fails if the connection fails, or when ctx ends.
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

// visitOnce reads a key of Redis by several concurrent calls, so that each connection is probably used.
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
				err = nil // the call itself receives this error
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
