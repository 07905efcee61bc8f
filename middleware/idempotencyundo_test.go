package middleware_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
)

// A pausedStore does not answer during an outage, but can apply the requested writes later.
type pausedStore struct {
	store.Store
	away atomic.Bool
	late []func()
}

func (s *pausedStore) Get(ctx context.Context, key string) (store.Item, error) {
	if s.away.Load() {
		return store.Item{}, store.ErrUnavailable
	}
	return s.Store.Get(ctx, key)
}

func (s *pausedStore) Set(ctx context.Context, key string, value []byte, have store.Version, ttl time.Duration) (store.Version, error) {
	if s.away.Load() {
		s.late = append(s.late, func() { _, _ = s.Store.Set(context.Background(), key, value, have, ttl) })
		return 0, store.ErrUnavailable
	}
	return s.Store.Set(ctx, key, value, have, ttl)
}

func (s *pausedStore) Expire(ctx context.Context, key string, ttl time.Duration) error {
	if s.away.Load() {
		return store.ErrUnavailable
	}
	return s.Store.Expire(ctx, key, ttl)
}

// A request refused because of a store outage can be retried as soon as the store is back, whenever the store applies the
// pending write. It runs once.
func TestIdempotencyAfterStoreOutage(t *testing.T) {
	for _, when := range []string{"never", "before", "after", "released key, after"} {
		t.Run("carried out "+when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := &pausedStore{Store: store.NewMemory(store.MemoryConfig{})}
				app, runs := orders(middleware.IdempotencyConfig{Store: st}, created)
				send := func() int { return post(app, "/orders/1", "b", "Idempotency-Key", "k").Code }
				away := func() {
					st.away.Store(true)
					if code := send(); code != 503 {
						t.Errorf("during the outage: got %d", code)
					}
					synctest.Wait() // the first attempt to release the key has failed
					st.away.Store(false)
				}
				back := func() { <-time.After(2 * time.Second); synctest.Wait() }
				away()
				if when == "released key, after" {
					back() // releases the key
					st.late = nil
					away()
				}
				if when == "before" {
					st.late[0]()
				}
				back()
				if when == "after" || when == "released key, after" {
					st.late[0]()
				}
				if first, again := send(), send(); first != 201 || again != 201 || runs.Load() != 1 {
					t.Errorf("after the outage: got %d and %d, and %d runs of the action", first, again, runs.Load())
				}
			})
		})
	}
}

// If an action reports during a store outage that it did nothing, its key can be reused when the store is available again.
func TestIdempotencyReleasesKeyLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &pausedStore{Store: store.NewMemory(store.MemoryConfig{})}
		app, runs := orders(middleware.IdempotencyConfig{Store: st}, func(_ *dunlin.Request, n int64) dunlin.Response {
			if n == 1 {
				st.away.Store(true)
				return dunlin.Problem(&dunlin.ProblemDetails{Status: 503}).Header("Retry-After", "1")
			}
			return dunlin.Text(fmt.Sprint(n))
		})
		send := func() int { return post(app, "/orders/1", "b", "Idempotency-Key", "k").Code }
		if code := send(); code != 503 {
			t.Errorf("first: got %d", code)
		}
		synctest.Wait()
		st.away.Store(false)
		if code := send(); code != 409 {
			t.Errorf("before the key is released: got %d, want 409", code)
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		if code := send(); code != 200 || runs.Load() != 2 {
			t.Errorf("after the release: got %d, and %d runs of the action", code, runs.Load())
		}
	})
}
