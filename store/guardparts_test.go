package store_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin/store"
)

// halves is a store of two parts. The first part can hang: its calls end with their context.
type halves struct {
	store.Store
	hanging atomic.Bool
	calls   atomic.Int64
}

func (h *halves) Shards() int                  { return 2 }
func (h *halves) Shard(key string, _ bool) int { return int(key[0]-'a') % 2 }

func (h *halves) Get(ctx context.Context, key string) (store.Item, error) {
	_, err := h.Add(ctx, key, 1, time.Hour)
	return store.Item{}, err
}

func (h *halves) Probe(ctx context.Context, key string, _ bool) error {
	_, err := h.Get(ctx, key)
	return err
}

func (h *halves) Add(ctx context.Context, key string, _ int64, _ time.Duration) (int64, error) {
	h.calls.Add(1)
	if h.hanging.Load() && h.Shard(key, true) == 0 {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return 7, nil
}

func (h *halves) Publish(ctx context.Context, topic string, _ []byte) error {
	_, err := h.Add(ctx, topic, 1, time.Hour)
	return err
}

// A part of a store that hangs does not block the other parts.
func TestGuardParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &halves{}
		inner.hanging.Store(true)
		g := store.Guard(inner, store.GuardConfig{Timeout: 100 * time.Millisecond, Failures: 2, Cooldown: time.Second})
		for range 2 {
			_, _ = g.Get(ctx, "a")
		}
		began := time.Now()
		if _, err := g.Get(ctx, "a"); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("hanging part: got %v", err)
		}
		if _, err := g.Get(ctx, "b"); err != nil {
			t.Errorf("other part: got %v", err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("calls took %v", took)
		}
		if s := g.Stats(); !s.Open || s.Parts != 1 || s.Openings != 1 {
			t.Errorf("got %+v", s)
		}
		for range 2 {
			_ = g.Publish(ctx, "a", nil)
		}
		began = time.Now()
		if err := g.Publish(ctx, "a", nil); !errors.Is(err, store.ErrUnavailable) || time.Since(began) != 0 {
			t.Errorf("messages through the hanging part: got %v", err)
		}
		if err := g.Publish(ctx, "b", nil); err != nil {
			t.Errorf("messages through the other part: got %v", err)
		}
		inner.hanging.Store(false)
		<-time.After(time.Second)
		if _, err := g.Get(ctx, "a"); err != nil {
			t.Errorf("after recovery: got %v", err)
		}
		if err := g.Publish(ctx, "a", nil); err != nil || g.Stats().Open {
			t.Errorf("after recovery: got %v, %+v", err, g.Stats())
		}
	})
}

// While a store is silent, callers with an alternative fail immediately, and other callers wait for their deadline. With many
// callers, none of their calls is used to test whether the store is back.
func TestGuardPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &halves{}
		g := store.Guard(inner, store.GuardConfig{Timeout: 100 * time.Millisecond, Failures: 3, Cooldown: time.Second})
		prompt := g.Prompt()
		ask := func(st store.Store) (time.Duration, error) {
			began := time.Now()
			n, err := st.Add(ctx, "a", 1, time.Hour)
			if err == nil && n != 7 {
				t.Errorf("got result %d", n)
			}
			return time.Since(began), err
		}
		if took, err := ask(prompt); took != 0 || err != nil {
			t.Fatalf("working store: got %v after %v", err, took)
		}
		inner.hanging.Store(true)
		if took, err := ask(prompt); took != 20*time.Millisecond || !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("store that has just become silent: got %v after %v", err, took)
		}
		slowest := time.Duration(0)
		for range 3000 { // three seconds
			took, err := ask(prompt)
			slowest = max(slowest, took)
			if !errors.Is(err, store.ErrUnavailable) {
				t.Fatalf("silent store: got %v", err)
			}
			<-time.After(time.Millisecond)
		}
		if slowest != 0 || inner.calls.Load() > 12 {
			t.Errorf("slowest caller waited %v; got %d calls of the store", slowest, inner.calls.Load())
		}
		if s := g.Stats(); s.Stalls != 1 || !s.Open {
			t.Errorf("got %+v", s)
		}
		inner.hanging.Store(false)
		for range 2000 {
			if _, err := ask(prompt); err == nil {
				break
			}
			<-time.After(time.Millisecond)
		}
		if took, err := ask(g); took != 0 || err != nil || g.Stats().Open {
			t.Errorf("after recovery: got %v after %v, %+v", err, took, g.Stats())
		}
	})
}

// A slow store that answers other calls meanwhile is not silent. Callers without an alternative wait for it.
func TestGuardWaitsForSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &halves{}
		inner.hanging.Store(true)
		g := store.Guard(inner, store.GuardConfig{Timeout: 100 * time.Millisecond})
		began := time.Now()
		done := make(chan time.Duration)
		go func() {
			_, _ = g.Prompt().Add(ctx, "a", 1, time.Hour)
			done <- time.Since(began)
		}()
		for range 5 { // other calls get answers
			<-time.After(10 * time.Millisecond)
			inner.hanging.Store(false)
			_, _ = g.Get(ctx, "a")
		}
		inner.hanging.Store(true)
		if took := <-done; took != 70*time.Millisecond {
			t.Errorf("hanging call beside answered calls: gave up after %v, want 20 ms after the last answer, at 50 ms", took)
		}
		began = time.Now()
		if _, err := g.Get(ctx, "a"); !errors.Is(err, store.ErrUnavailable) || time.Since(began) != 100*time.Millisecond {
			t.Errorf("caller without an alternative: got %v after %v", err, time.Since(began))
		}
	})
}

// distant is a store with a delay.
type distant struct {
	halves
	away time.Duration
}

func (d *distant) Add(ctx context.Context, key string, n int64, ttl time.Duration) (int64, error) {
	select {
	case <-time.After(d.away):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return d.halves.Add(ctx, key, n, ttl)
}

func (d *distant) Probe(ctx context.Context, key string, _ bool) error {
	_, err := d.Add(ctx, key, 1, time.Hour)
	return err
}

// A distant store, whose answers all take longer than 20 ms, is not silent: its usual delay is taken into account. When a store
// becomes distant, only a few calls give up.
func TestGuardDistance(t *testing.T) {
	for _, away := range []time.Duration{30 * time.Millisecond, 100 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			inner := &distant{away: away}
			g := store.Guard(inner, store.GuardConfig{})
			ask := func() error { _, err := g.Prompt().Add(ctx, "a", 1, time.Hour); return err }
			for range 20 {
				if err := ask(); err != nil {
					t.Fatalf("delay %v: got %v", away, err)
				}
			}
			inner.hanging.Store(true)
			began := time.Now()
			if err := ask(); !errors.Is(err, store.ErrUnavailable) || time.Since(began) > min(20*time.Millisecond+2*away, 250*time.Millisecond) {
				t.Errorf("delay %v, silent: got %v after %v", away, err, time.Since(began))
			}
			inner.hanging.Store(false)

			inner.away = 0
			eventually(t, "it is near", func() bool { <-time.After(time.Millisecond); return ask() == nil })
			inner.away = away
			given := 0
			for range 200 {
				if ask() != nil {
					given++
				}
				<-time.After(5 * time.Millisecond)
			}
			if most := 5 + int(away/(5*time.Millisecond)); given > most {
				t.Errorf("delay %v after a short delay: got %d of 200 calls given up, want at most %d", away, given, most)
			}
		})
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 10_000 {
		if holds() {
			return
		}
	}
	t.Fatalf("%s: did not happen", what)
}
