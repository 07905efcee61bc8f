// Package storetest is what every store must do, as a test suite: for those who write
// one.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return mine.New() })
//	}
package storetest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/store"
)

// Run tests the stores that open returns, each of which is closed at the end of its test. They may share what they keep:
// the suite uses keys that no other run has used.
func Run(t *testing.T, open func(*testing.T) store.Store) {
	for _, test := range []struct {
		name string
		f    func(*testing.T, *bench)
	}{
		{"a value is what was set", testValues},
		{"bytes are copied", testCopies},
		{"versions decide", testVersions},
		{"a version never comes again", testNoABA},
		{"values expire", testExpiry},
		{"bad arguments are refused", testBadArguments},
		{"updates at once: none is lost", testUpdates},
		{"one of many creates", testOneCreates},
		{"scripts count", testIncrement},
		{"scripts at once: none is lost", testIncrementAtOnce},
		{"numbers expire, and are kept apart from values", testNumbers},
		{"scripts do in Lua what they do in Go", testScript},
		{"messages arrive", testMessages},
		{"messages arrive in order", testMessageOrder},
		{"a slow receiver holds nobody up", testSlowReceiver},
		{"subscriptions end with their context", testUnsubscribe},
		{"who listens misses nothing, though others come and go", testComingAndGoing},
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

// A bench is a store with keys of its own.
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
		t.Fatalf("Set(%q, %q): %v", key, value, err)
	}
	if v == store.Absent || v == store.Any {
		t.Fatalf("Set(%q) returned version %d, which has a meaning of its own", key, v)
	}
	return v
}

func (b *bench) mustBe(t *testing.T, key, want string) store.Item {
	t.Helper()
	item, err := b.Get(ctx, key)
	if err != nil {
		t.Fatalf("Get(%q): %v", key, err)
	}
	if string(item.Value) != want {
		t.Fatalf("Get(%q) = %q, want %q", key, item.Value, want)
	}
	return item
}

func mustFail(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: error %v, want %v", what, err, want)
	}
}

// eventually waits until something holds, for up to ten seconds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline, tick := time.After(10*time.Second), time.NewTicker(2*time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not within ten seconds", what)
		}
	}
}

func testValues(t *testing.T, b *bench) {
	_, err := b.Get(ctx, b.key("none"))
	mustFail(t, "Get of nothing", err, store.ErrNotFound)
	for i, value := range []string{"", "a", "\x00\xff\r\n", strings.Repeat("x", 1<<20)} {
		key := b.key(fmt.Sprint("value", i))
		v := b.mustSet(t, key, value, store.Absent, long)
		item := b.mustBe(t, key, value)
		if item.Version != v {
			t.Errorf("Get returns version %d, Set returned %d", item.Version, v)
		}
		if item.TTL <= 0 || item.TTL > long {
			t.Errorf("Get returns a TTL of %v, set was %v", item.TTL, long)
		}
	}
	odd := b.key("spaces and {braces} and \x00 and ü")
	b.mustSet(t, odd, "v", store.Absent, long)
	b.mustBe(t, odd, "v")
	if err := b.Expire(ctx, odd, 0); err != nil {
		t.Fatal(err)
	}
	_, err = b.Get(ctx, odd)
	mustFail(t, "Get of what was removed", err, store.ErrNotFound)
	mustFail(t, "Expire of nothing", b.Expire(ctx, odd, long), store.ErrNotFound)
}

func testCopies(t *testing.T, b *bench) {
	value := []byte("before")
	if _, err := b.Set(ctx, b.key("k"), value, store.Any, long); err != nil {
		t.Fatal(err)
	}
	copy(value, "after!")
	b.mustBe(t, b.key("k"), "before")
}

func testVersions(t *testing.T, b *bench) {
	key := b.key("k")
	_, err := b.Set(ctx, key, []byte("x"), 12345, long)
	mustFail(t, "Set of a version that is not there", err, store.ErrConflict)
	v1 := b.mustSet(t, key, "1", store.Absent, long)
	_, err = b.Set(ctx, key, []byte("x"), store.Absent, long)
	mustFail(t, "Set, as absent, of what is there", err, store.ErrConflict)
	v2 := b.mustSet(t, key, "2", v1, long)
	if v2 <= v1 {
		t.Errorf("version %d follows %d: versions must grow", v2, v1)
	}
	_, err = b.Set(ctx, key, []byte("x"), v1, long)
	mustFail(t, "Set of an old version", err, store.ErrConflict)
	b.mustBe(t, key, "2")
	b.mustSet(t, key, "3", store.Any, long)
	b.mustSet(t, b.key("new"), "3", store.Any, long)
	b.mustBe(t, key, "3")
}

func testNoABA(t *testing.T, b *bench) {
	key := b.key("k")
	v1 := b.mustSet(t, key, "1", store.Absent, long)
	if err := b.Expire(ctx, key, -1); err != nil {
		t.Fatal(err)
	}
	if v2 := b.mustSet(t, key, "1", store.Absent, long); v2 == v1 {
		t.Fatalf("a value that was removed and set again has version %d again: compare-and-set would take it for the old one", v2)
	}
	_, err := b.Set(ctx, key, []byte("x"), v1, long)
	mustFail(t, "Set of the version before", err, store.ErrConflict)
}

func testExpiry(t *testing.T, b *bench) {
	key := b.key("k")
	v := b.mustSet(t, key, "short", store.Absent, 5*time.Millisecond)
	eventually(t, "expiry", func() bool { _, err := b.Get(ctx, key); return errors.Is(err, store.ErrNotFound) })
	mustFail(t, "Expire of what has expired", b.Expire(ctx, key, long), store.ErrNotFound)
	_, err := b.Set(ctx, key, []byte("x"), v, long)
	mustFail(t, "Set with the version of what has expired", err, store.ErrConflict)
	b.mustSet(t, key, "again", store.Absent, long)
	if err := b.Expire(ctx, key, 5*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	eventually(t, "expiry after Expire", func() bool { _, err := b.Get(ctx, key); return errors.Is(err, store.ErrNotFound) })
	b.mustSet(t, b.key("ever"), "v", store.Absent, math.MaxInt64)
	b.mustBe(t, b.key("ever"), "v")
	if err := b.Expire(ctx, b.key("ever"), math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	b.mustBe(t, b.key("ever"), "v")
}

func testBadArguments(t *testing.T, b *bench) {
	for what, f := range map[string]func() error{
		"Get without a key":       func() error { _, err := b.Get(ctx, ""); return err },
		"Set without a key":       func() error { _, err := b.Set(ctx, "", nil, store.Any, long); return err },
		"Set without a time":      func() error { _, err := b.Set(ctx, b.key("k"), nil, store.Any, 0); return err },
		"Set with a past time":    func() error { _, err := b.Set(ctx, b.key("k"), nil, store.Any, -1); return err },
		"Expire without a key":    func() error { return b.Expire(ctx, "", long) },
		"Increment without a key": func() error { _, err := store.Increment(ctx, b, "", 1, long); return err },
		"Publish without a topic": func() error { return b.Publish(ctx, "", nil) },
		"Subscribe without one":   func() error { return b.Subscribe(ctx, "", func(store.Message) {}) },
	} {
		err := f()
		if err == nil || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: error %v, want one that says what is wrong", what, err)
		}
	}
}

// atOnce runs f n times, on several goroutines.
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
		t.Fatalf("after %d updates: %x, %v", n, item.Value, err)
	}
	failure := errors.New("no")
	if err := store.Update(ctx, b, key, long, func([]byte) ([]byte, error) { return nil, failure }); err != failure {
		t.Errorf("Update returns %v for an error of the function", err)
	}
}

func testOneCreates(t *testing.T, b *bench) {
	var created atomic.Int64
	atOnce(t, 100, func(int) error {
		_, err := b.Set(ctx, b.key("k"), []byte("mine"), store.Absent, long)
		if err == nil {
			created.Add(1)
		} else if errors.Is(err, store.ErrConflict) {
			err = nil
		}
		return err
	})
	if n := created.Load(); n != 1 {
		t.Errorf("%d of 100 created the value, want 1", n)
	}
}

func testIncrement(t *testing.T, b *bench) {
	for i, step := range []struct{ by, want int64 }{{1, 1}, {41, 42}, {-2, 40}, {0, 40}, {1 << 52, 40 + 1<<52}, {-40 - 1<<52, 0}, {-7, -7}} {
		n, err := store.Increment(ctx, b, b.key("n"), step.by, long)
		if err != nil || n != step.want {
			t.Fatalf("step %d: Increment(%d) = %d, %v, want %d", i, step.by, n, err, step.want)
		}
	}
}

func testIncrementAtOnce(t *testing.T, b *bench) {
	atOnce(t, 1000, func(int) error { _, err := store.Increment(ctx, b, b.key("n"), 1, long); return err })
	if n, err := store.Increment(ctx, b, b.key("n"), 1, long); err != nil || n != 1001 {
		t.Errorf("after 1000 increments: %d, %v", n-1, err)
	}
}

func testNumbers(t *testing.T, b *bench) {
	key := b.key("k")
	b.mustSet(t, key, "value", store.Absent, long)
	if n, err := store.Increment(ctx, b, key, 3, long); err != nil || n != 3 {
		t.Fatalf("Increment of a key that has a value, too: %d, %v", n, err)
	}
	b.mustBe(t, key, "value")
	short := b.key("short")
	if _, err := store.Increment(ctx, b, short, 5, 5*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	eventually(t, "expiry of a number", func() bool {
		n, err := store.Increment(ctx, b, short, 0, long)
		return err == nil && n == 0
	})
}

// mix has every way a script can end: results of both signs, numbers that are kept, renewed, left and
// removed.
var mix = &store.Script{
	Name: "mix",
	Go: func(_, state int64, a *store.Args) (int64, time.Duration, int64) {
		keep := time.Duration(a[1]) * time.Microsecond
		if a[1] < 0 {
			keep = store.KeepTTL
		}
		return state*2 + a[0], keep, a[2] - state
	},
	Lua: `result = a3 - state
state = state * 2 + a1
keep = a2`,
}

func testScript(t *testing.T, b *bench) {
	const hour = 3600 * 1000 * 1000
	for i, step := range []struct {
		args store.Args
		want int64
	}{
		{store.Args{5, hour, 1}, 1},           // 0 → 5
		{store.Args{1, -1, 1}, -4},            // → 11
		{store.Args{0, hour, -9}, -20},        // → 22
		{store.Args{-44, hour, 0}, -22},       // → 0, removed
		{store.Args{7, -1, 3}, 3},             // nothing has a time that could be left: → none
		{store.Args{7, -1, 3}, 3},             // still none
		{store.Args{1 << 51, hour, 0}, 0},     // large ones stay exact
		{store.Args{-1, hour, 0}, -(1 << 51)}, // → 2^52-1
		{store.Args{1, 0, 0}, 1 - 1<<52},      // kept for no time: → none
		{store.Args{0, hour, 4}, 4},           // none
	} {
		n, err := b.Run(ctx, b.key("n"), mix, step.args)
		if err != nil || n != step.want {
			t.Fatalf("step %d: Run(%v) = %d, %v, want %d", i, step.args, n, err, step.want)
		}
	}
	clock := &store.Script{
		Name: "clock",
		Go:   func(now, _ int64, _ *store.Args) (int64, time.Duration, int64) { return 0, 0, now },
		Lua:  "result = now",
	}
	n, err := b.Run(ctx, b.key("clock"), clock, store.Args{})
	if err != nil || n < time.Now().Add(-time.Hour).UnixMicro() || n > time.Now().Add(time.Hour).UnixMicro() {
		t.Errorf("now is %d, %v, want microseconds since 1970", n, err)
	}
}

func testMessages(t *testing.T, b *bench) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	got := make(chan string, 100)
	for range 2 {
		if err := b.Subscribe(ctx, b.key("topic"), func(m store.Message) { got <- string(m.Body) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Publish(ctx, b.key("other"), []byte("not this")); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		want := fmt.Sprint("message ", i)
		body := []byte(want)
		if err := b.Publish(ctx, b.key("topic"), body); err != nil {
			t.Fatal(err)
		}
		clear(body)
		for range 2 {
			select {
			case m := <-got:
				if m != want {
					t.Fatalf("received %q, want %q", m, want)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%q has not arrived", want)
			}
		}
	}
}

// Messages of one who publishes come in order, without waiting for each.
func testMessageOrder(t *testing.T, b *bench) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const n = 50 // as many as wait for a receiver
	got := [3]chan string{}
	for i := range got {
		got[i] = make(chan string, n)
		if err := b.Subscribe(ctx, b.key("topic"), func(m store.Message) { got[i] <- string(m.Body) }); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		if err := b.Publish(ctx, b.key("topic"), []byte(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		for _, from := range got {
			select {
			case m := <-from:
				if m != fmt.Sprint(i) {
					t.Fatalf("message %s came in place of %d", m, i)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("message %d has not arrived", i)
			}
		}
	}
}

func testSlowReceiver(t *testing.T, b *bench) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const n = 2000
	release, finished := make(chan struct{}), make(chan struct{})
	var received, lost atomic.Uint64
	err := b.Subscribe(ctx, b.key("topic"), func(m store.Message) {
		<-release
		lost.Add(m.Lost)
		received.Add(1)
		if string(m.Body) == "last" {
			close(finished)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		if err := b.Publish(ctx, b.key("topic"), []byte("message")); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	// Once there is room again the last one arrives, and says what was lost before.
	eventually(t, "the line of messages is worked off", func() bool { return received.Load() > 0 })
	sent := uint64(n)
	publishLast := time.NewTicker(5 * time.Millisecond)
	defer publishLast.Stop()
	body, deadline := "more", time.After(20*time.Second)
	for done := false; !done; {
		select {
		case <-finished:
			done = true
		case <-publishLast.C:
			if body == "last" {
				continue
			}
			before := received.Load()
			if before+lost.Load() == sent || before > 2*n {
				body = "last"
			}
			if err := b.Publish(ctx, b.key("topic"), []byte(body)); err != nil {
				t.Fatal(err)
			}
			sent++
		case <-deadline:
			t.Fatalf("of %d messages %d were received and %d counted as lost", sent, received.Load(), lost.Load())
		}
	}
	if all := received.Load() + lost.Load(); all != sent {
		t.Errorf("of %d messages %d were received and %d counted as lost", sent, received.Load(), lost.Load())
	}
}

func testUnsubscribe(t *testing.T, b *bench) {
	ctx2, cancel := context.WithCancel(ctx)
	var late atomic.Bool
	got := make(chan struct{}, 100)
	if err := b.Subscribe(ctx2, b.key("topic"), func(store.Message) {
		if late.Load() {
			t.Error("a message was received after the context of the subscription had ended")
		}
		got <- struct{}{}
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(ctx, b.key("topic"), nil); err != nil {
		t.Fatal(err)
	}
	<-got
	cancel()
	other := make(chan struct{}, 100)
	ctx3, cancel3 := context.WithCancel(ctx)
	defer cancel3()
	if err := b.Subscribe(ctx3, b.key("topic"), func(store.Message) { other <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	late.Store(true)
	if err := b.Publish(ctx, b.key("topic"), nil); err != nil {
		t.Fatal(err)
	}
	<-other
}

func testComingAndGoing(t *testing.T, b *bench) {
	// Never so many messages at once that one who is slow may lose some.
	const listeners, turns, times = 8, 5, 20
	for i := range times {
		var wg sync.WaitGroup
		for n := range listeners {
			wg.Go(func() {
				for j := range turns {
					listenOnce(t, b, fmt.Sprint(n, " ", i, " ", j))
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
	}
}

// listenOnce listens to a topic, publishes a message of its own, and leaves when that has come.
func listenOnce(t *testing.T, b *bench, own string) {
	listening, leave := context.WithCancel(ctx)
	defer leave()
	got := make(chan string, 1000)
	if err := b.Subscribe(listening, b.key("topic"), func(m store.Message) { got <- string(m.Body) }); err != nil {
		t.Error(err)
		return
	}
	if err := b.Publish(ctx, b.key("topic"), []byte(own)); err != nil {
		t.Error(err)
		return
	}
	deadline := time.After(10 * time.Second)
	for {
		select {
		case m := <-got:
			if m == own {
				return
			}
		case <-deadline:
			t.Errorf("who listens has not received the message %s", own)
			return
		}
	}
}

func testContext(t *testing.T, b *bench) {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for what, f := range map[string]func() error{
		"Get":       func() error { _, err := b.Get(ended, b.key("k")); return err },
		"Set":       func() error { _, err := b.Set(ended, b.key("k"), nil, store.Any, long); return err },
		"Expire":    func() error { return b.Expire(ended, b.key("k"), long) },
		"Increment": func() error { _, err := store.Increment(ended, b, b.key("k"), 1, long); return err },
		"Publish":   func() error { return b.Publish(ended, b.key("k"), nil) },
		"Subscribe": func() error { return b.Subscribe(ended, b.key("k"), func(store.Message) {}) },
	} {
		mustFail(t, what+" with an ended context", f(), context.Canceled)
	}
}

func testClosed(t *testing.T, b *bench) {
	b.mustSet(t, b.key("k"), "v", store.Any, long)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := b.Get(ctx, b.key("k"))
	mustFail(t, "Get after Close", err, store.ErrClosed)
	_, err = b.Set(ctx, b.key("k"), nil, store.Any, long)
	mustFail(t, "Set after Close", err, store.ErrClosed)
	_, err = store.Increment(ctx, b, b.key("k"), 1, long)
	mustFail(t, "Increment after Close", err, store.ErrClosed)
	mustFail(t, "Publish after Close", b.Publish(ctx, b.key("k"), nil), store.ErrClosed)
	mustFail(t, "Subscribe after Close", b.Subscribe(ctx, b.key("k"), func(store.Message) {}), store.ErrClosed)
	if err := b.Close(); err != nil {
		t.Errorf("Close after Close: %v", err)
	}
}
