package storetest_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return store.NewMemory(store.MemoryConfig{}) })
}

func TestGuardedMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store {
		return store.Guard(store.NewMemory(store.MemoryConfig{}), store.GuardConfig{Timeout: time.Minute})
	})
}

func TestFullMemory(t *testing.T) {
	storetest.RunFull(t, func(*testing.T) store.Store {
		return store.NewMemory(store.MemoryConfig{MaxBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler)})
	})
}
