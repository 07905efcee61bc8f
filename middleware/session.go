package middleware

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/httpcache"
	"github.com/dunlinhttp/dunlin/store"
)

// SessionConfig has the settings of [Sessions]. Store or Keys must be set. Any other zero field selects
// its documented default.
type SessionConfig struct {
	// Store stores the sessions, and the cookie contains a random name. Without a Store the cookie
	// contains the whole session, encrypted by Keys. Then the server stores nothing. But of concurrent
	// responses the last one replaces the changes of the others, a stolen cookie is valid until it
	// expires, and browsers accept at most 4096 bytes.
	Store store.Store
	Keys  *KeyRing

	// Idle is the lifetime of a session after its last use by a request. Absolute is its lifetime from
	// its beginning or its last Login. Defaults: 30 minutes and 12 hours.
	Idle, Absolute time.Duration

	// Cookie is the cookie's name. With the prefix __Host-, browsers accept the cookie only from this
	// host. Default: __Host-session, or session if Insecure is set.
	Cookie string

	// SameSite is the cookie's attribute. Default: http.SameSiteLaxMode.
	SameSite http.SameSite

	// Persistent makes browsers keep the cookie when they are closed. Default: browsers delete it.
	Persistent bool

	// Insecure allows the cookie without TLS, for development.
	Insecure bool

	// MaxBytes limits a session, in bytes of its JSON. Without a Store the size of a cookie is a further
	// limit. Default: 64 KiB.
	MaxBytes int
}

// Sessions stores a value of type T for each client, as JSON:
//
//	type visit struct{ UserID int64; Cart []string }
//
//	sessions := middleware.NewSessions[visit](middleware.SessionConfig{Store: st})
//	app.Use(sessions.Middleware())
//
// A session begins with the first Update or Login. If no method is called for a request, its session is
// not read. The methods must be called by the action, or by middleware inside of Middleware. A Sessions
// is safe for concurrent use.
//
// With a Store an update is a compare-and-set: concurrent changes of a session are never lost, and
// no lock is held. Names of sessions have 256 random bits. The store has only the hash of a name. A
// session never has a name that a client has chosen.
type Sessions[T any] struct {
	config  SessionConfig
	key     *dunlin.Key[*sessionState[T]]
	purpose string

	// unread is the state of requests that have not read their session yet. closed is the state of requests that did not
	// read their session before the response was returned.
	unread, closed sessionState[T]
}

// ErrSessionEnded reports that another request has ended or renamed the session. It is a problem
// with status 409.
var ErrSessionEnded error = &dunlin.ProblemDetails{Status: http.StatusConflict, Detail: "the session has ended"}

// Other errors of sessions. Errors of an unavailable store are problems with status 503.
var (
	ErrSessionTooLarge = errors.New("middleware: session is larger than the limit")
	ErrSessionTooLate  = errors.New("middleware: set session cookie: the response has begun, or the middleware is missing")
)

// errUnreadable reports a stored session that does not decode as T, for example after a change of
// T.
var errUnreadable = errors.New("middleware: decode stored session")

// sessionState is the session of a request.
type sessionState[T any] struct {
	open   bool // the response can still set the cookie
	loaded bool
	there  bool
	moved  bool   // a login has renamed the session
	cookie string // value to set; "" for none
	clear  bool   // remove the cookie

	id      string // as in the client's cookie
	version store.Version
	record  sessionRecord
	data    T
}

// NewSessions returns sessions with the given settings. It panics for an invalid setting.
func NewSessions[T any](c SessionConfig) *Sessions[T] {
	if c.Idle == 0 {
		c.Idle = 30 * time.Minute
	}
	if c.Absolute == 0 {
		c.Absolute = 12 * time.Hour
	}
	if c.Cookie == "" {
		c.Cookie = "__Host-session"
		if c.Insecure {
			c.Cookie = "session"
		}
	}
	if c.SameSite == 0 {
		c.SameSite = http.SameSiteLaxMode
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 64 << 10
	}
	if err := c.validate(); err != nil {
		panic("middleware: " + err.Error())
	}
	return &Sessions[T]{config: c, key: dunlin.NewKey[*sessionState[T]]("session"), purpose: "session " + c.Cookie}
}

func (c *SessionConfig) validate() error {
	switch {
	case c.Store == nil && c.Keys == nil:
		return errors.New("SessionConfig.Store and Keys are nil: set Store for sessions on the server, or Keys for sessions in sealed cookies")
	case c.Idle < 0 || c.Absolute < 0:
		return fmt.Errorf("SessionConfig.Idle and Absolute (%v, %v) must not be negative", c.Idle, c.Absolute)
	case c.MaxBytes < 0:
		return fmt.Errorf("SessionConfig.MaxBytes is %d: it must not be negative", c.MaxBytes)
	case c.Insecure && (strings.HasPrefix(c.Cookie, "__Host-") || strings.HasPrefix(c.Cookie, "__Secure-")):
		return fmt.Errorf("SessionConfig.Cookie is %q: browsers refuse such a cookie without TLS", c.Cookie)
	case c.SameSite == http.SameSiteNoneMode && c.Insecure:
		return errors.New("SessionConfig.SameSite is None: browsers refuse such a cookie without TLS")
	}
	if err := (&http.Cookie{Name: c.Cookie, Value: "v"}).Valid(); err != nil {
		return fmt.Errorf("SessionConfig.Cookie: %w", err)
	}
	return nil
}

// Middleware returns the middleware that sets the cookies. A response to a request that used its
// session gets Vary: Cookie and, unless the action has set Cache-Control, Cache-Control: private. A
// response that sets or removes the cookie always has Cache-Control: private, or no-store if the action
// has set no-store.
func (s *Sessions[T]) Middleware() dunlin.Middleware {
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			if _, again := s.key.Get(r); again {
				return next(r) // the middleware is registered twice: the outer one sets the cookie
			}
			s.key.Set(r, &s.unread)
			resp := next(r)
			state, _ := s.key.Get(r)
			if state == &s.unread {
				s.key.Set(r, &s.closed) // a stream may still call a method
				return resp
			}
			return s.finish(state, resp)
		}
	}
}

// finish adds the session's cookie and cache headers to a response.
func (s *Sessions[T]) finish(state *sessionState[T], resp dunlin.Response) dunlin.Response {
	state.open = false
	if !slices.ContainsFunc(resp.Values("Vary"), func(v string) bool { return v == "*" || strings.Contains(strings.ToLower(v), "cookie") }) {
		resp = resp.AddHeader("Vary", "Cookie")
	}
	if control := strings.Join(resp.Values("Cache-Control"), ", "); control == "" || (state.clear || state.cookie != "") && !ofOneClient(control) {
		resp = resp.Header("Cache-Control", "private")
	}
	switch {
	case state.clear:
		return resp.Cookie(s.newCookie("", -1))
	case state.cookie != "":
		age := 0
		if s.config.Persistent {
			age = max(int(time.Until(state.record.began.Add(s.config.Absolute))/time.Second), 1)
		}
		return resp.Cookie(s.newCookie(state.cookie, age))
	}
	return resp
}

// ofOneClient reports whether a Cache-Control field keeps a response out of shared caches.
func ofOneClient(control string) bool {
	d := httpcache.ParseDirectives(control)
	return d.Private || d.NoStore && !d.MustUnderstand
}

func (s *Sessions[T]) newCookie(value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: s.config.Cookie, Value: value, Path: "/", MaxAge: age,
		Secure: !s.config.Insecure, HttpOnly: true, SameSite: s.config.SameSite,
	}
}

// state returns the session state of a request. It reads the session on the first call.
func (s *Sessions[T]) state(r *dunlin.Request) (*sessionState[T], error) {
	state, ok := s.key.Get(r)
	if !ok || state == &s.closed {
		return nil, ErrSessionTooLate
	}
	if state == &s.unread {
		state = &sessionState[T]{open: true}
		s.key.Set(r, state)
		inside.Credentials(r, exchange.Identified, false) // also if the session begins with this request
	}
	if state.loaded {
		return state, nil
	}
	var err error
	if s.config.Store == nil {
		err = s.loadCookie(r, state)
	} else {
		err = s.loadStored(r, state)
	}
	state.loaded = err == nil
	return state, err
}

// Get returns the session's value, which only Update and Login may change. ok is false if the client
// has no session: no cookie, a forged cookie, or an expired session. The session is read once for each
// request: in a stream, Get does not see that another request has ended the session.
func (s *Sessions[T]) Get(r *dunlin.Request) (value T, ok bool, err error) {
	state, err := s.state(r)
	if err != nil || !state.there {
		return value, false, err
	}
	return state.data, true, nil
}

// Update changes the session's value. If the client has no session, Update begins a session with the
// zero T. If Login has renamed the session in the last 20 seconds, and the request has the old cookie,
// it returns [ErrSessionEnded]. change may be called several times, each time with the latest value, and
// must have no other effect. Update returns the error of change.
func (s *Sessions[T]) Update(r *dunlin.Request, change func(*T) error) error {
	state, err := s.state(r)
	switch {
	case err != nil:
		return err
	case state.moved: // the cookie of a new session would replace the cookie of the login
		return ErrSessionEnded
	case !state.there:
		return s.begin(r, state, change)
	case s.config.Store == nil:
		return s.updateCookie(state, state.record.began, change)
	}
	return s.updateStored(r, state, change)
}

// Login is like Update, and also gives the session a new name and a new beginning. Call it when a client
// signs in or gains privileges. The old name becomes invalid, so that a cookie that an attacker has
// planted or stolen before is useless (session fixation).
//
// If the stored session does not decode as T, the session begins with the zero T.
func (s *Sessions[T]) Login(r *dunlin.Request, change func(*T) error) error {
	state, err := s.state(r)
	if errors.Is(err, errUnreadable) {
		err = s.End(r)
	}
	switch {
	case err != nil:
		return err
	case !state.there:
		return s.begin(r, state, change)
	case s.config.Store == nil:
		return s.updateCookie(state, time.Now(), change)
	}
	return s.rename(r, state, change)
}

// End deletes the session, and removes the cookie.
func (s *Sessions[T]) End(r *dunlin.Request) error {
	state, err := s.state(r)
	if err != nil && !errors.Is(err, errUnreadable) {
		return err
	}
	if !state.open {
		return ErrSessionTooLate
	}
	if state.id != "" && !state.moved && s.config.Store != nil { // also without a stored value, because the result of an earlier End may be unknown
		if err := s.config.Store.Expire(r.Context(), s.storeKey(state.id), 0); err != nil && !errors.Is(err, store.ErrNotFound) {
			return unavailable(err)
		}
	}
	var none T
	state.loaded, state.there, state.moved, state.data, state.cookie, state.id = true, false, false, none, "", ""
	state.clear = r.Cookie(s.config.Cookie) != ""
	return nil
}

// begin makes a new session.
func (s *Sessions[T]) begin(r *dunlin.Request, state *sessionState[T], change func(*T) error) error {
	if !state.open {
		return ErrSessionTooLate
	}
	var data T
	if err := change(&data); err != nil {
		return err
	}
	fresh := *state
	fresh.record, fresh.data, fresh.clear = sessionRecord{began: time.Now()}, data, false
	var err error
	if s.config.Store == nil {
		err = s.seal(&fresh)
	} else {
		err = s.create(r, &fresh)
	}
	if err != nil {
		return err
	}
	fresh.there = true
	*state = fresh
	return nil
}

// encode returns the value as JSON, or an error if it is too large.
func (s *Sessions[T]) encode(data *T) ([]byte, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("middleware: encode session as JSON: %w", err)
	}
	if len(text) > s.config.MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes of JSON, limit %d", ErrSessionTooLarge, len(text), s.config.MaxBytes)
	}
	return text, nil
}

// unavailable returns the problem for a failed call of the store.
func unavailable(err error) error {
	return &dunlin.ProblemDetails{Status: http.StatusServiceUnavailable, Detail: "sessions are temporarily unavailable", Cause: err, Temporary: true}
}
