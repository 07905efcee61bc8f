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

// SessionConfig says where sessions are kept and for how long. The zero value of a field stands for
// its default; Store or Keys must be given.
type SessionConfig struct {
	// Store keeps the sessions; the client gets a random name. Without a Store the client keeps the whole
	// session, encrypted by Keys. That needs no storage, but if several requests change a session at the same
	// time, the last answer wins; a stolen cookie is valid until it expires; and browsers take 4 KB at most.
	Store store.Store
	Keys  *KeyRing

	// Idle ends a session that has not been looked at for so long, and Absolute any session so long after it
	// has begun or was renewed. Defaults: 30 minutes and 12 hours.
	Idle, Absolute time.Duration

	// Cookie is the cookie's name. Default: __Host-session, by whose prefix browsers see to it that no other host
	// has set it, or session if Insecure.
	Cookie string

	// SameSite is the cookie's attribute. Default: http.SameSiteLaxMode.
	SameSite http.SameSite

	// Persistent has browsers keep the cookie when they are closed.
	Persistent bool

	// Insecure lets the cookie travel without TLS: for development.
	Insecure bool

	// MaxBytes bounds what a session may be as JSON. Default: 64 KiB, and what fits in a cookie without a Store.
	MaxBytes int
}

// Sessions keeps a value of type T for each client that has been given one, as JSON:
//
//	type visit struct{ UserID int64; Cart []string }
//
//	sessions := middleware.NewSessions[visit](middleware.SessionConfig{Store: st})
//	app.Use(sessions.Middleware())
//
// A session begins with the first Update or Login. What an action does not ask for is not read. All methods must be
// called by the action, or by what stands behind the middleware; a Sessions is safe for any
// number of requests at once.
//
// In a store an update is a compare-and-set: requests that change the same session at the same time lose none of
// their changes, and none waits for another's. Names of sessions are 256 random bits, of which the
// store knows a hash; a name that the client has made up is never taken over.
type Sessions[T any] struct {
	config  SessionConfig
	key     *dunlin.Key[*sessionState[T]]
	purpose string

	// The states of requests that have not asked for their session, or did so too late.
	unread, closed sessionState[T]
}

// ErrSessionEnded says that another request has ended or renamed the session meanwhile. It is a problem with status 409.
var ErrSessionEnded error = &dunlin.ProblemDetails{Status: http.StatusConflict, Detail: "the session has ended"}

// Other errors of sessions. Those of a store that does not answer are problems with status 503.
var (
	ErrSessionTooLarge = errors.New("middleware: the session is larger than it may be")
	ErrSessionTooLate  = errors.New("middleware: the session's cookie can change no more: the answer has begun, or the middleware is missing")
)

// errUnreadable is that what was kept is no JSON of a T, as after a change of T.
var errUnreadable = errors.New("middleware: a session that was kept cannot be read")

// sessionState is what a request knows of its session.
type sessionState[T any] struct {
	open   bool // the answer can still be given a cookie
	loaded bool
	there  bool
	moved  bool   // a login has given the session another name
	cookie string // to be set; "" for none
	clear  bool   // the cookie is to be removed

	id      string // in the client's cookie
	version store.Version
	record  sessionRecord
	data    T
}

// NewSessions returns sessions that are kept as c says. It panics when a setting is not valid.
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
		return errors.New("SessionConfig.Store and Keys are nil: sessions are kept in one, or sealed by the other")
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

// Middleware returns the middleware that gives answers their cookies. An answer for which
// the session counted says Vary: Cookie and, unless the action has set it, Cache-Control: private. One that sets or
// removes the cookie says private, or no-store if the action has, whatever else the action has set.
func (s *Sessions[T]) Middleware() dunlin.Middleware {
	return func(next dunlin.Action) dunlin.Action {
		return func(r *dunlin.Request) dunlin.Response {
			if _, again := s.key.Get(r); again {
				return next(r) // registered twice: the outer one answers
			}
			s.key.Set(r, &s.unread)
			resp := next(r)
			state, _ := s.key.Get(r)
			if state == &s.unread {
				s.key.Set(r, &s.closed) // a stream may still ask
				return resp
			}
			return s.finish(state, resp)
		}
	}
}

// finish gives an answer the cookie that the session needs.
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

// state returns what the request knows of its session, which is read if need be.
func (s *Sessions[T]) state(r *dunlin.Request) (*sessionState[T], error) {
	state, ok := s.key.Get(r)
	if !ok || state == &s.closed {
		return nil, ErrSessionTooLate
	}
	if state == &s.unread {
		state = &sessionState[T]{open: true}
		s.key.Set(r, state)
		inside.Credentials(r, exchange.Identified, false) // also where the session begins with this request
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

// Get returns the session's value, which must not be changed but by Update. It reports false when the client has
// none: no cookie, one that was forged, or a session that has ended.
func (s *Sessions[T]) Get(r *dunlin.Request) (value T, ok bool, err error) {
	state, err := s.state(r)
	if err != nil || !state.there {
		return value, false, err
	}
	return state.data, true, nil
}

// Update changes the session's value, and begins a session when there is none, with the zero T. It returns [ErrSessionEnded]
// for the cookie of a session that a Login has renamed in the last 20 seconds.
// change may be called several times, each time with the latest value, and should do nothing else; an error of it ends
// Update, which returns it.
func (s *Sessions[T]) Update(r *dunlin.Request, change func(*T) error) error {
	state, err := s.state(r)
	switch {
	case err != nil:
		return err
	case state.moved: // a new session would replace that of the login in the browser
		return ErrSessionEnded
	case !state.there:
		return s.begin(r, state, change)
	case s.config.Store == nil:
		return s.updateCookie(state, state.record.began, change)
	}
	return s.updateStored(r, state, change)
}

// Login is Update that also gives the session a new name and starts its times anew. Call it where a client
// logs in, or gets more rights than before: the old name is no longer valid, so nobody who planted or saw it
// is logged in, too (session fixation).
//
// Where what was kept is no JSON of a T any more, the session begins with the zero T.
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

// End ends the session: its value is forgotten, the client is told to drop the cookie.
func (s *Sessions[T]) End(r *dunlin.Request) error {
	state, err := s.state(r)
	if err != nil && !errors.Is(err, errUnreadable) {
		return err
	}
	if !state.open {
		return ErrSessionTooLate
	}
	if state.id != "" && !state.moved && s.config.Store != nil { // also if it is not there: an end before may have been unconfirmed
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

// encode returns the value as JSON, if it is not too large.
func (s *Sessions[T]) encode(data *T) ([]byte, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("middleware: a session as JSON: %w", err)
	}
	if len(text) > s.config.MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes of JSON, of %d", ErrSessionTooLarge, len(text), s.config.MaxBytes)
	}
	return text, nil
}

// unavailable is the problem of a store that did not do what it was asked.
func unavailable(err error) error {
	return &dunlin.ProblemDetails{Status: http.StatusServiceUnavailable, Detail: "sessions are not available at the moment", Cause: err, Temporary: true}
}
