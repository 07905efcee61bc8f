package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin/store"
)

// The values of one purpose leave room for values of other purposes.
func TestBound(t *testing.T) {
	for name, bound := range map[string]func(*store.Memory) (store.Store, int64){
		"memory": func(m *store.Memory) (store.Store, int64) { return m, m.Bound("many:", 0) },
		"guarded": func(m *store.Memory) (store.Store, int64) {
			g := store.Guard(m, store.GuardConfig{Timeout: time.Minute})
			return g, g.Bound("many:", 0)
		},
	} {
		m := store.NewMemory(store.MemoryConfig{MaxBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler)})
		s, most := bound(m)
		if again := m.Bound("many:", 10); most != 1<<18 || again != most {
			t.Errorf("%s: got bound %d, then %d", name, most, again)
		}
		n := 0
		var err error
		for ; err == nil; n++ {
			_, err = s.Set(ctx, fmt.Sprint("many:", n), make([]byte, 1000), store.VersionAbsent, time.Hour)
		}
		if !errors.Is(err, store.ErrFull) || m.Held() > most || m.Held() < most*9/10 {
			t.Errorf("%s: got error %v after %d values with %d bytes", name, err, n, m.Held())
		}
		if s := m.Stats(); s.Full != 1 || s.Bytes != m.Held() || s.MaxBytes != 1<<20 {
			t.Errorf("%s: got %+v", name, s)
		}
		if _, err := s.Set(ctx, "other", make([]byte, 1000), store.VersionAbsent, time.Hour); err != nil {
			t.Errorf("%s: value of another purpose: got error %v", name, err)
		}
		if err := s.Expire(ctx, "many:0", 0); err != nil {
			t.Error(err)
		}
		if _, err := s.Set(ctx, "many:new", make([]byte, 1000), store.VersionAbsent, time.Hour); err != nil {
			t.Errorf("%s: value in the room of a removed one: got error %v", name, err)
		}
		if g, ok := s.(*store.Guarded); ok && (g.Stats().Full != 1 || g.Stats().Failures != 0) {
			t.Errorf("got %+v", g.Stats())
		}
	}
	if n := store.Guard(elsewhere{}, store.GuardConfig{}).Bound("x", 1); n != 0 {
		t.Errorf("store without bounds: got %d", n)
	}
}

type elsewhere struct{ store.Store }

// After any change of values the bound counts all stored values, including those stored before it was set.
func TestBoundCountsExistingParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, size = 100_000, 900
		m := store.NewMemory(store.MemoryConfig{Logger: slog.New(slog.DiscardHandler)})
		for i := range 20 {
			_, _ = m.Set(ctx, fmt.Sprint("a:", i), make([]byte, size), store.VersionAny, time.Hour)
		}
		m.Bound("a:", most)
		for round := range 3 {
			var wg sync.WaitGroup
			for w := range 4 {
				wg.Go(func() {
					random := rand.New(rand.NewPCG(uint64(w), uint64(round)))
					for range 5000 {
						key := fmt.Sprint("a:", random.IntN(300))
						switch random.IntN(4) {
						case 0:
							_ = m.Expire(ctx, key, time.Duration(random.IntN(2))*time.Second)
						default:
							_, _ = m.Set(ctx, key, make([]byte, random.IntN(2*size)), store.VersionAny, time.Duration(1+random.IntN(3))*time.Second)
						}
					}
				})
			}
			wg.Wait()
			if m.Held() > most {
				t.Fatalf("got %d bytes, want at most %d", m.Held(), most)
			}
			<-time.After(2 * time.Hour)
		}
		for i := range 300 {
			_ = m.Expire(ctx, fmt.Sprint("a:", i), 0)
		}
		// The entire room is free again.
		_, err := m.Set(ctx, "a:large", make([]byte, most-500), store.VersionAny, time.Hour)
		if err != nil {
			t.Errorf("value in the entire room: got error %v", err)
		}
		if _, err := m.Set(ctx, "a:more", make([]byte, 500), store.VersionAny, time.Hour); !errors.Is(err, store.ErrFull) {
			t.Errorf("value beyond the room: got error %v", err)
		}
	})
}

// A store that is nearly full logs this once a minute.
func TestMemoryWarns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		m := store.NewMemory(store.MemoryConfig{MaxBytes: 100_000, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		lines := func() int { synctest.Wait(); return strings.Count(log.String(), "nearly full") }
		fill := func(n int) {
			for i := range n {
				_, _ = m.Set(ctx, fmt.Sprint(i), make([]byte, 1000), store.VersionAny, time.Hour)
			}
		}
		if fill(60); lines() != 0 {
			t.Errorf("log at 60 %%: got %s", log.String())
		}
		if fill(200); lines() != 1 || !strings.Contains(log.String(), "maxBytes=100000") {
			t.Errorf("log at the bound: got %s", log.String())
		}
		<-time.After(time.Minute)
		if fill(200); lines() != 2 || !strings.Contains(log.String(), "failed=1") {
			t.Errorf("log a minute later: got %s", log.String())
		}
	})
}
