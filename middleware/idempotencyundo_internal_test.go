package middleware

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin/store"
)

// A refusingStore fails at once, like a store with an open guard, and counts the calls.
type refusingStore struct {
	store.Store
	asked atomic.Int64
}

func (s *refusingStore) Get(context.Context, string) (store.Item, error) {
	s.asked.Add(1)
	return store.Item{}, store.ErrUnavailable
}

// A lineLog records each log message as a line.
type lineLog struct {
	slog.Handler
	mu    sync.Mutex
	lines []string
}

func (l *lineLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *lineLog) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	l.lines = append(l.lines, line)
	return nil
}

// During a store outage of any length, a limited number of claims wait for their release. The claims beyond that are counted in
// one log line a second.
func TestPendingUndosAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, log := new(refusingStore), &lineLog{Handler: slog.DiscardHandler}
		c := &IdempotencyConfig{Store: st, Logger: slog.New(log)}
		u := &claimsToUndo{config: c}
		until := time.Now().Add(10 * time.Second)
		for range 3 {
			for range maxToUndo {
				u.add(&claim{config: c, until: until})
			}
			<-time.After(undoInterval + undoInterval/2) // until all have been tried
			synctest.Wait()
		}
		st.asked.Store(0)
		<-time.After(undoInterval)
		synctest.Wait()
		if n := st.asked.Load(); n != maxToUndo {
			t.Errorf("got %d waiting claims, want %d", n, maxToUndo)
		}
		const line = "idempotency: releasing keys failed: repetitions get 409 until the leases end count="
		if want := []string{line + "1", line + fmt.Sprint(maxToUndo)}; !slices.Equal(log.lines, want) {
			t.Errorf("got log %q, want %q", log.lines, want)
		}
		<-time.After(time.Minute) // until their leases have ended
		synctest.Wait()
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.waiting != 0 || u.runs {
			t.Errorf("after the leases have ended: got %d waiting claims, goroutine running: %v", u.waiting, u.runs)
		}
	})
}
