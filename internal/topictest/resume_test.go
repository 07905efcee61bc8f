package topictest_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/topictest"
	"github.com/dunlinhttp/dunlin/store"
)

// A breakable is a store in memory that is unavailable at times.
type breakable struct {
	store.Store
	broken *atomic.Bool
}

func (b breakable) Publish(ctx context.Context, name string, message []byte) error {
	if b.broken.Load() {
		return errors.New("no store")
	}
	return b.Store.Publish(ctx, name, message)
}

// Clients of processes that share a store in memory resume as those over Redis do.
func TestResumeBetweenProcesses(t *testing.T) {
	s := breakable{store.NewMemory(store.MemoryConfig{}), new(atomic.Bool)}
	topictest.Resume(t, topictest.Backplane{
		Store: func(*testing.T) store.Store { return s },
		Stop:  func(*testing.T) { s.broken.Store(true) },
		Start: func(*testing.T) { s.broken.Store(false) },
	})
}

// Processes that share keyed topics over a store in memory agree on their entries and members.
func TestKeyedTopics(t *testing.T) {
	topictest.Keyed(t, func(t *testing.T, f func(t *testing.T, c topictest.Cluster)) {
		s := breakable{store.NewMemory(store.MemoryConfig{}), new(atomic.Bool)}
		f(t, topictest.Serve(t, topictest.Backplane{
			Store: func(*testing.T) store.Store { return s },
			Stop:  func(*testing.T) { s.broken.Store(true) },
			Start: func(*testing.T) { s.broken.Store(false) },
		}))
	})
}
