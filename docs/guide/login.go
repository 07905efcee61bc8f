package main

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"sync"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

// A visit is the value of a session.
type visit struct {
	User string `json:"user"`
}

// accounts are the users. A real service keeps them in its database.
type accounts struct {
	mu     sync.Mutex
	byName map[string]account
}

type account struct {
	salt, hash []byte
	rounds     int // of PBKDF2
}

func (a *accounts) add(name, password string, rounds int) {
	if password == "" {
		return // without a password, the user cannot log in
	}
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	hash, err := pbkdf2.Key(sha256.New, password, salt, rounds, sha256.Size)
	if err != nil {
		panic(err) // the settings are invalid
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byName == nil {
		a.byName = map[string]account{}
	}
	a.byName[name] = account{salt, hash, rounds}
}

// check reports whether a password is correct. Its time does not depend on whether the name exists.
func (a *accounts) check(name, password string) bool {
	a.mu.Lock()
	found, ok := a.byName[name]
	a.mu.Unlock()
	if !ok {
		found = account{make([]byte, 16), make([]byte, sha256.Size), 600_000}
	}
	hash, err := pbkdf2.Key(sha256.New, password, found.salt, found.rounds, sha256.Size)
	return err == nil && subtle.ConstantTimeCompare(hash, found.hash) == 1 && ok
}

func (s *service) login(r *dunlin.Request) (dunlin.Response, error) {
	form, err := r.Form()
	if err != nil {
		return dunlin.Response{}, err
	}
	name := form.Get("name")
	if !s.accounts.check(name, form.Get("password")) {
		return dunlin.Problem(&dunlin.ProblemDetails{Status: 401, Detail: "the name or the password is wrong"}), nil
	}
	err = s.sessions.Login(r, func(v *visit) error { v.User = name; return nil })
	return dunlin.Redirect("/docs"), err
}

func (s *service) logout(r *dunlin.Request) (dunlin.Response, error) {
	return dunlin.NoContent(), s.sessions.End(r)
}

var userKey = dunlin.NewKey[string]("user")

// onlyUsers answers 401 to clients that have not signed in.
func (s *service) onlyUsers(next dunlin.Action) dunlin.Action {
	return func(r *dunlin.Request) dunlin.Response {
		v, ok, err := s.sessions.Get(r)
		switch {
		case err != nil:
			return dunlin.Error(err) // 503 while the store is unavailable
		case !ok || v.User == "":
			return dunlin.Error(typed.Unauthorized)
		}
		userKey.Set(r, v.User)
		return next(r)
	}
}

// user returns the name of the user. It needs the middleware onlyUsers.
func (s *service) user(r *dunlin.Request) string {
	name, _ := userKey.Get(r)
	return name
}
