package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// A Store stores values and numbers by key for a limited time, and delivers messages. All methods are safe for
// concurrent use and atomic. A failed call has changed nothing, with one exception: a call whose answer was lost (a
// deadline, a broken connection) may have taken effect.
//
// A key is a non-empty string. Values and numbers have separate key spaces.
type Store interface {
	// Get returns the value of a key, or ErrNotFound. The caller must not modify the bytes, which other callers share.
	Get(ctx context.Context, key string) (Item, error)

	// Set sets the value of a key if the current version of the value equals have. have is the version of an Item or
	// of an earlier Set, VersionAbsent for a missing value, or VersionAny. Set copies value. It returns the new
	// version, which the key has never had before, or ErrConflict if the versions differ. The value expires after ttl,
	// which must be positive.
	Set(ctx context.Context, key string, value []byte, have Version, ttl time.Duration) (Version, error)

	// Expire sets the remaining time to live of a value to ttl. A ttl that is zero or negative removes the value. It
	// returns ErrNotFound if there is no value.
	Expire(ctx context.Context, key string, ttl time.Duration) error

	// Add adds n to the number of a key and returns the sum, which is exact up to 2^53. A missing number is 0. When a
	// number changes from 0, its time to live becomes ttl, which must be positive. Later calls do not change this time.
	Add(ctx context.Context, key string, n int64, ttl time.Duration) (int64, error)

	// Publish sends a message to all current subscribers of a topic. It copies message. A message is delivered at most
	// once. Messages published in sequence on a topic are delivered in that order.
	Publish(ctx context.Context, topic string, message []byte) error

	// Subscribe calls receive for each message of a topic until ctx ends: one call at a time, on a goroutine of the
	// store. receive gets every message that is published after Subscribe has returned nil, with two exceptions: messages
	// that Message.Lost counts, and messages that are published while the connection of the store is interrupted.
	Subscribe(ctx context.Context, topic string, receive func(Message)) error

	// Close releases connections, memory and subscriptions. Later calls fail with ErrClosed.
	Close() error
}

// An Item is the value of a key.
type Item struct {
	Value   []byte
	Version Version
	TTL     time.Duration // remaining time to live
}

// A Version identifies one of the values that a key has had. The versions of a key increase.
type Version uint64

const (
	VersionAbsent Version = 0           // there is no value
	VersionAny    Version = ^Version(0) // any value, or none
)

// A Message is a message of a topic.
type Message struct {
	Body []byte // shared by all subscribers: do not modify it
	Lost uint64 // number of messages dropped before this message because the receiver was slow
}

// These are errors of the methods of a Store, to test with errors.Is.
var (
	ErrNotFound = errors.New("store: no value under this key")
	ErrConflict = errors.New("store: the value has another version")
	ErrFull     = errors.New("store: the bound on memory is reached")
	ErrClosed   = errors.New("store: closed")

	// ErrUnavailable reports that the store did not answer, or that the breaker of Guard is open.
	ErrUnavailable = errors.New("store: unavailable")
)

var (
	errNoKey = errors.New("store: the key is empty")
	errNoTTL = errors.New("store: the time to live is not positive")
)

// Check returns an error if an argument of Set or Add is invalid. It is for implementations of Store.
func Check(key string, ttl time.Duration) error {
	switch {
	case key == "":
		return errNoKey
	case ttl <= 0:
		return errNoTTL
	}
	return nil
}

// Update changes a value by compare-and-set. It calls change with the current value, or nil if there is no value, and
// sets the returned value for ttl. If another client has changed the value meanwhile, Update calls change again with
// the new value. So no update is lost, and change should have no side effects. No lock is held while change runs.
// change must not modify old. Update returns the error of change, and the error of ctx when ctx ends.
func Update(ctx context.Context, s Store, key string, ttl time.Duration, change func(old []byte) ([]byte, error)) error {
	for attempt := 0; ; attempt++ {
		item, err := s.Get(ctx, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		value, err := change(item.Value) // the version of a zero Item is VersionAbsent
		if err != nil {
			return err
		}
		_, err = s.Set(ctx, key, value, item.Version, ttl)
		if !errors.Is(err, ErrConflict) {
			return err
		}
		if err := Backoff(ctx, attempt); err != nil {
			return err
		}
	}
}

// Backoff waits before the caller retries a compare-and-set that failed with ErrConflict. attempt is the number of
// earlier waits. Backoff does not wait for attempts 0 to 2. Later it waits for a random time of at most 10 ms, so that
// many callers with the same key do not block each other. When ctx ends it returns the error of ctx.
func Backoff(ctx context.Context, attempt int) error {
	if attempt < 3 {
		return ctx.Err()
	}
	pause := time.NewTimer(rand.N(min(100*time.Microsecond<<min(attempt-3, 10), 10*time.Millisecond)))
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-pause.C:
		return nil
	}
}
