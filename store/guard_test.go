package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin/store"
)

// moody is a store with a configurable Get.
type moody struct {
	store.Store
	get   func(context.Context) error
	calls int
}

func (m *moody) Get(ctx context.Context, _ string) (store.Item, error) {
	m.calls++
	return store.Item{}, m.get(ctx)
}

func hangs(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
func works(context.Context) error     { return nil }

func TestGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &moody{get: hangs}
		g := store.Guard(inner, store.GuardConfig{Timeout: 100 * time.Millisecond, Failures: 3, Cooldown: time.Second})
		get := func() (time.Duration, error) {
			began := time.Now()
			_, err := g.Get(ctx, "k")
			return time.Since(began), err
		}
		for i := range 3 {
			if took, err := get(); took != 100*time.Millisecond || !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("call %d to a hanging store: got %v after %v", i, err, took)
			}
		}
		for range 10 {
			if took, err := get(); took != 0 || !errors.Is(err, store.ErrUnavailable) {
				t.Fatalf("call with an open breaker: got %v after %v, want an immediate error", err, took)
			}
		}
		if inner.calls != 3 {
			t.Errorf("got %d calls of the store, want 3", inner.calls)
		}
		if s, want := g.Stats(), (store.GuardStats{Calls: 3, Failures: 3, Refused: 10, Openings: 1, Open: true, Parts: 1}); s != want {
			t.Errorf("Stats: got %+v, want %+v", s, want)
		}

		<-time.After(time.Second) // one call is passed to the store, and fails
		if took, _ := get(); took != 100*time.Millisecond {
			t.Errorf("call after the cooldown: took %v", took)
		}
		if took, _ := get(); took != 0 {
			t.Errorf("call after a failed probe: took %v, want an open breaker", took)
		}

		<-time.After(time.Second)
		inner.get = works
		for range 3 {
			if _, err := get(); err != nil {
				t.Errorf("call of a store that has recovered: got error %v", err)
			}
		}
		if g.Stats().Open {
			t.Error("the breaker is open after the store has recovered")
		}
	})
}

// A lost connection fails all calls in flight and counts as one failure. A store that is down fails calls one after the other.
func TestGuardLostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost, broken := make(chan bool), errors.New("connection reset by peer")
		inner := &steady{get: func() error { <-lost; return broken }}
		g := store.Guard(inner, store.GuardConfig{Failures: 3, Cooldown: time.Second})
		for range 100 {
			go func() { _, _ = g.Get(ctx, "k") }()
		}
		synctest.Wait()
		<-time.After(time.Millisecond)
		close(lost)
		synctest.Wait()
		if s, want := g.Stats(), (store.GuardStats{Calls: 100, Failures: 100}); s != want {
			t.Errorf("lost connection: got %+v, want %+v", s, want)
		}
		for range 2 {
			<-time.After(time.Millisecond)
			_, _ = g.Get(ctx, "k")
		}
		if s := g.Stats(); !s.Open || s.Failures != 102 {
			t.Errorf("two more failed calls: got %+v, want an open breaker", s)
		}
	})
}

// steady is a store with a configurable Get that may be called concurrently.
type steady struct {
	store.Store
	get func() error
}

func (s *steady) Get(context.Context, string) (store.Item, error) { return store.Item{}, s.get() }

// A refusal by the store is an answer: it does not open the breaker, and it closes an open one.
func TestGuardCountsRefusalsAsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refusal := fmt.Errorf("%w: it only reads", store.ErrUnavailable)
		inner := &moody{get: func(context.Context) error { return refusal }}
		g := store.Guard(inner, store.GuardConfig{Failures: 3, Cooldown: time.Minute})
		for i := range 10 {
			if _, err := g.Get(ctx, "k"); err != refusal {
				t.Fatalf("call %d: got error %v", i, err)
			}
		}
		if s, want := g.Stats(), (store.GuardStats{Calls: 10, Failures: 10}); s != want {
			t.Errorf("Stats: got %+v, want %+v", s, want)
		}
		inner.get = hangs
		for range 3 {
			_, _ = g.Get(ctx, "k")
		}
		if !g.Stats().Open {
			t.Error("the breaker is not open after three hanging calls")
		}
		inner.get = func(context.Context) error { return refusal }
		<-time.After(time.Minute)
		if _, err := g.Get(ctx, "k"); err != refusal || g.Stats().Open {
			t.Errorf("after the cooldown: got error %v, %+v", err, g.Stats())
		}
	})
}

// While the breaker is open and one call probes the store, other calls fail immediately.
func TestGuardProbesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &moody{get: hangs}
		g := store.Guard(inner, store.GuardConfig{Timeout: 100 * time.Millisecond, Failures: 1, Cooldown: time.Second})
		_, _ = g.Get(ctx, "k")
		<-time.After(time.Second)
		for range 20 {
			go func() { _, _ = g.Get(ctx, "k") }()
		}
		synctest.Wait()
		if inner.calls != 2 {
			t.Errorf("got %d calls of the store, want 2: the first call and the probe", inner.calls)
		}
		<-time.After(time.Second)
	})
}

// Answers of a working store, and callers that give up, do not open the breaker.
func TestGuardRecognizesAnswers(t *testing.T) {
	inner := &moody{}
	g := store.Guard(inner, store.GuardConfig{Failures: 2, Timeout: time.Minute})
	for _, err := range []error{store.ErrNotFound, store.ErrConflict, store.ErrFull, store.ErrClosed} {
		inner.get = func(context.Context) error { return err }
		for range 5 {
			if _, got := g.Get(ctx, "k"); !errors.Is(got, err) || errors.Is(got, store.ErrUnavailable) {
				t.Errorf("the error %v became %v", err, got)
			}
		}
	}
	inner.get = hangs
	for range 5 {
		gone, cancel := context.WithCancel(ctx)
		inner.get = func(ctx context.Context) error { cancel(); return hangs(ctx) }
		if _, err := g.Get(gone, "k"); !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("caller that gave up: got %v", err)
		}
	}
	if s := g.Stats(); s.Failures != 0 || s.Open {
		t.Errorf("Stats: got %+v, want no failures", s)
	}
	inner.get = func(context.Context) error { return errors.New("broken pipe") }
	_, _ = g.Get(ctx, "k")
	inner.get = works
	_, _ = g.Get(ctx, "k") // failures in a row count
	inner.get = func(context.Context) error { return errors.New("broken pipe") }
	_, _ = g.Get(ctx, "k")
	if s := g.Stats(); s.Failures != 2 || s.Open {
		t.Errorf("Stats: got %+v, want two failures that are not consecutive", s)
	}
}

// talkative is a store with a configurable Subscribe.
type talkative struct {
	store.Store
	subscribe func(context.Context) error
}

func (s *talkative) Subscribe(ctx context.Context, _ string, _ func(store.Message)) error {
	return s.subscribe(ctx)
}

// Subscribe has a deadline until the subscription is established. The subscription lasts as long as its context.
func TestGuardSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &talkative{subscribe: hangs}
		g := store.Guard(inner, store.GuardConfig{Timeout: 100 * time.Millisecond, Failures: 1})
		subscribe := func(ctx context.Context) (time.Duration, error) {
			began := time.Now()
			err := g.Subscribe(ctx, "topic", func(store.Message) {})
			return time.Since(began), err
		}
		for range 2 {
			if took, err := subscribe(ctx); took != 100*time.Millisecond || !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("hanging store: got %v after %v", err, took)
			}
		}
		short, end := context.WithTimeout(ctx, 10*time.Millisecond)
		defer end()
		if took, err := subscribe(short); took != 10*time.Millisecond || err != context.DeadlineExceeded {
			t.Errorf("deadline of the caller: got %v after %v", err, took)
		}

		var lasting context.Context
		inner.subscribe = func(ctx context.Context) error { lasting = ctx; return nil }
		ctx, cancel := context.WithCancel(ctx)
		if _, err := subscribe(ctx); err != nil {
			t.Error(err)
		}
		<-time.After(time.Hour)
		if lasting.Err() != nil {
			t.Error("the subscription ended before its context")
		}
		cancel()
		<-lasting.Done()

		inner.subscribe = func(ctx context.Context) error { lasting = ctx; <-ctx.Done(); return nil }
		if _, err := subscribe(t.Context()); !errors.Is(err, store.ErrUnavailable) || lasting.Err() == nil {
			t.Errorf("subscription after the deadline: got %v, context %v", err, lasting.Err())
		}
		inner.subscribe = func(context.Context) error { return store.ErrClosed }
		if _, err := subscribe(t.Context()); err != store.ErrClosed {
			t.Errorf("closed store: got %v", err)
		}
		if s := g.Stats(); s.Calls+s.Failures+s.Openings > 0 {
			t.Errorf("got subscriptions in the counts: %+v", s)
		}
	})
}
