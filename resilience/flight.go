package resilience

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// A Flight merges concurrent calls with the same key into one call, and gives all callers its result.
// The zero value is ready to use. A Flight must not be copied, and is safe for concurrent use. It does
// not store results: a call after the end of an earlier call runs again.
type Flight[K comparable, V any] struct {
	mu    sync.Mutex
	calls map[K]*flightCall[V]
}

type flightCall[V any] struct {
	done    chan struct{}
	waiting int // number of waiting callers; guarded by Flight.mu
	cancel  context.CancelFunc
	value   V
	err     error
}

// Do calls f, or waits for a running call with the same key, and returns the result. shared reports
// whether other callers get the same result. f runs on a new goroutine. Its context has the values of
// the first caller's context, and ends when no caller waits for the result. A caller whose ctx ends gets
// the error of ctx. A panic of f becomes an error that contains the stack.
//
// key must distinguish all calls with different results, and callers with different rights to see a
// result.
func (g *Flight[K, V]) Do(ctx context.Context, key K, f func(context.Context) (V, error)) (v V, shared bool, err error) {
	if err := ctx.Err(); err != nil {
		return v, false, err
	}
	g.mu.Lock()
	c := g.calls[key]
	if c == nil {
		if g.calls == nil {
			g.calls = make(map[K]*flightCall[V])
		}
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		c = &flightCall[V]{done: make(chan struct{}), cancel: cancel}
		g.calls[key] = c
		go g.run(own, key, c, f)
	} else {
		shared = true
	}
	c.waiting++
	g.mu.Unlock()
	select {
	case <-c.done:
		g.mu.Lock()
		defer g.mu.Unlock()
		return c.value, shared || c.waiting > 1, c.err
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.waiting--; c.waiting == 0 {
		c.cancel()
		if g.calls[key] == c {
			delete(g.calls, key) // later callers must not get a cancelled call
		}
	}
	return v, shared, ctx.Err()
}

var errGoexit = errors.New("the function called runtime.Goexit instead of returning")

func (g *Flight[K, V]) run(ctx context.Context, key K, c *flightCall[V], f func(context.Context) (V, error)) {
	c.err = errGoexit
	defer func() {
		if p := recover(); p != nil {
			c.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		c.cancel()
		g.mu.Lock()
		if g.calls[key] == c {
			delete(g.calls, key)
		}
		g.mu.Unlock()
		close(c.done)
	}()
	c.value, c.err = f(ctx)
}
