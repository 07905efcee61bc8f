package middleware

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/store"
)

// A sessionRecord is the stored form of a session. In a store it is:
//
//	version (1) │ began, in microseconds since 1970 (8) │ the value as JSON
//
// In a cookie the time of the last use (8) follows began. An empty record is the tombstone of a session
// that a login has renamed.
type sessionRecord struct {
	began time.Time
	seen  time.Time // in a cookie only
	json  []byte
}

const recordVersion = 1

// bytes returns the stored form, which parse reads.
func (rec *sessionRecord) bytes() []byte {
	b := append(make([]byte, 0, 1+8+8+len(rec.json)), recordVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(rec.began.UnixMicro()))
	if !rec.seen.IsZero() {
		b = binary.BigEndian.AppendUint64(b, uint64(rec.seen.UnixMicro()))
	}
	return append(b, rec.json...)
}

// parse sets the record from its stored form. It reports false for invalid bytes.
func (rec *sessionRecord) parse(b []byte, withSeen bool) bool {
	head := 9
	if withSeen {
		head += 8
	}
	if len(b) < head || b[0] != recordVersion {
		return false
	}
	rec.began = time.UnixMicro(int64(binary.BigEndian.Uint64(b[1:])))
	if withSeen {
		rec.seen = time.UnixMicro(int64(binary.BigEndian.Uint64(b[9:])))
	}
	rec.json = b[head:]
	return true
}

// nameSize is the length of a session's name, in random bytes.
const nameSize = 32

func newSessionName() string {
	var b [nameSize]byte
	_, _ = rand.Read(b[:]) // never fails
	return inBase64.EncodeToString(b[:])
}

// isSessionName reports whether a cookie has the form of a session name. For other cookies the store is not called.
func isSessionName(s string) bool {
	var b [nameSize + 2]byte
	if len(s) != base64.RawURLEncoding.EncodedLen(nameSize) {
		return false
	}
	n, err := inBase64.Decode(b[:], []byte(s))
	return err == nil && n == nameSize
}

// storeKey returns the key of a session. It is a hash, so that read access to the store does not reveal session names.
func (s *Sessions[T]) storeKey(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "session:" + s.config.Cookie + ":" + inBase64.EncodeToString(sum[:])
}

// ttl returns the remaining lifetime of a session that is used now.
func (s *Sessions[T]) ttl(rec *sessionRecord) time.Duration {
	return min(s.config.Idle, time.Until(rec.began.Add(s.config.Absolute)))
}

// loadStored reads the client's session from the store.
func (s *Sessions[T]) loadStored(r *dunlin.Request, state *sessionState[T]) error {
	name := r.Cookie(s.config.Cookie)
	if !isSessionName(name) {
		return nil
	}
	ctx := r.Context()
	item, err := s.read(ctx, name, state)
	if err != nil || !state.there {
		return err
	}
	// Each use restarts the idle time, unless it was restarted recently.
	if ttl := s.ttl(&state.record); item.TTL < ttl-s.config.Idle/8 {
		if err := s.config.Store.Expire(ctx, s.storeKey(name), ttl); err != nil && !errors.Is(err, store.ErrNotFound) {
			return unavailable(err)
		}
	}
	return nil
}

// read sets the state from the stored session with a name.
func (s *Sessions[T]) read(ctx context.Context, name string, state *sessionState[T]) (store.Item, error) {
	var none T
	state.there, state.moved, state.data, state.id = false, false, none, name
	item, err := s.config.Store.Get(ctx, s.storeKey(name))
	if errors.Is(err, store.ErrNotFound) {
		return item, nil
	}
	if err != nil {
		return item, unavailable(err)
	}
	state.moved = len(item.Value) == 0
	if !state.record.parse(item.Value, false) || s.ttl(&state.record) <= 0 {
		return item, nil
	}
	if err := json.Unmarshal(state.record.json, &state.data); err != nil {
		return item, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	state.there, state.version = true, item.Version
	return item, nil
}

// create stores the state as a new session.
func (s *Sessions[T]) create(r *dunlin.Request, state *sessionState[T]) error {
	text, err := s.encode(&state.data)
	if err != nil {
		return err
	}
	state.record.json = text
	state.id = newSessionName()
	state.version, err = s.config.Store.Set(r.Context(), s.storeKey(state.id), state.record.bytes(), store.VersionAbsent, s.ttl(&state.record))
	if err != nil {
		return unavailable(err)
	}
	state.cookie = state.id
	return nil
}

// reload reads the session after another request has changed it. It first waits for a time that grows with
// attempt.
func (s *Sessions[T]) reload(ctx context.Context, state *sessionState[T], attempt int) error {
	if err := store.Backoff(ctx, attempt); err != nil {
		return unavailable(err)
	}
	if _, err := s.read(ctx, state.id, state); err != nil {
		return err
	}
	if !state.there {
		return ErrSessionEnded
	}
	return nil
}

// changed returns the value after change, and its JSON. change is called with a freshly decoded
// value, because it may retain parts of its argument. changed does not modify state.
func (s *Sessions[T]) changed(state *sessionState[T], change func(*T) error) (data T, text []byte, err error) {
	if err := json.Unmarshal(state.record.json, &data); err != nil {
		return data, nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if err := change(&data); err != nil {
		return data, nil, err
	}
	text, err = s.encode(&data)
	return data, text, err
}

// updateStored changes an existing session.
func (s *Sessions[T]) updateStored(r *dunlin.Request, state *sessionState[T], change func(*T) error) error {
	ctx := r.Context()
	for attempt := 0; ; attempt++ {
		data, text, err := s.changed(state, change)
		if err != nil {
			return err
		}
		if bytes.Equal(text, state.record.json) {
			state.data = data
			return nil
		}
		rec := sessionRecord{began: state.record.began, json: text}
		ttl := s.ttl(&rec)
		if ttl <= 0 {
			return ErrSessionEnded
		}
		version, err := s.config.Store.Set(ctx, s.storeKey(state.id), rec.bytes(), state.version, ttl)
		if err == nil {
			state.record, state.data, state.version = rec, data, version
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return unavailable(err)
		}
		if err := s.reload(ctx, state, attempt); err != nil {
			return err
		}
	}
}

// movedFor is the lifetime of the tombstone that a login leaves under the old name. A request that was
// sent with the old cookie finds the tombstone, and begins no session: the cookie of a new session would
// replace the cookie of the login.
const movedFor = 20 * time.Second

// rename changes a session and gives it another name. It stores a copy under the new name, then
// replaces the record of the old name with a tombstone. If the old record has changed since it was
// copied, the second write fails, and rename copies the record again. The client learns the new name
// only with the response.
func (s *Sessions[T]) rename(r *dunlin.Request, state *sessionState[T], change func(*T) error) error {
	if !state.open {
		return ErrSessionTooLate
	}
	ctx, name := r.Context(), newSessionName()
	for attempt := 0; ; attempt++ {
		data, text, err := s.changed(state, change)
		if err != nil {
			return s.forget(ctx, name, attempt > 0, err)
		}
		rec := sessionRecord{began: time.Now(), json: text}
		version, err := s.config.Store.Set(ctx, s.storeKey(name), rec.bytes(), store.VersionAny, s.ttl(&rec))
		if err != nil {
			return unavailable(err)
		}
		_, err = s.config.Store.Set(ctx, s.storeKey(state.id), nil, state.version, movedFor)
		if err == nil {
			*state = sessionState[T]{open: true, loaded: true, there: true, cookie: name, id: name, version: version, record: rec, data: data}
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return s.forget(ctx, name, true, unavailable(err))
		}
		if err := s.reload(ctx, state, attempt); err != nil {
			return s.forget(ctx, name, true, err)
		}
	}
}

// forget removes the session under a name that the client will not get, and returns err. stored reports
// whether there is such a session. If the removal fails, the session expires by itself.
func (s *Sessions[T]) forget(ctx context.Context, name string, stored bool, err error) error {
	if stored {
		_ = s.config.Store.Expire(ctx, s.storeKey(name), 0)
	}
	return err
}
