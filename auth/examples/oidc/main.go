// Command oidc signs users in at an OpenID Connect provider, such as Keycloak, Google or Entra.
//
//	CLIENT_ID=… CLIENT_SECRET=… go run ./examples/oidc -issuer https://accounts.google.com    (in the folder auth)
//
// Register http://localhost:3000/login/callback with the provider, and open http://localhost:3000.
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"log"
	"os"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/auth"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
)

// A visit is the content of a session.
type visit struct{ User string }

func main() {
	issuer := flag.String("issuer", "https://accounts.google.com", "`URL` of the provider")
	flag.Parse()
	if err := newApp(dunlin.Config{Addr: "127.0.0.1:3000"}, *issuer).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func newApp(config dunlin.Config, issuer string) *dunlin.App {
	// Insecure allows cookies without TLS, for this example only. A service with several processes needs a shared store and a shared key.
	sessions := middleware.NewSessions[visit](middleware.SessionConfig{Store: store.NewMemory(store.MemoryConfig{}), Insecure: true})
	login := auth.NewLogin(auth.LoginConfig[visit]{
		Issuer: issuer, ClientID: os.Getenv("CLIENT_ID"), ClientSecret: os.Getenv("CLIENT_SECRET"), Insecure: true,
		Callback: "http://localhost:3000/login/callback",
		Sessions: sessions, Keys: newKeys(),
		SignIn: func(_ *dunlin.Request, v *visit, who *auth.Identity) error { v.User = who.Subject; return nil },
	})
	app := dunlin.New(config)
	app.Use(middleware.CrossOrigin(), sessions.Middleware())
	app.Get("/login", login.Begin)
	app.Get("/login/callback", login.Finish)
	app.Post("/logout", login.Logout)
	app.Get("/", dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) {
		v, _, err := sessions.Get(r)
		if err == nil && v.User == "" {
			return dunlin.Redirect("/login?to=/"), nil
		}
		return dunlin.Text("signed in as " + v.User + "\n"), err
	}))
	return app
}

// newKeys returns a key ring with one random key, which seals the cookies of logins in progress.
func newKeys() *middleware.KeyRing {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return middleware.NewKeyRing(key)
}
