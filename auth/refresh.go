package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/dunlinhttp/dunlin"
)

// Refresh returns an identity with a valid access token. While the token of the identity old is valid, the result is old.
// Later it is the result of a refresh (RFC 6749 section 6, OpenID Connect Core 1.0 section 12). Most providers issue a
// refresh token if LoginConfig.Scopes has offline_access. The caller must store the result in place of old, usually in the
// session, because a provider may accept a refresh token only once. Refresh reads the fields Issuer, Subject and Token of
// old. It is safe for concurrent use.
//
// Of concurrent calls with the same refresh token, one calls the provider, within LoginConfig.Timeout, and all return its
// result. Calls up to 30 seconds later with the old token, from a session that was read before the refresh, also return it.
// This holds within one process. If several processes may refresh a session at the same moment, the provider must accept the
// old token several times. At most 1024 refresh tokens are in use or remembered at once.
//
// An error is a problem for the client: 401 if the user must log in again, 503 if the provider does not answer.
func (l *Login[T]) Refresh(ctx context.Context, old *Identity) (*Identity, error) {
	switch {
	case old == nil || old.Token == nil || old.Subject == "" || old.Issuer != l.config.Issuer:
		return nil, &dunlin.ProblemDetails{Status: http.StatusUnauthorized, Detail: "sign in first", Cause: errors.New("auth: Refresh: no identity of this provider with a token")}
	case old.Token.Valid():
		return old, nil
	case old.Token.RefreshToken == "" || len(old.Token.RefreshToken) > longestToken:
		return nil, loginAgain(errors.New("auth: Refresh: the token has no refresh token, or one that is too long"))
	}
	fresh, remembered, err := l.refreshes.get(ctx, old, func() (*Identity, error) {
		ctx, cancel := context.WithTimeout(oidc.ClientContext(context.Background(), l.provider.client), l.config.Timeout)
		defer cancel()
		return l.refresh(ctx, old)
	})
	if err == nil && remembered && !fresh.Token.Valid() {
		return l.Refresh(ctx, fresh) // with the new refresh token
	}
	return fresh, err
}

// refresh calls the provider.
func (l *Login[T]) refresh(ctx context.Context, who *Identity) (*Identity, error) {
	p, err := l.provider.get(ctx)
	if err != nil {
		return nil, notNow(err)
	}
	// The argument has no access token, since TokenSource would return a valid one unchanged.
	token, err := p.oauth.TokenSource(ctx, &oauth2.Token{RefreshToken: who.Token.RefreshToken}).Token()
	if err != nil {
		if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.ErrorCode == "invalid_grant" {
			return nil, loginAgain(err)
		}
		if err = exchangeError(err); errors.Is(err, errUnreachable) {
			return nil, notNow(err)
		}
		return nil, err
	}
	fresh := &Identity{Issuer: who.Issuer, Subject: who.Subject, IDToken: who.IDToken, Token: token, id: who.id}
	if token.Extra("id_token") == nil {
		return fresh, nil // the ID token is optional
	}
	named, err := p.identity(ctx, token, l.config.ClientID, "")
	switch {
	case errors.Is(err, errUnreachable):
		return fresh, nil // the provider's keys are unavailable; the result is returned, since the old refresh token may now be invalid
	case err == nil && named.Subject != who.Subject:
		err = fmt.Errorf("auth: the refreshed ID token has another subject")
	}
	if err != nil {
		return nil, &dunlin.ProblemDetails{Status: http.StatusBadGateway, Detail: "the provider's answer about the login is invalid", Cause: err}
	}
	return named, nil
}

func loginAgain(cause error) error {
	return &dunlin.ProblemDetails{Status: http.StatusUnauthorized, Detail: "the login has ended: log in again", Cause: cause}
}

func notNow(cause error) error {
	return &dunlin.ProblemDetails{Status: http.StatusServiceUnavailable, Detail: "the login cannot be renewed at the moment: the provider does not answer", Cause: cause, Temporary: true}
}

const (
	maxRefreshes = 1024
	// refreshedFor is the time for which the result of a refresh is remembered.
	refreshedFor = 30 * time.Second
)

// refreshes has the refreshes in progress and those that have recently succeeded, by a hash of subject
// and refresh token.
type refreshes struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]*refreshed
}

type refreshed struct {
	done chan struct{}
	who  *Identity
	err  error
}

// get returns the result of ask. ask runs once for all concurrent calls with the same subject and
// refresh token. remembered reports that an earlier call has obtained the result.
func (s *refreshes) get(ctx context.Context, who *Identity, ask func() (*Identity, error)) (fresh *Identity, remembered bool, err error) {
	key := sha256.Sum256([]byte(who.Subject + "\x00" + who.Token.RefreshToken))
	s.mu.Lock()
	f := s.known[key]
	if remembered = f.isDone(); remembered && !f.who.Token.Valid() && f.who.Token.RefreshToken == who.Token.RefreshToken {
		f, remembered = nil, false // the provider has not changed the refresh token, so it can be used again
	}
	if f == nil {
		if len(s.known) >= maxRefreshes && !s.dropOne() {
			s.mu.Unlock()
			return nil, false, notNow(errors.New("auth: Refresh: too many concurrent calls"))
		}
		if s.known == nil {
			s.known = map[[sha256.Size]byte]*refreshed{}
		}
		f = &refreshed{done: make(chan struct{})}
		s.known[key] = f
		go s.run(key, f, ask)
	}
	s.mu.Unlock()
	select {
	case <-f.done:
		return f.who, remembered, f.err
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
}

// isDone reports whether the refresh has succeeded.
func (f *refreshed) isDone() bool {
	if f == nil {
		return false
	}
	select {
	case <-f.done:
		return f.err == nil
	default:
		return false
	}
}

// dropOne removes one refresh that has succeeded. It reports false if there is none. s.mu must be held.
func (s *refreshes) dropOne() bool {
	for key, f := range s.known {
		if f.isDone() {
			delete(s.known, key)
			return true
		}
	}
	return false
}

func (s *refreshes) run(key [sha256.Size]byte, f *refreshed, ask func() (*Identity, error)) {
	f.who, f.err = ask()
	if f.err != nil {
		s.forget(key, f) // the next call retries
	} else {
		time.AfterFunc(refreshedFor, func() { s.forget(key, f) })
	}
	close(f.done)
}

// forget removes f, unless another call has replaced it.
func (s *refreshes) forget(key [sha256.Size]byte, f *refreshed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[key] == f {
		delete(s.known, key)
	}
}
