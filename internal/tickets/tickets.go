// Package tickets has the keys that TLS session tickets are sealed with (RFC 5077, RFC 8446 section
// 4.6.1): a new one each day, and the last ones for as long as tickets are taken. They can be passed on to the
// process that takes over, whose clients then go on without a full handshake. They are in memory only.
package tickets

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// As crypto/tls has them.
const (
	rotation = 24 * time.Hour     // for so long a key seals
	lifetime = 7 * 24 * time.Hour // for so long it opens
)

// Keys are those of a process. The zero value makes the first when it is needed. Its methods may be called by
// any number of goroutines.
type Keys struct {
	due  atomic.Int64 // when there is to be another key, in seconds since 1970
	mu   sync.Mutex
	keys []key // the newest first
}

type key struct {
	since  int64 // seconds since 1970
	secret [sha256.Size]byte
}

// refresh makes a new key if it is time, and returns when that is next.
func (k *Keys) refresh() (due int64) {
	now := time.Now().Unix()
	if due = k.due.Load(); now < due {
		return due
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if due = k.due.Load(); now < due {
		return due
	}
	fresh := key{since: now}
	_, _ = rand.Read(fresh.secret[:]) // does not fail
	keys := []key{fresh}
	for _, old := range k.keys {
		if now-old.since < int64(lifetime/time.Second) {
			keys = append(keys, old)
		}
	}
	k.keys = keys
	due = now + int64(rotation/time.Second)
	k.due.Store(due)
	return due
}

// derived returns the keys as those of one place.
func (k *Keys) derived(place string) (keys [][32]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.keys {
		mac := hmac.New(sha256.New, k.keys[i].secret[:])
		mac.Write([]byte(place))
		keys = append(keys, [32]byte(mac.Sum(nil)))
	}
	return keys
}

// A key is passed on in so many bytes.
const keySize = 8 + sha256.Size

// Marshal returns the keys for Unmarshal. They are secret: who has them reads what was said by sessions that
// were resumed.
func (k *Keys) Marshal() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	b := make([]byte, 0, keySize*len(k.keys))
	for i := range k.keys {
		b = binary.BigEndian.AppendUint64(b, uint64(k.keys[i].since))
		b = append(b, k.keys[i].secret[:]...)
	}
	return b
}

// Unmarshal takes the keys of another process. It belongs before the first handshake.
func (k *Keys) Unmarshal(b []byte) error {
	if len(b)%keySize != 0 || len(b) > 64*keySize {
		return errors.New("the keys of session tickets are no whole number of keys")
	}
	var keys []key
	for ; len(b) > 0; b = b[keySize:] {
		keys = append(keys, key{int64(binary.BigEndian.Uint64(b)), [sha256.Size]byte(b[8:keySize])})
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys = keys; len(keys) > 0 {
		k.due.Store(keys[0].since + int64(rotation/time.Second))
	}
	return nil
}

// Secure returns the config with tickets that are sealed by k, for the listener that place names: a ticket of one place
// is none of another. The config's own keys, if it has any, go before that. So do those
// that crypto/tls makes itself where a client may have shown a certificate: who has to, and what is accepted, may be
// another thing in the next process.
func (k *Keys) Secure(config *tls.Config, place string) *tls.Config {
	if config.SessionTicketsDisabled || config.WrapSession != nil || config.UnwrapSession != nil ||
		config.ClientAuth != tls.NoClientCert || config.GetConfigForClient != nil {
		return config
	}
	s := &sealer{keys: k, place: place, own: config.Clone(), unused: config.Clone()}
	config = config.Clone()
	config.WrapSession, config.UnwrapSession = s.wrap, s.unwrap
	return config
}

// A sealer seals and opens the tickets of one place.
type sealer struct {
	keys  *Keys
	place string
	own   *tls.Config // as it was given

	unused *tls.Config // likewise; crypto/tls gives it no keys of its own

	decide   sync.Once
	explicit bool // own has keys that somebody has set

	mu  sync.Mutex
	due int64 // with which by was made
	by  *tls.Config
}

// wrap is a WrapSession.
func (s *sealer) wrap(state tls.ConnectionState, session *tls.SessionState) ([]byte, error) {
	s.decide.Do(func() { s.explicit = hasKeys(s.unused, state, session) })
	if s.explicit {
		return s.own.EncryptTicket(state, session)
	}
	return s.current().EncryptTicket(state, session)
}

// unwrap is an UnwrapSession.
func (s *sealer) unwrap(ticket []byte, state tls.ConnectionState) (*tls.SessionState, error) {
	session, err := s.current().DecryptTicket(ticket, state)
	if session == nil && err == nil {
		session, err = s.own.DecryptTicket(ticket, state) // which finds nothing unless keys were set
	}
	return session, err
}

// current returns a config whose keys are those of now.
func (s *sealer) current() *tls.Config {
	due := s.keys.refresh()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil || s.due != due {
		s.by, s.due = new(tls.Config), due
		s.by.SetSessionTicketKeys(s.keys.derived(s.place))
	}
	return s.by
}

// hasKeys reports whether SetSessionTicketKeys was called for a config, or SessionTicketKey set. It
// does not say so; but then two copies of it open each other's tickets.
func hasKeys(config *tls.Config, state tls.ConnectionState, session *tls.SessionState) bool {
	one, other := config.Clone(), config.Clone()
	ticket, err := one.EncryptTicket(state, session)
	if err != nil {
		return false
	}
	opened, err := other.DecryptTicket(ticket, state)
	return err == nil && opened != nil
}
