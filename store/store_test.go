package store_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin/store"
)

var ctx = context.Background()

// budget is a budget with a fixed amount of room.
type budget struct {
	left atomic.Int64
	drop func(int64)
}

func (b *budget) Reserve(n int64) bool {
	if b.left.Add(-n) >= 0 {
		return true
	}
	b.left.Add(n)
	return false
}

func (b *budget) Release(n int64) { b.left.Add(n) }

// Stored values are charged to a budget. Without room there, new values are refused, and expired values are evicted.
func TestMemoryWithinBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room = 50 << 10
		b := new(budget)
		b.left.Store(room)
		m := store.NewMemory(store.MemoryConfig{Budget: store.Within(func(drop func(int64)) *budget { b.drop = drop; return b })})
		var err error
		n := 0
		for ; err == nil; n++ {
			_, err = m.Set(ctx, fmt.Sprint("key", n), make([]byte, 1000), store.VersionAbsent, time.Minute)
		}
		if !errors.Is(err, store.ErrFull) || n < 30 || b.left.Load() != room-m.Held() {
			t.Fatalf("after %d values: got error %v, %d of the budget left, %d held", n, err, b.left.Load(), m.Held())
		}
		addNumbers(t, m, time.Minute)
		<-time.After(time.Second)
		b.drop(1000)
		if _, err := m.Get(ctx, "key0"); err != nil {
			t.Errorf("a value was dropped before its expiry: %v", err)
		}
		<-time.After(time.Minute)
		b.drop(1000)
		if m.Held() != 0 || b.left.Load() != room {
			t.Errorf("expired values: got %d bytes, %d of the budget left", m.Held(), b.left.Load())
		}
		if _, err := m.Add(ctx, "n", 1, time.Minute); err != nil {
			t.Error(err)
		}
		if m.Close(); b.left.Load() != room {
			t.Errorf("closed store: got %d bytes of the budget", room-b.left.Load())
		}
	})
}

// addNumbers adds numbers to a store that has no room for a value, until it has none for a number either.
func addNumbers(t *testing.T, m *store.Memory, ttl time.Duration) {
	t.Helper()
	for n := 0; ; n++ {
		_, err := m.Add(ctx, fmt.Sprint("number", n), 1, ttl)
		if errors.Is(err, store.ErrFull) {
			return
		}
		if err != nil || n == 1000/40 { // each takes at least 40 bytes
			t.Fatalf("number %d: got error %v, want ErrFull", n, err)
		}
	}
}

// At its bound the store refuses new values. Stored values stay, and may change within their size.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 100 << 10
		m := store.NewMemory(store.MemoryConfig{MaxBytes: most})
		defer m.Close()
		value := make([]byte, 1000)
		var err error
		n := 0
		for ; err == nil; n++ {
			_, err = m.Set(ctx, fmt.Sprint("key", n), value, store.VersionAbsent, time.Minute)
		}
		if !errors.Is(err, store.ErrFull) || n < 60 {
			t.Fatalf("after %d values of 1000 bytes with a limit of %d: got error %v", n, most, err)
		}
		if held := m.Held(); held > most {
			t.Errorf("got %d bytes, want at most %d", held, most)
		}
		if _, err := m.Get(ctx, "key0"); err != nil {
			t.Errorf("a value was dropped for other values: %v", err)
		}
		if _, err := m.Set(ctx, "key0", value, store.VersionAny, time.Minute); err != nil {
			t.Errorf("new value of the same size: got error %v", err)
		}
		if _, err := m.Set(ctx, "key0", make([]byte, 5000), store.VersionAny, time.Minute); !errors.Is(err, store.ErrFull) {
			t.Errorf("larger value: got error %v, want ErrFull", err)
		}
		addNumbers(t, m, time.Minute)
		<-time.After(time.Minute)
		if _, err := m.Set(ctx, "new", make([]byte, 50_000), store.VersionAbsent, time.Minute); err != nil {
			t.Errorf("value in the room of expired ones: got error %v", err)
		}
		for i := range n {
			_ = m.Expire(ctx, fmt.Sprint("key", i), 0)
		}
		_ = m.Expire(ctx, "new", 0)
		if held := m.Held(); held != 0 {
			t.Errorf("empty store: got %d bytes", held)
		}
	})
}

// Expired values are removed as new keys are added, without a search for them.
func TestMemoryRemovesExpiredEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := store.NewMemory(store.MemoryConfig{})
		defer m.Close()
		fill := func(round int) {
			for i := range 2000 {
				if _, err := m.Set(ctx, fmt.Sprint(round, i), nil, store.VersionAbsent, time.Second); err != nil {
					t.Fatal(err)
				}
				if _, err := m.Add(ctx, fmt.Sprint(round, i), 1, time.Second); err != nil {
					t.Fatal(err)
				}
			}
		}
		fill(1)
		one := m.Held()
		for round := range 20 {
			<-time.After(2 * time.Second)
			fill(round + 2)
		}
		if held := m.Held(); held > 2*one {
			t.Errorf("got %d bytes after 21 rounds of expired keys, and %d after the first round", held, one)
		}
	})
}

func TestMemoryAllocations(t *testing.T) {
	m := store.NewMemory(store.MemoryConfig{})
	defer m.Close()
	_, _ = m.Set(ctx, "k", []byte("value"), store.VersionAny, time.Hour)
	if n := testing.AllocsPerRun(100, func() { _, _ = m.Get(ctx, "k") }); n != 0 {
		t.Errorf("Get: got %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = m.Add(ctx, "k", 1, time.Hour) }); n > 1 {
		t.Errorf("Add allocates %v times", n)
	}
}

var opened *url.URL // URL opened with the scheme testing-open

func init() {
	store.Register("testing-open", func(u *url.URL) (store.Store, error) {
		opened = u
		return store.NewMemory(store.MemoryConfig{}), nil
	})
}

func TestOpen(t *testing.T) {
	for _, u := range []string{"", "memory://", "memory:?max=64MiB"} {
		s, err := store.Open(u)
		if err != nil {
			t.Errorf("Open(%q): got error %v", u, err)
			continue
		}
		_ = s.Close()
	}
	for u, want := range map[string]string{
		"memory://?max=0":                 `max is "0"`,
		"memory://?max=9999999999999GiB":  "max is",
		"memory://?size=1":                `no setting "size"`,
		"memory:?max=1MiB&max=2MiB":       "max 2 times",
		"memory:?max=1MiB&x=%zz":          "malformed",
		"memory:?max=1MiB;x=1":            "malformed",
		"memory:64MiB":                    "has no address",
		"memory://64MiB":                  "has no address",
		"memory:///64MiB":                 "has no address",
		"memory:?max=1MiB#x":              "%23",
		"testing-open://host:1?x=%zz":     "malformed",
		"testing-open://secret:1#secret":  "%23",
		"nosuch://user:secret@host":       `"nosuch"`,
		"::secret":                        "malformed",
		"nosuch://user:secret@[::1/%zz]/": "malformed",
	} {
		_, err := store.Open(u)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Open(%q): got error %v, want one with %q and without the password", u, err, want)
		}
	}
	if s, err := store.Open("testing-open://host:1/path"); err != nil || opened.Host != "host:1" {
		t.Errorf("Open of a registered scheme: got %v, error %v", s, err)
	}
	for _, taken := range []string{"memory", "testing-open"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Register(%q): got no panic", taken)
				}
			}()
			store.Register(taken, nil)
		}()
	}
}
