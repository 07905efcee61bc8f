//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/store/redis"
)

// While Redis hangs, calls end at their deadlines, and later at once. Redis is used again when it answers again.
func TestRedisHangs(t *testing.T) {
	s := startServer(t)
	st := connect(t, redis.Config{Addrs: []string{s.addr}, Guard: store.GuardConfig{Timeout: 100 * time.Millisecond, Failures: 3, Cooldown: 200 * time.Millisecond}})
	eventually(t, "Redis is used", func() bool {
		_, err := st.Set(ctx, "k", []byte("v"), store.VersionAny, time.Hour)
		return err == nil
	})
	if err := s.process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for !st.Stats().Open {
		if _, err := st.Get(ctx, "k"); !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("a call to a Redis that hangs: %v", err)
		}
	}
	if _, err := st.Get(ctx, "k"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a call while the breaker is open: %v", err)
	}
	if err := s.process.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Redis is used again", func() bool {
		item, err := st.Get(ctx, "k")
		return err == nil && string(item.Value) == "v"
	})
}

// The only call on a connection ends with its context, not only at its deadline: when its caller cancels it, and when Redis is
// silent.
func TestCallsEndWithTheirContext(t *testing.T) {
	s := startServer(t)
	st := connect(t, redis.Config{Addrs: []string{s.addr}, Guard: store.GuardConfig{Timeout: 5 * time.Second}})
	eventually(t, "Redis is used", func() bool {
		_, err := st.Set(ctx, "k", []byte("v"), store.VersionAny, time.Hour)
		return err == nil
	})
	if err := s.process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	before := st.Stats()
	leaving, leave := context.WithCancel(ctx)
	time.AfterFunc(10*time.Millisecond, leave)
	if _, err := st.Get(leaving, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that leaves: %v", err)
	}
	if _, err := st.Prompt().Add(ctx, "n", 1, time.Hour); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("while Redis is silent: %v", err)
	}
	if now := st.Stats(); now.Failures != before.Failures || now.Stalls == before.Stalls {
		t.Errorf("the deadline has passed: got %+v, and %+v before", now, before)
	}
}

// While Redis hangs or is unavailable, Subscribe fails in time. An active subscription continues when Redis is available again.
func TestSubscribeDuringOutage(t *testing.T) {
	s := startServer(t)
	st := connect(t, redis.Config{Addrs: []string{s.addr}, Guard: store.GuardConfig{Timeout: 200 * time.Millisecond, Cooldown: 50 * time.Millisecond}})
	early, later := make(chan string, 1000), make(chan string, 1000)
	subscribe := func(to chan string) error {
		return st.Subscribe(t.Context(), "topic", func(m store.Message) { to <- string(m.Body) })
	}
	received := func(from chan string) func() bool {
		return func() bool {
			_ = st.Publish(ctx, "topic", []byte("hello"))
			select {
			case <-from:
				return true
			default:
				return false
			}
		}
	}
	eventually(t, "a subscription is active", func() bool { return subscribe(early) == nil })
	if err := s.process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := subscribe(later); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a Redis that hangs: %v", err)
	}
	if err := s.process.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "messages arrive after Redis has hung", received(early))
	s.kill()
	if err := subscribe(later); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a Redis that is gone: %v", err)
	}
	if !s.start(t) {
		t.Skip("another program has taken the port")
	}
	eventually(t, "messages arrive after Redis was gone", received(early))
	if len(later) > 0 {
		t.Error("a subscription that failed has received a message")
	}
	eventually(t, "Redis is subscribed to again", func() bool { return subscribe(later) == nil })
	eventually(t, "messages arrive there, too", received(later))
}

// This also holds for writes that wait for replicas: neither a new connection to a Redis that hangs nor the wait for a
// connection of the pool takes longer.
func TestRedisHangsWithReplicas(t *testing.T) {
	const calls = 20
	s, _ := startPair(t)
	st := connect(t, redis.Config{Addrs: []string{s.addr}, Replicas: 1, Guard: store.GuardConfig{Timeout: 100 * time.Millisecond, Failures: calls, Cooldown: 200 * time.Millisecond}})
	set := func() error {
		_, err := st.Set(ctx, "k", []byte("v"), store.VersionAny, time.Hour)
		return err
	}
	eventually(t, "Redis is used", func() bool { return set() == nil })
	if err := s.process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for !st.Stats().Open {
		if err := set(); !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("a write to a Redis that hangs: %v", err)
		}
	}
	if took := time.Since(began); took > calls*time.Second { // less than the two attempts to make a connection may take
		t.Errorf("%d writes with a deadline of 100 ms took %v", calls, took)
	}
	if err := s.process.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Redis is used again", func() bool { return set() == nil })
}

// While one master of a cluster hangs, keys on the other masters stay available.
func TestMasterHangs(t *testing.T) {
	cluster := startCluster(t)
	st := connect(t, redis.Config{Addrs: []string{cluster[0].addr}, Guard: store.GuardConfig{Timeout: time.Second, Failures: 2, Cooldown: time.Minute}})
	var keys []string
	for i := range 60 {
		keys = append(keys, fmt.Sprint("key", i))
		eventually(t, "the cluster is used", func() bool {
			_, err := st.Set(ctx, keys[i], []byte("v"), store.VersionAny, time.Hour)
			return err == nil
		})
	}
	if err := cluster[1].process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster[1].process.Process.Signal(syscall.SIGCONT) })
	get := func(key string) bool {
		_, err := st.Get(ctx, key)
		if err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v", key, err)
		}
		return err == nil
	}
	for round := 0; !st.Stats().Open && round < 20; round++ {
		for _, key := range keys {
			get(key)
			if st.Stats().Open {
				break
			}
		}
	}
	if s := st.Stats(); s.Parts != 1 {
		t.Errorf("%d parts of the cluster are given up, want one", s.Parts)
	}
	there := 0
	for _, key := range keys {
		if get(key) {
			there++
		}
	}
	if there < 20 || there > 59 {
		t.Errorf("%d of 60 keys are there, want those of two masters", there)
	}
}
