package middleware

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin/store"
)

// A refusingStore fails at once, as one whose guard has opened, and counts how often it was asked.
type refusingStore struct {
	store.Store
	asked atomic.Int64
}

func (s *refusingStore) Get(context.Context, string) (store.Item, error) {
	s.asked.Add(1)
	return store.Item{}, store.ErrUnavailable
}

// However long a store is away, no more than so many claims wait to be given back.
func TestClaimsToUndoAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := new(refusingStore)
		c := &IdempotencyConfig{Store: st, Logger: slog.New(slog.DiscardHandler)}
		u := &claimsToUndo{config: c}
		until := time.Now().Add(10 * time.Second)
		for range 3 {
			for range mostToUndo {
				u.add(&claim{config: c, until: until})
			}
			<-time.After(undoInterval + undoInterval/2) // they have been tried
			synctest.Wait()
		}
		st.asked.Store(0)
		<-time.After(undoInterval)
		synctest.Wait()
		if n := st.asked.Load(); n != mostToUndo {
			t.Errorf("%d claims wait, want %d", n, mostToUndo)
		}
		<-time.After(time.Minute) // their leases are over
		synctest.Wait()
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.waiting != 0 || u.runs {
			t.Errorf("when their leases are over %d wait, and a goroutine runs: %v", u.waiting, u.runs)
		}
	})
}
