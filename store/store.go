package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// A Store keeps values and numbers by key, for a time, and passes messages on. All
// methods are safe for concurrent use and atomic; those that fail have changed nothing,
// except that a call whose answer was lost (a deadline, a broken connection) may have been
// carried out.
//
// A key is any string that is not empty. Values and numbers do not meet: the
// same key may name one of each.
type Store interface {
	// Get returns the value of a key, or ErrNotFound. The bytes are shared: they
	// must not be written to.
	Get(ctx context.Context, key string) (Item, error)

	// Set gives the key a value, which is copied, if the version that it has is the given
	// one: that of an Item or of an earlier Set, Absent for no value, Any for
	// whatever there is. It returns the new version, which the key has never had before,
	// and ErrConflict when the version is another. After ttl, which must be positive, the value is gone.
	Set(ctx context.Context, key string, value []byte, have Version, ttl time.Duration) (Version, error)

	// Expire lets the value of a key live for ttl from now on; a ttl that is not
	// positive removes it. It returns ErrNotFound where there is no value.
	Expire(ctx context.Context, key string, ttl time.Duration) error

	// Run changes the number of a key by a script, and returns what the script does.
	Run(ctx context.Context, key string, script *Script, args Args) (int64, error)

	// Publish sends a message, which is copied, to all who listen to a topic at this moment. Messages
	// are delivered at most once, and those of a topic that are published one after the other in that order.
	Publish(ctx context.Context, topic string, message []byte) error

	// Subscribe has receive called for each message of a topic, until ctx ends: one call
	// at a time, on a goroutine of the store's. When Subscribe returns nil, messages
	// published from now on are received, but for those that Message.Lost counts.
	Subscribe(ctx context.Context, topic string, receive func(Message)) error

	// Close lets go of what the store has: connections, memory, subscriptions. Calls
	// that come later fail with ErrClosed.
	Close() error
}

// An Item is a value as a store has it.
type Item struct {
	Value   []byte
	Version Version
	TTL     time.Duration // until it is gone
}

// A Version tells the states of a key's value apart. Versions of one key grow.
type Version uint64

const (
	Absent Version = 0           // there is no value
	Any    Version = ^Version(0) // whatever there is, if anything
)

// A Message is one of a topic.
type Message struct {
	Body []byte // shared: it must not be written to
	Lost uint64 // messages since the one before that were dropped, because the receiver was slow
}

// Errors that are told apart by errors.Is.
var (
	ErrNotFound = errors.New("store: no value under this key")
	ErrConflict = errors.New("store: the value has another version")
	ErrFull     = errors.New("store: the bound on memory is reached")
	ErrClosed   = errors.New("store: closed")

	// ErrUnavailable says that the store did not answer, or is not asked because it
	// did not answer before: see Guard.
	ErrUnavailable = errors.New("store: unavailable")
)

var (
	errNoKey = errors.New("store: the key is empty")
	errNoTTL = errors.New("store: the time to live is not positive")
)

// Check returns what is wrong with the arguments of Set, nil for nothing. It is for implementations
// of Store.
func Check(key string, ttl time.Duration) error {
	switch {
	case key == "":
		return errNoKey
	case ttl <= 0:
		return errNoTTL
	}
	return nil
}

// Update changes a value by compare-and-set: change is given what there is, nil for
// nothing, and returns what is to be, which is set for ttl. When somebody else has
// changed the value meanwhile, change is called again with what there is then; so it
// should do nothing else, and no update is lost. Nothing is locked while it runs. An error of change
// ends Update, which returns it.
//
// Update gives up when ctx ends.
func Update(ctx context.Context, s Store, key string, ttl time.Duration, change func(old []byte) ([]byte, error)) error {
	for attempt := 0; ; attempt++ {
		item, err := s.Get(ctx, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		value, err := change(item.Value) // the zero Item says Absent
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

// Backoff waits before a compare-and-set that has failed with ErrConflict is tried again. The first
// attempts do not wait; later ones wait for a random time that grows to 10 ms at most, so that many
// callers for the same key do not hold each other up. It returns early, with the error, when ctx
// ends.
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
