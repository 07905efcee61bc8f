//go:build unix

package redis_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/store/redis"
)

// While Redis hangs, calls end in time, then at once, and it is used again when it is back.
func TestRedisHangs(t *testing.T) {
	s := startServer(t)
	st := connect(t, redis.Config{Addrs: []string{s.addr}, Guard: store.GuardConfig{Timeout: 100 * time.Millisecond, Failures: 3, Cooldown: 200 * time.Millisecond}})
	eventually(t, "Redis is used", func() bool {
		_, err := st.Set(ctx, "k", []byte("v"), store.Any, time.Hour)
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
