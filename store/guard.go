package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/gcra"
)

// GuardConfig configures Guard. A zero field selects its documented default.
type GuardConfig struct {
	// Timeout limits the time of each call. For Subscribe it limits the time until the subscription is established.
	// Default: 250 ms.
	Timeout time.Duration

	// Failures is the number of failures in a row that open the breaker. Concurrent calls that fail together before
	// their deadline, as when a connection is lost, count as one failure. Default: 5.
	Failures int

	// Cooldown is the time for which the breaker stays open. During this time calls fail at once with ErrUnavailable. After it a
	// probe calls the store: a background call while calls are frequent, or else the next call itself. If the probe succeeds, the
	// breaker closes. If it fails, the breaker stays open for another Cooldown. Default: 1 s.
	Cooldown time.Duration
}

// A Guarded is a store with a deadline and a circuit breaker, see [Guard]. It is safe for concurrent use.
type Guarded struct {
	*guard
	prompt bool // calls fail as soon as the store is silent, see Prompt
}

// A guard is the state of a guarded store.
type guard struct {
	inner  Store
	shards Sharded // or nil
	config GuardConfig
	began  time.Time

	parts  []guardPart // first the parts for values and numbers, then as many parts for messages
	counts struct{ calls, failures, refused, openings, stalls, full atomic.Uint64 }
}

// A Sharded store has several parts that can fail separately, such as the masters of a cluster. Guard keeps a breaker
// for each part.
type Sharded interface {
	Store

	// Shards returns the number of parts, which never changes. Shard returns the index of the part that has the value
	// of a key or, if number is true, the number of the key. Messages of a topic pass through the part of the value
	// whose key is the topic's name.
	Shards() int
	Shard(key string, number bool) int

	// Probe checks that the part of a key answers. It neither reads nor changes data.
	Probe(ctx context.Context, key string, number bool) error
}

// A guardPart is the circuit breaker of one part of the store.
type guardPart struct {
	failed    atomic.Int64 // number of failures in a row
	opened    atomic.Bool
	silent    atomic.Bool  // no answer arrived within the time that patience returns
	answered  atomic.Int64 // time of the last answer, since the guard began
	usual     atomic.Int64 // usual response time in nanoseconds
	mu        sync.Mutex
	failedAt  time.Duration // time of the last failure in the row, since the guard began
	probeAt   time.Time     // time of the next probe, while the breaker is open or the part silent
	refusedAt time.Time     // time of the last refused call, or of the last failure
	probing   bool          // a background probe is running
}

// silence and tick define a silent part. A part is silent if no answer arrives for silence plus twice its usual response
// time. The factor is two because a script that the store does not know needs two calls: one with its name, and one with
// its text. A timer checks a call at each tick. If a check is late by more than a tick, the process did not run, so that
// missing answers do not show that the store is silent.
const (
	silence = 20 * time.Millisecond
	tick    = silence / 4
)

// Guard adds a deadline and a circuit breaker to every call of a store. A call that exceeds its deadline, or that an
// open breaker refuses, fails with an error that wraps ErrUnavailable. Errors about keys and versions do not count as
// failures of the store, and neither does the end of the caller's context. A [Sharded] store has a breaker for each
// part: while one machine of a cluster is unavailable, calls for keys on other machines succeed.
//
// If an error of the inner store wraps ErrUnavailable, the store has answered but refused the call, as Redis does with
// WRONGTYPE, a broken script, or a write while it accepts no writes. Guard returns such an error unchanged and counts it
// in GuardStats, but does not open the breaker, because other calls, such as reads, may succeed.
//
// The calls of the inner store must end when their contexts end. Guard panics if a setting is invalid.
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
	g := &Guarded{guard: &guard{inner: inner, config: c, began: time.Now()}}
	n := 1
	if s, ok := inner.(Sharded); ok {
		n, g.shards = s.Shards(), s
	}
	g.parts = make([]guardPart, 2*n)
	for i := range g.parts {
		g.parts[i].usual.Store(int64(c.Timeout)) // until it is measured: the first call also opens a connection
	}
	return g
}

// GuardStats counts the calls of a guarded store.
type GuardStats struct {
	Calls    uint64 `json:"calls"`    // calls made
	Failures uint64 `json:"failures"` // calls that failed: no answer in time, a broken store, or a refused call
	Refused  uint64 `json:"refused"`  // calls not made, because the breaker was open or the store silent
	Openings uint64 `json:"openings"` // times that the breaker opened
	Full     uint64 `json:"full"`     // calls that failed with ErrFull
	Stalls   uint64 `json:"stalls"`   // times that the store, or a part of it, became silent
	Open     bool   `json:"open"`     // the breaker of at least one part is open
	Parts    int    `json:"parts"`    // number of breakers that are open
}

// Stats returns a snapshot. AddStats of package ext adds it to the statistics of an app.
func (g *Guarded) Stats() GuardStats {
	c := &g.counts
	s := GuardStats{Calls: c.calls.Load(), Failures: c.failures.Load(), Refused: c.refused.Load(), Openings: c.openings.Load(), Stalls: c.stalls.Load(), Full: c.full.Load()}
	for i := range g.parts {
		if g.parts[i].opened.Load() {
			s.Open = true
			s.Parts++
		}
	}
	return s
}

// admit reports whether a call may be made. While calls are frequent, a probe runs in the background, so that no call
// waits for it. Otherwise the call is the probe.
func (g *Guarded) admit(c guardCall) bool {
	p, prompt := c.part, c.prompt
	if !p.opened.Load() && !(prompt && p.silent.Load()) {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	open := p.opened.Load()
	if !open && !(prompt && p.silent.Load()) {
		return true
	}
	now := time.Now()
	alone := now.Sub(p.refusedAt) >= g.config.Cooldown
	p.refusedAt = now
	if now.Before(p.probeAt) || p.probing {
		return false
	}
	if open && alone {
		p.probeAt = now.Add(g.config.Cooldown + g.config.Timeout) // other calls are refused until this call has a result
		return true
	}
	p.probing = true
	go g.probe(c)
	return false
}

// probe sends a background probe to the part of a call.
func (g *Guarded) probe(c guardCall) {
	p := c.part
	ctx, cancel := context.WithTimeout(context.Background(), g.config.Timeout)
	defer cancel()
	g.counts.calls.Add(1)
	began := time.Since(g.began)
	var err error
	if g.shards != nil {
		err = g.shards.Probe(ctx, c.key, c.number)
	} else {
		_, err = g.inner.Get(ctx, c.key)
	}
	if err == nil || isAnswer(err) || errors.Is(err, ErrUnavailable) {
		p.usual.Store(int64(time.Since(g.began) - began)) // succeeded alone would raise the usual time too slowly
		g.succeeded(p, began)
	} else {
		g.failure(p, began, err)
	}
	p.mu.Lock()
	p.probing = false
	p.mu.Unlock()
}

// A guardCall identifies a call.
type guardCall struct {
	n      int // index of the part among those for values and numbers
	part   *guardPart
	key    string
	number bool
	prompt bool // the call fails as soon as the store is silent
}

func (g *Guarded) about(key string, number bool) guardCall {
	n := 0
	if g.shards != nil {
		n = g.shards.Shard(key, number)
	}
	return guardCall{n: n, part: &g.parts[n], key: key, number: number, prompt: g.prompt}
}

// call runs f within the deadline.
func (g *Guarded) call(ctx context.Context, c guardCall, f func(context.Context) error) error {
	p := c.part
	if err := ctx.Err(); err != nil {
		return err
	}
	if !g.admit(c) {
		g.counts.refused.Add(1)
		return fmt.Errorf("%w: it did not answer before, and is asked again after %v", ErrUnavailable, g.config.Cooldown)
	}
	g.counts.calls.Add(1)
	bounded, cancel := context.WithTimeout(ctx, g.config.Timeout)
	defer cancel()
	began := time.Since(g.began)
	if c.prompt {
		w := &guardWait{g: g, part: p, since: began, due: began + tick, cancel: cancel}
		w.mu.Lock()
		w.timer = time.AfterFunc(tick, w.checkSilence)
		w.mu.Unlock()
		defer w.end()
	}
	err := f(bounded)
	switch {
	case err == nil || isAnswer(err):
		if err != nil && errors.Is(err, ErrFull) {
			g.counts.full.Add(1)
		}
		g.succeeded(p, began)
		return err
	case errors.Is(err, ErrUnavailable): // an answer by which the store refuses the call
		g.counts.failures.Add(1)
		g.succeeded(p, began)
		return err
	case ctx.Err() != nil:
		return err // the caller's context has ended, which says nothing about the store
	case errors.Is(err, context.Canceled) && p.silent.Load():
		return fmt.Errorf("%w: it is silent", ErrUnavailable)
	}
	g.failure(p, began, err)
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// A guardWait watches a prompt call for silence of the store.
type guardWait struct {
	g      *Guarded
	part   *guardPart
	since  time.Duration // silence counts from this time, or from a later answer
	due    time.Duration // time of the next check
	cancel context.CancelFunc
	mu     sync.Mutex
	timer  *time.Timer
	ended  bool
}

// checkSilence ends the call if the part is silent.
func (w *guardWait) checkSilence() {
	runtime.Gosched() // the goroutine that reads a received answer may not have run yet
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	now := time.Since(w.g.began)
	if now-w.due > tick {
		w.since = now
	}
	w.since = max(w.since, time.Duration(w.part.answered.Load()))
	if left := w.part.patience() - (now - w.since); left > 0 {
		left = min(left, tick)
		w.due = now + left
		w.timer.Reset(left)
		return
	}
	w.g.fellSilent(w.part)
	w.cancel()
}

func (w *guardWait) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.timer.Stop()
}

// fellSilent marks the part as silent. The next call starts a probe, since the store may have been slow for a moment only.
func (g *Guarded) fellSilent(p *guardPart) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.silent.Load() {
		p.silent.Store(true)
		g.counts.stalls.Add(1)
		if !p.opened.Load() {
			p.probeAt = time.Now()
		}
	}
}

// isAnswer reports whether an error comes from a working store.
func isAnswer(err error) bool {
	for _, known := range []error{ErrNotFound, ErrConflict, ErrFull, ErrClosed, errNoKey, errNoTTL} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// patience returns the time without an answer after which a part is silent.
func (p *guardPart) patience() time.Duration { return silence + 2*time.Duration(p.usual.Load()) }

// succeeded records an answer to a call made at asked, a time since the guard began. A fast answer sets the usual
// response time. A slow answer raises it by an eighth of the difference, because the slow answer may have waited for
// other work.
func (g *Guarded) succeeded(p *guardPart, asked time.Duration) {
	now := time.Since(g.began)
	p.answered.Store(int64(now))
	took, usual := int64(now-asked), p.usual.Load()
	if took > usual {
		took = usual + (took-usual)/8
	}
	p.usual.Store(took)
	if p.failed.Load() == 0 && !p.opened.Load() && !p.silent.Load() {
		return // without a write to the fields below, so that the cache line stays shared
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed.Store(0)
	p.opened.Store(false)
	p.silent.Store(false)
}

// failure records the failure of a call made at asked, a time since the guard began.
func (g *Guarded) failure(p *guardPart, asked time.Duration, err error) {
	g.counts.failures.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed.Load() > 0 && asked <= p.failedAt && !errors.Is(err, context.DeadlineExceeded) {
		return // the cause is that of the failure before: a lost connection
	}
	p.failedAt = time.Since(g.began)
	n := p.failed.Add(1)
	if p.opened.Load() {
		p.probeAt = time.Now().Add(g.config.Cooldown)
	} else if n >= int64(g.config.Failures) {
		p.opened.Store(true)
		g.counts.openings.Add(1)
		p.probeAt = time.Now().Add(g.config.Cooldown)
	}
	p.refusedAt = time.Now()
}

// Prompt returns the same store for callers that have a fallback, such as counting in the process. Their calls fail with
// ErrUnavailable when no answer has arrived for 20 ms plus twice the usual response time. The result shares the
// deadline, the breaker and the counts of g.
func (g *Guarded) Prompt() Store { return &Guarded{g.guard, true} }

// Get implements Store.Get.
func (g *Guarded) Get(ctx context.Context, key string) (item Item, err error) {
	err = g.call(ctx, g.about(key, false), func(ctx context.Context) (err error) {
		item, err = g.inner.Get(ctx, key)
		return err
	})
	return item, err
}

// Set implements Store.Set.
func (g *Guarded) Set(ctx context.Context, key string, value []byte, have Version, ttl time.Duration) (version Version, err error) {
	err = g.call(ctx, g.about(key, false), func(ctx context.Context) (err error) {
		version, err = g.inner.Set(ctx, key, value, have, ttl)
		return err
	})
	return version, err
}

// Expire implements Store.Expire.
func (g *Guarded) Expire(ctx context.Context, key string, ttl time.Duration) error {
	return g.call(ctx, g.about(key, false), func(ctx context.Context) error { return g.inner.Expire(ctx, key, ttl) })
}

// Add implements Store.Add.
func (g *Guarded) Add(ctx context.Context, key string, n int64, ttl time.Duration) (sum int64, err error) {
	err = g.call(ctx, g.about(key, true), func(ctx context.Context) (err error) {
		sum, err = g.inner.Add(ctx, key, n, ttl)
		return err
	})
	return sum, err
}

// TakeQuota decides about a request of a rate limit. It is for middleware.RateLimit. It fails with
// errors.ErrUnsupported if the inner store has no such method.
func (g *Guarded) TakeQuota(ctx context.Context, key string, rate gcra.Rate) (v gcra.Verdict, err error) {
	inner, ok := g.inner.(gcra.Store)
	if !ok {
		return v, errors.ErrUnsupported
	}
	err = g.call(ctx, g.about(key, true), func(ctx context.Context) (err error) {
		v, err = inner.TakeQuota(ctx, key, rate)
		return err
	})
	return v, err
}

// Publish implements Store.Publish.
func (g *Guarded) Publish(ctx context.Context, topic string, message []byte) error {
	c := g.about(topic, false)
	c.part = &g.parts[len(g.parts)/2+c.n]
	return g.call(ctx, c, func(ctx context.Context) error { return g.inner.Publish(ctx, topic, message) })
}

// Subscribe implements Store.Subscribe. If the subscription is not established within GuardConfig.Timeout, it fails
// with ErrUnavailable. Then receive is not called, and the caller may try again. An established subscription lasts until
// ctx ends, even while the store is unavailable. Subscriptions are not counted and do not affect the breaker.
func (g *Guarded) Subscribe(ctx context.Context, topic string, receive func(Message)) error {
	lasting, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(g.config.Timeout, cancel)
	err := g.inner.Subscribe(lasting, topic, receive)
	if inTime := late.Stop(); err == nil && inTime {
		return nil
	}
	cancel()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil: // the subscription was established at the moment of the timeout
		err = context.DeadlineExceeded
	case isAnswer(err) || errors.Is(err, ErrUnavailable):
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Bound calls [Memory.Bound] of the inner store. For a store without that method it returns 0 and has no effect.
func (g *Guarded) Bound(prefix string, limit int64) int64 {
	if b, ok := g.inner.(interface{ Bound(string, int64) int64 }); ok {
		return b.Bound(prefix, limit)
	}
	return 0
}

// Close implements Store.Close.
func (g *Guarded) Close() error { return g.inner.Close() }
