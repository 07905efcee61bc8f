package main

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

// A visit is the content of a session.
type visit struct {
	User int64 `json:"user"`
}

// Login is a name with a password.
type Login struct {
	Body struct {
		Name     string `json:"name" minLength:"1" maxLength:"50" format:"line" example:"ada"`
		Password string `json:"password" minLength:"12" maxLength:"200"`
	}
}

var (
	nameTaken  = typed.NewFault(409, "name-taken", "Another user has this name")
	wrongLogin = typed.NewFault(401, "wrong-login", "The name or the password is wrong")
)

func (s *service) register(r *dunlin.Request, in Login) (typed.None, error) {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	hash, err := s.hash(in.Body.Password, salt)
	if err != nil {
		return typed.None{}, err
	}
	tag, err := s.db.Exec(r.Context(), `insert into users (name, password, salt) values ($1, $2, $3) on conflict do nothing`,
		in.Body.Name, hash, salt)
	if err == nil && tag.RowsAffected() == 0 {
		err = nameTaken
	}
	return typed.None{}, err
}

func (s *service) logIn(r *dunlin.Request, in Login) (typed.None, error) {
	// The password is hashed for an unknown name, too, so that the response takes as long as for a known name.
	id, want, salt := int64(0), make([]byte, sha256.Size), make([]byte, 16)
	err := s.db.QueryRow(r.Context(), `select id, password, salt from users where name = $1`, in.Body.Name).Scan(&id, &want, &salt)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return typed.None{}, err
	}
	hash, err := s.hash(in.Body.Password, salt)
	if err != nil {
		return typed.None{}, err
	}
	if subtle.ConstantTimeCompare(hash, want) == 0 || id == 0 {
		return typed.None{}, wrongLogin
	}
	return typed.None{}, s.sessions.Login(r, func(v *visit) error { v.User = id; return nil })
}

func (s *service) logOut(r *dunlin.Request, _ struct{}) (typed.None, error) {
	return typed.None{}, s.sessions.End(r)
}

func (s *service) hash(password string, salt []byte) ([]byte, error) {
	return pbkdf2.Key(sha256.New, password, salt, s.rounds, sha256.Size)
}

var userKey = dunlin.NewKey[int64]("user")

// onlyUsers answers 401 to clients that have not signed in.
func (s *service) onlyUsers(next dunlin.Action) dunlin.Action {
	return func(r *dunlin.Request) dunlin.Response {
		v, ok, err := s.sessions.Get(r)
		switch {
		case err != nil:
			return dunlin.Error(err) // 503 while the store is unavailable
		case !ok || v.User == 0:
			return dunlin.Error(typed.Unauthorized)
		}
		userKey.Set(r, v.User)
		return next(r)
	}
}

// user returns the number of the user. It needs the middleware onlyUsers.
func user(r *dunlin.Request) int64 {
	id, _ := userKey.Get(r)
	return id
}
