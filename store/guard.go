package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// GuardConfig has the settings of Guard. Zero fields have the defaults.
type GuardConfig struct {
	// Timeout bounds each call, but not subscriptions. Default: 250 ms.
	Timeout time.Duration

	// Failures is how many calls in a row must fail for the breaker to open. Default: 5.
	Failures int

	// Cooldown is for how long it stays open: calls fail at once then, with
	// ErrUnavailable. After it one call is let through, and the breaker closes when that
	// succeeds, else it stays open for another Cooldown. Default: 1 s.
	Cooldown time.Duration
}

// A Guarded is a store on another machine that nobody waits for in vain.
type Guarded struct {
	inner  Store
	config GuardConfig

	failed atomic.Int64 // in a row
	opened atomic.Bool
	counts struct{ calls, failures, refused, openings atomic.Uint64 }

	mu      sync.Mutex
	probeAt time.Time // when the next call is let through, while the breaker is open
}

// Guard puts a deadline and a circuit breaker on every call of a store. A call that
// does not succeed in time, or is not made since the breaker is open, fails with an error that is
// ErrUnavailable; what the store has to say about keys and versions is no failure, nor is it one that
// the caller's own context has ended. The inner store must heed the contexts it is given. It panics when a setting cannot hold.
func Guard(inner Store, c GuardConfig) *Guarded {
	if c.Timeout == 0 {
		c.Timeout = 250 * time.Millisecond
	}
	if c.Failures == 0 {
		c.Failures = 5
	}
	if c.Cooldown == 0 {
		c.Cooldown = time.Second
	}
	if c.Timeout < 0 || c.Failures < 0 || c.Cooldown < 0 {
		panic(fmt.Sprintf("store: GuardConfig.Timeout, Failures and Cooldown (%v, %d, %v) must not be negative", c.Timeout, c.Failures, c.Cooldown))
	}
	return &Guarded{inner: inner, config: c}
}

// GuardStats says how the calls of a guarded store went.
type GuardStats struct {
	Calls    uint64 `json:"calls"`    // that were made
	Failures uint64 `json:"failures"` // of these: no answer in time, or that of a broken store
	Refused  uint64 `json:"refused"`  // calls that were not made, since the breaker was open
	Openings uint64 `json:"openings"` // of the breaker
	Open     bool   `json:"open"`     // it is now
}

// Stats returns a snapshot.
func (g *Guarded) Stats() GuardStats {
	c := &g.counts
	return GuardStats{c.calls.Load(), c.failures.Load(), c.refused.Load(), c.openings.Load(), g.opened.Load()}
}

// admit reports whether a call may be made.
func (g *Guarded) admit() bool {
	if !g.opened.Load() {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); g.opened.Load() && now.Before(g.probeAt) {
		return false
	} else if g.opened.Load() {
		g.probeAt = now.Add(g.config.Cooldown + g.config.Timeout) // others wait for what becomes of this one
	}
	return true
}

// call makes one call within the deadline.
func (g *Guarded) call(ctx context.Context, f func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !g.admit() {
		g.counts.refused.Add(1)
		return fmt.Errorf("%w: it did not answer before, and is asked again after %v", ErrUnavailable, g.config.Cooldown)
	}
	g.counts.calls.Add(1)
	bounded, cancel := context.WithTimeout(ctx, g.config.Timeout)
	defer cancel()
	err := f(bounded)
	switch {
	case err == nil || isAnswer(err):
		g.succeeded()
		return err
	case ctx.Err() != nil:
		return err // the caller's doing: it says nothing about the store
	}
	g.failure()
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// isAnswer reports whether an error is what a store that works says.
func isAnswer(err error) bool {
	for _, known := range []error{ErrNotFound, ErrConflict, ErrFull, ErrClosed, errNoKey, errNoTTL} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

func (g *Guarded) succeeded() {
	if g.failed.Load() == 0 && !g.opened.Load() {
		return // nothing to store: the line stays shared
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed.Store(0)
	g.opened.Store(false)
}

func (g *Guarded) failure() {
	g.counts.failures.Add(1)
	n := g.failed.Add(1)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened.Load() {
		g.probeAt = time.Now().Add(g.config.Cooldown)
	} else if n >= int64(g.config.Failures) {
		g.opened.Store(true)
		g.counts.openings.Add(1)
		g.probeAt = time.Now().Add(g.config.Cooldown)
	}
}

// Get is Store.Get.
func (g *Guarded) Get(ctx context.Context, key string) (item Item, err error) {
	err = g.call(ctx, func(ctx context.Context) (err error) {
		item, err = g.inner.Get(ctx, key)
		return err
	})
	return item, err
}

// Set is Store.Set.
func (g *Guarded) Set(ctx context.Context, key string, value []byte, have Version, ttl time.Duration) (version Version, err error) {
	err = g.call(ctx, func(ctx context.Context) (err error) {
		version, err = g.inner.Set(ctx, key, value, have, ttl)
		return err
	})
	return version, err
}

// Expire is Store.Expire.
func (g *Guarded) Expire(ctx context.Context, key string, ttl time.Duration) error {
	return g.call(ctx, func(ctx context.Context) error { return g.inner.Expire(ctx, key, ttl) })
}

// Run is Store.Run.
func (g *Guarded) Run(ctx context.Context, key string, script *Script, args Args) (result int64, err error) {
	err = g.call(ctx, func(ctx context.Context) (err error) {
		result, err = g.inner.Run(ctx, key, script, args)
		return err
	})
	return result, err
}

// Publish is Store.Publish.
func (g *Guarded) Publish(ctx context.Context, topic string, message []byte) error {
	return g.call(ctx, func(ctx context.Context) error { return g.inner.Publish(ctx, topic, message) })
}

// Subscribe is Store.Subscribe. It is neither bounded nor counted.
func (g *Guarded) Subscribe(ctx context.Context, topic string, receive func(Message)) error {
	return g.inner.Subscribe(ctx, topic, receive)
}

// Close is Store.Close.
func (g *Guarded) Close() error { return g.inner.Close() }
