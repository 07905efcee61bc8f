package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/store"
)

func testValues(t *testing.T, b *bench) {
	_, err := b.Get(ctx, b.key("none"))
	mustFail(t, "Get of nothing", err, store.ErrNotFound)
	for i, value := range []string{"", "a", "\x00\xff\r\n", strings.Repeat("x", 1<<20)} {
		key := b.key(fmt.Sprint("value", i))
		v := b.mustSet(t, key, value, store.VersionAbsent, long)
		item := b.mustBe(t, key, value)
		if item.Version != v {
			t.Errorf("Get: got version %d, want %d from Set", item.Version, v)
		}
		if item.TTL <= 0 || item.TTL > long {
			t.Errorf("Get: got TTL %v, want at most %v", item.TTL, long)
		}
	}
	for _, key := range []string{b.key(strings.Repeat("long", 5000)), b.key("{a}"), b.key("{a}{a}"), b.key("{}"), b.key("\xff")} {
		b.mustSet(t, key, key, store.VersionAbsent, long)
		b.mustBe(t, key, key)
	}
	odd := b.key("spaces and {braces} and \x00 and ü")
	b.mustSet(t, odd, "v", store.VersionAbsent, long)
	b.mustBe(t, odd, "v")
	if err := b.Expire(ctx, odd, 0); err != nil {
		t.Fatal(err)
	}
	_, err = b.Get(ctx, odd)
	mustFail(t, "Get of a removed value", err, store.ErrNotFound)
	mustFail(t, "Expire of nothing", b.Expire(ctx, odd, long), store.ErrNotFound)
}

func testCopies(t *testing.T, b *bench) {
	value := []byte("before")
	if _, err := b.Set(ctx, b.key("k"), value, store.VersionAny, long); err != nil {
		t.Fatal(err)
	}
	copy(value, "after!")
	b.mustBe(t, b.key("k"), "before")
}

func testVersions(t *testing.T, b *bench) {
	key := b.key("k")
	_, err := b.Set(ctx, key, []byte("x"), 12345, long)
	mustFail(t, "Set of a version that is not there", err, store.ErrConflict)
	v1 := b.mustSet(t, key, "1", store.VersionAbsent, long)
	_, err = b.Set(ctx, key, []byte("x"), store.VersionAbsent, long)
	mustFail(t, "Set of an existing value as absent", err, store.ErrConflict)
	v2 := b.mustSet(t, key, "2", v1, long)
	if v2 <= v1 {
		t.Errorf("got version %d after %d, want increasing versions", v2, v1)
	}
	_, err = b.Set(ctx, key, []byte("x"), v1, long)
	mustFail(t, "Set of an old version", err, store.ErrConflict)
	b.mustBe(t, key, "2")
	b.mustSet(t, key, "3", store.VersionAny, long)
	b.mustSet(t, b.key("new"), "3", store.VersionAny, long)
	b.mustBe(t, key, "3")
}

func testNoABA(t *testing.T, b *bench) {
	key := b.key("k")
	v1 := b.mustSet(t, key, "1", store.VersionAbsent, long)
	for range 100 {
		if err := b.Expire(ctx, key, -1); err != nil {
			t.Fatal(err)
		}
		v2 := b.mustSet(t, key, "1", store.VersionAbsent, long)
		if v2 <= v1 {
			t.Fatalf("value removed and set again: got version %d after %d, want a new version", v2, v1)
		}
		_, err := b.Set(ctx, key, []byte("x"), v1, long)
		mustFail(t, "Set of the version before", err, store.ErrConflict)
		v1 = v2
	}
}

func testExpiry(t *testing.T, b *bench) {
	key := b.key("k")
	v := b.mustSet(t, key, "short", store.VersionAbsent, 5*time.Millisecond)
	eventually(t, "expiry", func() bool { _, err := b.Get(ctx, key); return errors.Is(err, store.ErrNotFound) })
	mustFail(t, "Expire of an expired value", b.Expire(ctx, key, long), store.ErrNotFound)
	_, err := b.Set(ctx, key, []byte("x"), v, long)
	mustFail(t, "Set with the version of an expired value", err, store.ErrConflict)
	b.mustSet(t, key, "again", store.VersionAbsent, long)
	if err := b.Expire(ctx, key, 5*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	eventually(t, "expiry after Expire", func() bool { _, err := b.Get(ctx, key); return errors.Is(err, store.ErrNotFound) })
	b.mustSet(t, b.key("ever"), "v", store.VersionAbsent, math.MaxInt64)
	b.mustBe(t, b.key("ever"), "v")
	if err := b.Expire(ctx, b.key("ever"), math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	b.mustBe(t, b.key("ever"), "v")
}

func testTimes(t *testing.T, b *bench) {
	key := b.key("k")
	mustLive := func(what string, least, most time.Duration) store.Item {
		t.Helper()
		item := b.mustBe(t, key, "v")
		if item.TTL <= least || item.TTL > most {
			t.Fatalf("%s: got TTL %v, want %v or slightly less", what, item.TTL, most)
		}
		return item
	}
	v := b.mustSet(t, key, "v", store.VersionAbsent, 10*time.Hour)
	for _, ttl := range []time.Duration{time.Hour, 20 * time.Hour} {
		if err := b.Expire(ctx, key, ttl); err != nil {
			t.Fatal(err)
		}
		if item := mustLive("after Expire", ttl-time.Hour/2, ttl); item.Version != v {
			t.Errorf("after Expire: got version %d, want %d unchanged", item.Version, v)
		}
		v = b.mustSet(t, key, "v", v, 2*ttl)
		mustLive("after Set", 2*ttl-time.Hour/2, 2*ttl)
	}
	b.mustSet(t, key, "v", v, time.Hour)
	mustLive("after Set for a shorter time", time.Hour/2, time.Hour)
	b.mustSet(t, key, "v", store.VersionAny, 3*time.Hour)
	mustLive("after Set of any version", 2*time.Hour, 3*time.Hour)
}

func testFailures(t *testing.T, b *bench) {
	key := b.key("k")
	v := b.mustSet(t, key, "kept", store.VersionAbsent, long)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for what, f := range map[string]func() error{
		"Set with another version":  func() error { _, err := b.Set(ctx, key, []byte("x"), v+1, 9*long); return err },
		"Set as absent":             func() error { _, err := b.Set(ctx, key, nil, store.VersionAbsent, 9*long); return err },
		"Set without a time":        func() error { _, err := b.Set(ctx, key, []byte("x"), store.VersionAny, 0); return err },
		"Set with an ended context": func() error { _, err := b.Set(ended, key, []byte("x"), store.VersionAny, 9*long); return err },
		"Expire with an ended one":  func() error { return b.Expire(ended, key, 0) },
		"Set of an absent value":    func() error { _, err := b.Set(ctx, b.key("none"), nil, v, long); return err },
		"Expire of an absent value": func() error { return b.Expire(ctx, b.key("none"), long) },
	} {
		if f() == nil {
			t.Errorf("%s: got no error", what)
		}
		if item := b.mustBe(t, key, "kept"); item.Version != v || item.TTL > long {
			t.Errorf("%s: got version %d and TTL %v, want %d and at most %v", what, item.Version, item.TTL, v, long)
		}
		_, err := b.Get(ctx, b.key("none"))
		mustFail(t, "Get after "+what, err, store.ErrNotFound)
	}
}

func testUpdates(t *testing.T, b *bench) {
	const n = 300
	key := b.key("k")
	atOnce(t, n, func(int) error {
		return store.Update(ctx, b, key, long, func(old []byte) ([]byte, error) {
			var count uint64
			if old != nil {
				count = binary.BigEndian.Uint64(old)
			}
			return binary.BigEndian.AppendUint64(nil, count+1), nil
		})
	})
	if t.Failed() {
		return
	}
	item, err := b.Get(ctx, key)
	if err != nil || binary.BigEndian.Uint64(item.Value) != n {
		t.Fatalf("after %d updates: got %x, error %v", n, item.Value, err)
	}
	failure := errors.New("no")
	if err := store.Update(ctx, b, key, long, func([]byte) ([]byte, error) { return nil, failure }); err != failure {
		t.Errorf("Update with a failing function: got %v", err)
	}
}

func testOneCreates(t *testing.T, b *bench) {
	var created atomic.Int64
	atOnce(t, 100, func(int) error {
		_, err := b.Set(ctx, b.key("k"), []byte("mine"), store.VersionAbsent, long)
		if err == nil {
			created.Add(1)
		} else if errors.Is(err, store.ErrConflict) {
			err = nil
		}
		return err
	})
	if n := created.Load(); n != 1 {
		t.Errorf("got %d of 100 successful creates, want 1", n)
	}
}

// Each goroutine creates the value and removes it. Never do two goroutines own the value at the same time, and each
// owns it in the end.
func testLock(t *testing.T, b *bench) {
	key := b.key("k")
	var holders, most atomic.Int64
	atOnce(t, 64, func(i int) error {
		for attempt := 0; ; attempt++ {
			_, err := b.Set(ctx, key, []byte("mine"), store.VersionAbsent, long)
			if errors.Is(err, store.ErrConflict) {
				if err := store.Backoff(ctx, attempt); err != nil {
					return err
				}
				continue
			}
			if err != nil {
				return err
			}
			if n := holders.Add(1); n > 1 {
				most.Store(n)
			}
			runtime.Gosched()
			holders.Add(-1)
			return b.Expire(ctx, key, 0)
		}
	})
	if n := most.Load(); n > 0 {
		t.Errorf("got %d simultaneous owners of the value", n)
	}
}
