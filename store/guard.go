package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// GuardConfig has the settings of Guard. Zero fields have the defaults.
type GuardConfig struct {
	// Timeout bounds each call, of Subscribe until the subscription stands. Default: 250 ms.
	Timeout time.Duration

	// Failures is how many calls in a row must fail for the breaker to open. Calls that were under way together and fail before their time is
	// over, as with a connection that is lost, count as one. Default: 5.
	Failures int

	// Cooldown is how long the breaker stays open, in which calls fail at once with ErrUnavailable. After it
	// the store is asked again: in the background if calls come all the time, else by the next call. The
	// breaker closes if that succeeds, and else stays open for another Cooldown. Default: 1 s.
	Cooldown time.Duration
}

// A Guarded is a store whose calls are bounded by a deadline and a circuit breaker, see [Guard].
type Guarded struct {
	inner  Store
	shards Sharded // or nil
	config GuardConfig
	began  time.Time

	parts  []guardPart // for values and numbers, and as many for messages
	counts struct{ calls, failures, refused, openings, stalls, full atomic.Uint64 }
}

// A Sharded is a store in several parts that can fail alone, such as the masters of a cluster. Guard has a
// breaker for each.
type Sharded interface {
	Store

	// Shards returns the number of parts, which never changes. Shard returns the part, counted from 0, of a
	// key's value or, if number is true, of its number. The messages of a topic pass the part of the value
	// whose key is the topic's name.
	Shards() int
	Shard(key string, number bool) int

	// Probe asks the part of a key whether it answers. It reads and changes nothing.
	Probe(ctx context.Context, key string, number bool) error
}

// A guardPart is the circuit breaker of what fails together.
type guardPart struct {
	failed    atomic.Int64 // in a row
	opened    atomic.Bool
	silent    atomic.Bool  // nothing has come for longer than silence, though it was asked
	answered  atomic.Int64 // when something has come, since the guard began
	usual     atomic.Int64 // how long an answer takes, in nanoseconds
	mu        sync.Mutex
	failedAt  time.Duration // when the last failure of those in a row was noted, since the guard began
	probeAt   time.Time     // when it is asked again, while the breaker is open or the part silent
	refusedAt time.Time
	probing   bool // it is asked in the background
}

// silence is for how long, beyond twice what an answer usually takes, a store answers nothing at all to nobody until those are told who have something else
// to do: twice, since a script that the store does not know has to be sent after its name. It is looked at several times
// meanwhile, each tick: where that comes late by as much again, this process has not had a processor, and says nothing of the store by having heard nothing.
const (
	silence = 20 * time.Millisecond
	tick    = silence / 4
)

// Guard puts a deadline and a circuit breaker on every call of a store. A call that is not answered in time,
// or is not made because the breaker is open, fails with an error that is ErrUnavailable. What the store
// answers about keys and versions does not count as a failure, nor does the end of the caller's own context.
// A store that is [Sharded] has a breaker for each part: while one machine of a cluster is away, keys on the
// others stay in use.
//
// An error of the inner store that is ErrUnavailable already says that the store has answered, and does not carry out this
// call, as Redis does with WRONGTYPE, a broken script, or a write when it does not write at the moment. It is returned as it is and counted in
// GuardStats, but opens no breaker: other calls, such as reads, go on.
//
// The inner store must heed the contexts it is given. Guard panics when a setting is not valid.
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
	g := &Guarded{inner: inner, config: c, began: time.Now()}
	n := 1
	if s, ok := inner.(Sharded); ok {
		n, g.shards = s.Shards(), s
	}
	g.parts = make([]guardPart, 2*n)
	for i := range g.parts {
		g.parts[i].usual.Store(int64(c.Timeout)) // until something is known: the first call makes a connection, too
	}
	return g
}

// GuardStats says how the calls of a guarded store went.
type GuardStats struct {
	Calls    uint64 `json:"calls"`    // that were made
	Failures uint64 `json:"failures"` // of these: no answer in time, that of a broken store, or that the call is not carried out
	Refused  uint64 `json:"refused"`  // calls that were not made, since the breaker was open, or the store silent
	Openings uint64 `json:"openings"` // of the breaker
	Full     uint64 `json:"full"`     // calls that failed with ErrFull
	Stalls   uint64 `json:"stalls"`   // times the store, or a part of it, was silent
	Open     bool   `json:"open"`     // the breaker is now, of a part at least
	Parts    int    `json:"parts"`    // of how many parts it is
}

// Stats returns a snapshot. [dunlin.App.AddStats] shows it among those of an app.
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

// admit reports whether a call may be made. Where calls come all the time the store is asked in the background whether it is back, so that none
// of them waits for that; else the call itself finds out.
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
		p.probeAt = now.Add(g.config.Cooldown + g.config.Timeout) // others wait for what becomes of this one
		return true
	}
	p.probing = true
	go g.probe(c)
	return false
}

// probe asks the store, for nobody but the breaker.
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
		p.usual.Store(int64(time.Since(g.began) - began)) // it may be farther away than it was
		g.succeeded(p, began)
	} else {
		g.failure(p, began, err)
	}
	p.mu.Lock()
	p.probing = false
	p.mu.Unlock()
}

// A guardCall is what a call is about.
type guardCall struct {
	n      int // the shard
	part   *guardPart
	key    string
	number bool
	prompt bool // it gives up as soon as the store is silent
}

func (g *Guarded) about(key string, number bool) guardCall {
	n := 0
	if g.shards != nil {
		n = g.shards.Shard(key, number)
	}
	return guardCall{n: n, part: &g.parts[n], key: key, number: number}
}

// call makes one call within the deadline.
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
		w.timer = time.AfterFunc(tick, w.look)
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
	case errors.Is(err, ErrUnavailable): // it has answered, too
		g.counts.failures.Add(1)
		g.succeeded(p, began)
		return err
	case ctx.Err() != nil:
		return err // the caller's doing: it says nothing about the store
	case errors.Is(err, context.Canceled) && p.silent.Load():
		return fmt.Errorf("%w: it is silent", ErrUnavailable)
	}
	g.failure(p, began, err)
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// A guardWait watches over a prompt call.
type guardWait struct {
	g      *Guarded
	part   *guardPart
	since  time.Duration // from when on silence counts, if nothing has come later
	due    time.Duration // when it is looked at next
	cancel context.CancelFunc
	mu     sync.Mutex
	timer  *time.Timer
	ended  bool
}

// look ends the call if nothing has come since it began, or for long.
func (w *guardWait) look() {
	runtime.Gosched() // an answer may be there, and who takes it not have had his turn
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

// fellSilent notes that nothing comes. It is asked again soon: it may have been slow for a moment only.
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

// isAnswer reports whether an error is what a store that works says.
func isAnswer(err error) bool {
	for _, known := range []error{ErrNotFound, ErrConflict, ErrFull, ErrClosed, errNoKey, errNoTTL} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// patience is for how long a part may answer nobody.
func (p *guardPart) patience() time.Duration { return silence + 2*time.Duration(p.usual.Load()) }

// succeeded notes an answer to what was asked at a time since the guard began. A quick one says how far away the store is, a slow one may have
// waited for something else.
func (g *Guarded) succeeded(p *guardPart, asked time.Duration) {
	now := time.Since(g.began)
	p.answered.Store(int64(now))
	took, usual := int64(now-asked), p.usual.Load()
	if took > usual {
		took = usual + (took-usual)/8
	}
	p.usual.Store(took)
	if p.failed.Load() == 0 && !p.opened.Load() && !p.silent.Load() {
		return // nothing to store: the line stays shared
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed.Store(0)
	p.opened.Store(false)
	p.silent.Store(false)
}

// failure notes that what was asked at a time since the guard began has failed.
func (g *Guarded) failure(p *guardPart, asked time.Duration, err error) {
	g.counts.failures.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed.Load() > 0 && asked <= p.failedAt && !errors.Is(err, context.DeadlineExceeded) {
		return // it went with the one before: a connection was lost
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

// Prompt returns the same store for callers that have something else to do while it does not answer, such as
// to count for themselves. All their calls fail with ErrUnavailable as soon as it has been silent for some 20
// ms longer than two of its answers usually take. Deadline, breaker and counts are shared.
func (g *Guarded) Prompt() Store { return promptly{g} }

type promptly struct{ *Guarded }

// Run is Store.Run.
func (p promptly) Run(ctx context.Context, key string, script *Script, args Args) (int64, error) {
	return p.run(ctx, key, script, args, true)
}

// Get is Store.Get.
func (g *Guarded) Get(ctx context.Context, key string) (item Item, err error) {
	err = g.call(ctx, g.about(key, false), func(ctx context.Context) (err error) {
		item, err = g.inner.Get(ctx, key)
		return err
	})
	return item, err
}

// Set is Store.Set.
func (g *Guarded) Set(ctx context.Context, key string, value []byte, have Version, ttl time.Duration) (version Version, err error) {
	err = g.call(ctx, g.about(key, false), func(ctx context.Context) (err error) {
		version, err = g.inner.Set(ctx, key, value, have, ttl)
		return err
	})
	return version, err
}

// Expire is Store.Expire.
func (g *Guarded) Expire(ctx context.Context, key string, ttl time.Duration) error {
	return g.call(ctx, g.about(key, false), func(ctx context.Context) error { return g.inner.Expire(ctx, key, ttl) })
}

// Run is Store.Run.
func (g *Guarded) Run(ctx context.Context, key string, script *Script, args Args) (int64, error) {
	return g.run(ctx, key, script, args, false)
}

func (g *Guarded) run(ctx context.Context, key string, script *Script, args Args, prompt bool) (result int64, err error) {
	c := g.about(key, true)
	c.prompt = prompt
	err = g.call(ctx, c, func(ctx context.Context) (err error) {
		result, err = g.inner.Run(ctx, key, script, args)
		return err
	})
	return result, err
}

// Publish is Store.Publish.
func (g *Guarded) Publish(ctx context.Context, topic string, message []byte) error {
	c := g.about(topic, false)
	c.part = &g.parts[len(g.parts)/2+c.n]
	return g.call(ctx, c, func(ctx context.Context) error { return g.inner.Publish(ctx, topic, message) })
}

// Subscribe is Store.Subscribe. One that does not stand within GuardConfig.Timeout fails with ErrUnavailable: nothing is received then, and
// it may be tried again. One that stands lasts until ctx ends, also while the store is away. It is not counted, and the breaker has no part in it.
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
	case err == nil: // it stood when its time was over
		err = context.DeadlineExceeded
	case isAnswer(err) || errors.Is(err, ErrUnavailable):
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// Bound is [Memory.Bound] of the inner store. It does nothing, and returns 0, for a store that has none.
func (g *Guarded) Bound(prefix string, most int64) int64 {
	if b, ok := g.inner.(interface{ Bound(string, int64) int64 }); ok {
		return b.Bound(prefix, most)
	}
	return 0
}

// Close is Store.Close.
func (g *Guarded) Close() error { return g.inner.Close() }
