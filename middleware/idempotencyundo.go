package middleware

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/logqueue"
	"github.com/dunlinhttp/dunlin/store"
)

// Claims that nobody made use of are given back. A store that does not answer in time may carry out what it was asked
// all the same, later: without this, a key whose request was refused would count as running until its lease is over.
//
// To give a key back is to write that it is free, also where nothing is there yet: a claim that arrives after that
// meets a conflict.
type claimsToUndo struct {
	config  *IdempotencyConfig
	mu      sync.Mutex
	claims  []*claim // that were not tried yet
	waiting int      // these, and those that the goroutine has
	runs    bool     // a goroutine is at it

	tooMany, unkept logqueue.Repeated // what is logged
}

const (
	mostToUndo   = 10_000          // so many wait at most, however long the store is away
	undoInterval = time.Second     // between two tries of all, while the store does not answer
	undoTimeout  = 2 * time.Second // of a try
	freeFor      = 10 * time.Minute
)

// add has a claim given back as soon as the store answers.
func (u *claimsToUndo) add(k *claim) {
	if u.put(k) {
		return
	}
	if n, due := u.tooMany.Note(); due {
		u.config.Logger.Warn("idempotency keys cannot be given back: repetitions get 409 until their leases are over", "count", n)
	}
}

// put is false if as many wait as may.
func (u *claimsToUndo) put(k *claim) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.waiting == mostToUndo {
		return false
	}
	u.claims = append(u.claims, k)
	u.waiting++
	if !u.runs {
		u.runs = true
		go u.run()
	}
	return true
}

// run gives claims back until there are none.
func (u *claimsToUndo) run() {
	var left []*claim // that the store did not answer for
	for {
		u.mu.Lock()
		todo := append(left, u.claims...)
		u.claims, left = nil, nil
		if len(todo) == 0 {
			u.runs = false
			u.mu.Unlock()
			return
		}
		u.mu.Unlock()
		for _, k := range todo {
			if !k.free() {
				left = append(left, k)
			}
		}
		u.mu.Lock()
		u.waiting -= len(todo) - len(left)
		u.mu.Unlock()
		if len(left) > 0 {
			time.Sleep(undoInterval)
		}
	}
}

// free writes that the key of a claim is free, unless it is somebody else's, and reports whether that is done, or of
// no use any more.
func (k *claim) free() bool {
	if time.Now().After(k.until) {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), undoTimeout)
	defer cancel()
	st := k.config.Store
	item, err := st.Get(ctx, k.key)
	have := store.Absent
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return errors.Is(err, store.ErrClosed)
	case bytes.Equal(item.Value, k.record(stateRunning)), len(item.Value) > 0 && item.Value[0] == stateFree:
		have = item.Version // a claim of what is free already, too, may still arrive
	default:
		return true // another request has it, or it has ended
	}
	_, err = st.Set(ctx, k.key, k.record(stateFree), have, min(k.config.Lease, freeFor))
	return err == nil || errors.Is(err, store.ErrClosed)
}
