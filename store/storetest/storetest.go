// Package storetest is the test suite for implementations of store.Store.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return mine.New() })
//	}
//
//	values.go     values
//	numbers.go    numbers, and quotas of rate limits
//	messages.go   messages
//	full.go       stores with a bound
package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/store"
)

// Run tests the stores that open returns, and closes each store at the end of its test. The stores may share their data,
// because each test uses new keys.
func Run(t *testing.T, open func(*testing.T) store.Store) {
	for _, test := range []struct {
		name string
		f    func(*testing.T, *bench)
	}{
		{"Get returns the value of Set", testValues},
		{"bytes are copied", testCopies},
		{"versions decide", testVersions},
		{"versions are never reused", testNoABA},
		{"values expire", testExpiry},
		{"Expire and Set set the TTL, and Expire does not change the version", testTimes},
		{"failed calls change nothing", testFailures},
		{"bad arguments are refused", testBadArguments},
		{"concurrent updates: none is lost", testUpdates},
		{"concurrent creates: one succeeds", testOneCreates},
		{"one at a time creates and removes", testLock},
		{"numbers count", testAdd},
		{"calls of Add at once: none is lost", testAddAtOnce},
		{"numbers expire and are separate from values", testNumbers},
		{"a number that is changed does not live longer", testNumberTime},
		{"a quota is taken in one step", testQuota},
		{"messages arrive", testMessages},
		{"messages arrive in order", testMessageOrder},
		{"a slow subscriber does not delay others", testSlowReceiver},
		{"subscriptions end with their context", testUnsubscribe},
		{"a subscriber gets all messages while others subscribe and leave", testComingAndGoing},
		{"an ended context ends calls", testContext},
		{"closed is closed", testClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() { _ = s.Close() })
			test.f(t, &bench{Store: s, prefix: fmt.Sprintf("storetest-%d-%d-", time.Now().UnixNano(), serial.Add(1))})
		})
	}
}

var serial atomic.Int64

// A bench is a store with a key prefix for one test.
type bench struct {
	store.Store
	prefix string
}

func (b *bench) key(name string) string { return b.prefix + name }

var ctx = context.Background()

const long = time.Hour

func (b *bench) mustSet(t *testing.T, key, value string, have store.Version, ttl time.Duration) store.Version {
	t.Helper()
	v, err := b.Set(ctx, key, []byte(value), have, ttl)
	if err != nil {
		t.Fatalf("Set(%q, %q): got error %v", key, value, err)
	}
	if v == store.VersionAbsent || v == store.VersionAny {
		t.Fatalf("Set(%q): got the reserved version %d", key, v)
	}
	return v
}

func (b *bench) mustBe(t *testing.T, key, want string) store.Item {
	t.Helper()
	item, err := b.Get(ctx, key)
	if err != nil {
		t.Fatalf("Get(%q): got error %v", key, err)
	}
	if string(item.Value) != want {
		t.Fatalf("Get(%q): got %q, want %q", key, item.Value, want)
	}
	return item
}

func mustFail(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: got error %v, want %v", what, err, want)
	}
}

// eventually waits for holds to return true, for at most ten seconds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline, tick := time.After(10*time.Second), time.NewTicker(2*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: did not happen within ten seconds", what)
		}
	}
}

func testBadArguments(t *testing.T, b *bench) {
	for what, f := range map[string]func() error{
		"Get without a key":       func() error { _, err := b.Get(ctx, ""); return err },
		"Set without a key":       func() error { _, err := b.Set(ctx, "", nil, store.VersionAny, long); return err },
		"Set without a time":      func() error { _, err := b.Set(ctx, b.key("k"), nil, store.VersionAny, 0); return err },
		"Set with a past time":    func() error { _, err := b.Set(ctx, b.key("k"), nil, store.VersionAny, -1); return err },
		"Expire without a key":    func() error { return b.Expire(ctx, "", long) },
		"Add without a key":       func() error { _, err := b.Add(ctx, "", 1, long); return err },
		"Add without a time":      func() error { _, err := b.Add(ctx, b.key("n"), 1, 0); return err },
		"Publish without a topic": func() error { return b.Publish(ctx, "", nil) },
		"Subscribe without one":   func() error { return b.Subscribe(ctx, "", func(store.Message) {}) },
	} {
		err := f()
		if err == nil || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: got error %v, want one with the reason", what, err)
		}
	}
}

// atOnce calls f n times, concurrently.
func atOnce(t *testing.T, n int, f func(i int) error) {
	t.Helper()
	const workers = 16
	var wg sync.WaitGroup
	var next atomic.Int64
	for range workers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if err := f(int(i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func testContext(t *testing.T, b *bench) {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for what, f := range map[string]func() error{
		"Get":       func() error { _, err := b.Get(ended, b.key("k")); return err },
		"Set":       func() error { _, err := b.Set(ended, b.key("k"), nil, store.VersionAny, long); return err },
		"Expire":    func() error { return b.Expire(ended, b.key("k"), long) },
		"Add":       func() error { _, err := b.Add(ended, b.key("k"), 1, long); return err },
		"Publish":   func() error { return b.Publish(ended, b.key("k"), nil) },
		"Subscribe": func() error { return b.Subscribe(ended, b.key("k"), func(store.Message) {}) },
	} {
		mustFail(t, what+" with an ended context", f(), context.Canceled)
	}
}

func testClosed(t *testing.T, b *bench) {
	b.mustSet(t, b.key("k"), "v", store.VersionAny, long)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := b.Get(ctx, b.key("k"))
	mustFail(t, "Get after Close", err, store.ErrClosed)
	_, err = b.Set(ctx, b.key("k"), nil, store.VersionAny, long)
	mustFail(t, "Set after Close", err, store.ErrClosed)
	mustFail(t, "Expire after Close", b.Expire(ctx, b.key("k"), long), store.ErrClosed)
	_, err = b.Add(ctx, b.key("k"), 1, long)
	mustFail(t, "Add after Close", err, store.ErrClosed)
	mustFail(t, "Publish after Close", b.Publish(ctx, b.key("k"), nil), store.ErrClosed)
	mustFail(t, "Subscribe after Close", b.Subscribe(ctx, b.key("k"), func(store.Message) {}), store.ErrClosed)
	if err := b.Close(); err != nil {
		t.Errorf("second Close: got error %v", err)
	}
}
