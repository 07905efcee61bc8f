package middleware

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// maxCookie is the maximum length of a cookie's name and value that all browsers accept, in bytes (RFC
// 6265 section 6.1).
const maxCookie = 4096

// loadCookie reads a session that is stored in the cookie. A forged or expired cookie counts as no
// session.
func (s *Sessions[T]) loadCookie(r *dunlin.Request, state *sessionState[T]) error {
	sealed := r.Cookie(s.config.Cookie)
	if sealed == "" || len(sealed) > maxCookie {
		return nil
	}
	plain, err := s.config.Keys.Open(s.purpose, sealed)
	if err != nil {
		return nil // as without a cookie, so that an attacker learns nothing
	}
	now := time.Now()
	rec := &state.record
	if !rec.parse(plain, true) || now.Sub(rec.began) >= s.config.Absolute || now.Sub(rec.seen) >= s.config.Idle {
		return nil
	}
	if err := json.Unmarshal(rec.json, &state.data); err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	state.there = true
	if now.Sub(rec.seen) > s.config.Idle/8 && state.open {
		return s.seal(state) // restarts the idle time
	}
	return nil
}

// seal sets the cookie of the state to the sealed session.
func (s *Sessions[T]) seal(state *sessionState[T]) error {
	if !state.open {
		return ErrSessionTooLate
	}
	text, err := s.encode(&state.data)
	if err != nil {
		return err
	}
	rec := sessionRecord{began: state.record.began, seen: time.Now(), json: text}
	sealed := s.config.Keys.Seal(s.purpose, rec.bytes())
	if n := len(s.config.Cookie) + 1 + len(sealed); n > maxCookie {
		return fmt.Errorf("%w: %d bytes as a cookie, limit %d", ErrSessionTooLarge, n, maxCookie)
	}
	state.record, state.cookie, state.clear = rec, sealed, false
	return nil
}

// updateCookie changes a session that is stored in the cookie, and sets its beginning to began.
func (s *Sessions[T]) updateCookie(state *sessionState[T], began time.Time, change func(*T) error) error {
	data, _, err := s.changed(state, change)
	if err != nil {
		return err
	}
	fresh := *state
	fresh.data, fresh.record.began = data, began
	if err := s.seal(&fresh); err != nil {
		return err
	}
	*state = fresh
	return nil
}
