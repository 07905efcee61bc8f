// Package tickets manages the keys of TLS session tickets (RFC 5077, RFC 8446 section 4.6.1). There is a new key each day, and
// old keys are kept until their tickets expire. A process can pass the keys to the next process of a restart, so that clients
// resume their sessions there. Keys are never written to disk.
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

// These times are the same as in crypto/tls.
const (
	rotation = 24 * time.Hour     // for this time a key encrypts new tickets
	lifetime = 7 * 24 * time.Hour // for this time a key decrypts tickets
)

// Keys are the ticket keys of a process. The zero value creates the first key on demand. It is safe for concurrent
// use.
type Keys struct {
	due  atomic.Int64 // time of the next key, in seconds since 1970
	mu   sync.Mutex
	keys []key // keys, the newest first
}

type key struct {
	since  int64 // seconds since 1970
	secret [sha256.Size]byte
}

// refresh creates a new key if one is due. It returns the time when the next key is due, in seconds since 1970.
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
	_, _ = rand.Read(fresh.secret[:]) // never fails
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

// derived returns the keys derived for one listener.
func (k *Keys) derived(listener string) (keys [][32]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.keys {
		mac := hmac.New(sha256.New, k.keys[i].secret[:])
		mac.Write([]byte(listener))
		keys = append(keys, [32]byte(mac.Sum(nil)))
	}
	return keys
}

// keySize is the size of a marshaled key.
const keySize = 8 + sha256.Size

// Marshal returns the keys for Unmarshal. The keys are secret, because they decrypt the resumed sessions.
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

// Unmarshal sets the keys of another process. Call it before the first handshake.
func (k *Keys) Unmarshal(b []byte) error {
	if len(b)%keySize != 0 || len(b) > 64*keySize {
		return errors.New("the length of the session ticket keys is not a multiple of a key's")
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

// Secure returns a config whose tickets are encrypted with the keys of k for the named listener. A ticket of one listener is
// invalid at another. Explicit ticket keys of config have priority. If config requests client certificates, Secure returns it
// unchanged, with the automatic keys of crypto/tls, since the next process may have other requirements for certificates.
func (k *Keys) Secure(config *tls.Config, listener string) *tls.Config {
	if config.SessionTicketsDisabled || config.WrapSession != nil || config.UnwrapSession != nil ||
		config.ClientAuth != tls.NoClientCert || config.GetConfigForClient != nil {
		return config
	}
	s := &sealer{keys: k, listener: listener, own: config.Clone(), unused: config.Clone()}
	config = config.Clone()
	config.WrapSession, config.UnwrapSession = s.wrap, s.unwrap
	return config
}

// A sealer encrypts and decrypts the tickets of one listener.
type sealer struct {
	keys     *Keys
	listener string
	own      *tls.Config // the original config

	unused *tls.Config // a copy of the original config for which crypto/tls has not made automatic keys

	decide   sync.Once
	explicit bool // own has explicit keys

	mu  sync.Mutex
	due int64 // the due time of the keys in by
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
		session, err = s.own.DecryptTicket(ticket, state) // finds nothing unless keys were set
	}
	return session, err
}

// current returns a config with the current keys.
func (s *sealer) current() *tls.Config {
	due := s.keys.refresh()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil || s.due != due {
		s.by, s.due = new(tls.Config), due
		s.by.SetSessionTicketKeys(s.keys.derived(s.listener))
	}
	return s.by
}

// hasKeys reports whether a config has explicit ticket keys, by SetSessionTicketKeys or SessionTicketKey. No method of a config
// reports that. But with explicit keys each of two copies of it decrypts the tickets of the other.
func hasKeys(config *tls.Config, state tls.ConnectionState, session *tls.SessionState) bool {
	one, other := config.Clone(), config.Clone()
	ticket, err := one.EncryptTicket(state, session)
	if err != nil {
		return false
	}
	opened, err := other.DecryptTicket(ticket, state)
	return err == nil && opened != nil
}
