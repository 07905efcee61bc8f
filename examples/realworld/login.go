package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/crypto/bcrypt"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

const tokenLife = 30 * 24 * time.Hour

// sign makes the token of a user.
func (c *conduit) sign(user int64) (string, error) {
	return jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		Subject: strconv.FormatInt(user, 10), ExpiresAt: jwt.NewNumericDate(time.Now().Add(tokenLife)),
	}).SignedString(c.secret)
}

// login lets requests pass that have a valid token of a user: Authorization: Token ...
func (c *conduit) login() dunlin.Middleware {
	return middleware.KeyAuth(middleware.KeyAuthConfig{Scheme: "Token", Check: func(_ *dunlin.Request, token string) (user string, ok bool) {
		var claims jwt.RegisteredClaims
		_, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return c.secret, nil },
			jwt.WithValidMethods([]string{"HS256"}), jwt.WithExpirationRequired())
		return claims.Subject, err == nil
	}})
}

// optional also lets requests without an Authorization field pass.
func optional(login dunlin.Middleware) dunlin.Middleware {
	return func(next dunlin.Action) dunlin.Action {
		withLogin := login(next)
		return func(r *dunlin.Request) dunlin.Response {
			if r.Header("Authorization") == "" {
				return next(r)
			}
			return withLogin(r)
		}
	}
}

// userOf returns the ID of the current user, or 0 without login.
func userOf(r *dunlin.Request) int64 {
	id, _ := strconv.ParseInt(middleware.User(r), 10, 64)
	return id
}

func hash(password string) (string, error) {
	hashed, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if errors.Is(err, bcrypt.ErrPasswordTooLong) { // bcrypt counts bytes, but maxLength counts characters
		return "", longPassword
	}
	return string(hashed), err
}

// noPassword is the hash to compare with if the user does not exist, so that the time of a refusal does not reveal this.
const noPassword = "$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy"

func matches(hashed, password string) bool {
	return bcrypt.CompareHashAndPassword([]byte(hashed), []byte(password)) == nil
}
