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

// claimsToUndo releases claims whose requests did not run. A store that does not respond in time may
// execute a claim later. Without a release, the refused request would count as running until the lease
// ends.
//
// A release writes that the key is free, even if the store has no value for the key yet. If the claim
// arrives later, it fails because of a conflict.
type claimsToUndo struct {
	config  *IdempotencyConfig
	mu      sync.Mutex
	claims  []*claim // not tried yet
	waiting int      // number of claims here and in the goroutine
	runs    bool     // a goroutine runs

	tooMany, unkept logqueue.Repeated // throttle the log
}

const (
	maxToUndo    = 10_000           // maximum number of waiting claims
	undoInterval = time.Second      // time between two rounds while the store does not respond
	undoTimeout  = 2 * time.Second  // time limit of one attempt
	freeFor      = 10 * time.Minute // maximum lifetime of the record that a key is free
)

// add releases a claim as soon as the store responds.
func (u *claimsToUndo) add(k *claim) {
	if u.put(k) {
		return
	}
	if n, due := u.tooMany.Note(); due {
		u.config.Logger.Warn("idempotency: releasing keys failed: repetitions get 409 until the leases end", "count", n)
	}
}

// put reports false if maxToUndo claims are waiting.
func (u *claimsToUndo) put(k *claim) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.waiting == maxToUndo {
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

// run releases claims until none is left.
func (u *claimsToUndo) run() {
	var left []*claim // claims for which the store did not respond
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

// free writes that the key of a claim is free, unless another request has claimed the key. It returns true if no further
// attempt is needed.
func (k *claim) free() bool {
	if time.Now().After(k.until) {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), undoTimeout)
	defer cancel()
	st := k.config.Store
	item, err := st.Get(ctx, k.key)
	have := store.VersionAbsent
	switch {
	case errors.Is(err, store.ErrNotFound):
	case err != nil:
		return errors.Is(err, store.ErrClosed)
	case bytes.Equal(item.Value, k.record(stateRunning)), len(item.Value) > 0 && item.Value[0] == stateFree:
		have = item.Version // even if the key is already free, because the claim may still arrive
	default:
		return true // another request has claimed the key, or the outcome of a request is stored
	}
	_, err = st.Set(ctx, k.key, k.record(stateFree), have, min(k.config.Lease, freeFor))
	return err == nil || errors.Is(err, store.ErrClosed)
}
