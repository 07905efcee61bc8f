package webhook

import (
	"context"
	"errors"

	"github.com/dunlinhttp/dunlin/store"
)

// The value of an ID in the store is one of these states.
const (
	running = "running"
	done    = "done"
	failed  = "failed"
)

// A claim is the right to run the action of a webhook.
type claim struct {
	v       *Verifier
	key     string
	version store.Version
}

// claim returns these errors for an ID that another request has claimed.
var (
	errDone    = errors.New("webhook: action has already run")
	errRunning = errors.New("webhook: action is running")
)

// claim claims an ID. The error is errDone, errRunning, or an error of the store.
func (v *Verifier) claim(ctx context.Context, id string) (*claim, error) {
	c := &claim{v: v, key: v.config.Prefix + id}
	err := c.begin(ctx, store.VersionAbsent)
	if !errors.Is(err, store.ErrConflict) {
		return c, err
	}
	item, err := v.config.Store.Get(ctx, c.key)
	switch {
	case err == nil && string(item.Value) == done:
		return nil, errDone
	case err == nil && string(item.Value) == failed:
		err = c.begin(ctx, item.Version)
	case err == nil || errors.Is(err, store.ErrNotFound): // if not found, the other lease has just ended, and the next repetition runs the action
		err = errRunning
	}
	if errors.Is(err, store.ErrConflict) { // another request has claimed the ID
		err = errRunning
	}
	return c, err
}

// begin sets the state running if the version in the store is have.
func (c *claim) begin(ctx context.Context, have store.Version) (err error) {
	c.version, err = c.v.config.Store.Set(ctx, c.key, []byte(running), have, c.v.config.Lease)
	return err
}

// finish stores the outcome. After a failed action a repetition runs the action again. If the store fails, repetitions are
// refused until the lease ends. If the lease has expired, another request may have claimed the ID; then the version
// differs, and finish changes nothing.
func (c *claim) finish(ctx context.Context, ok bool) {
	state, ttl := done, c.v.config.Remember
	if !ok {
		state, ttl = failed, c.v.config.Lease
	}
	_, _ = c.v.config.Store.Set(ctx, c.key, []byte(state), c.version, ttl)
}
