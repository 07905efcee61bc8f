// Command jwt issues JSON Web Tokens at a login and checks them on other routes.
//
//	go run ./examples/jwt    (in the folder auth)
//	TOKEN=$(curl -s -d name=ada -d password=engine 127.0.0.1:3000/login)
//	curl -H "Authorization: Bearer $TOKEN" 127.0.0.1:3000/me
package main

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"log"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/auth"
)

const issuer, audience, keyName = "https://shop.example.com", "shop", "2026"

func main() {
	_, private, err := ed25519.GenerateKey(rand.Reader) // a real service reads its key from a file, so that tokens stay valid after a restart
	if err != nil {
		log.Fatal(err)
	}
	if err := newApp(dunlin.Config{Addr: "127.0.0.1:3000"}, private).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func newApp(config dunlin.Config, private ed25519.PrivateKey) *dunlin.App {
	tokens := auth.NewTokens(auth.Config{
		Issuer: issuer, Audience: audience, Keys: map[string]crypto.PublicKey{keyName: private.Public()},
	})
	app := dunlin.New(config)
	app.Post("/login", dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) {
		form, err := r.Form()
		if err != nil {
			return dunlin.Response{}, err
		}
		if form.Get("name") != "ada" || form.Get("password") != "engine" { // a real service compares a slow hash, see docs/guide/login.go
			return dunlin.Problem(&dunlin.ProblemDetails{Status: 401, Detail: "the name or the password is wrong"}), nil
		}
		token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
			"iss": issuer, "aud": audience, "sub": form.Get("name"), "iat": time.Now().Unix(), "exp": time.Now().Add(15 * time.Minute).Unix(),
		})
		token.Header["kid"] = keyName
		text, err := token.SignedString(private)
		return dunlin.Text(text), err
	}))
	app.Get("/me", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(tokens.Claims(r).Subject) }, tokens.Middleware())
	return app
}
