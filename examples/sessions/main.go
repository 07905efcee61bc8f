// Command sessions counts the visits of each browser in a session.
//
//	go run ./examples/sessions
//	curl -c jar -b jar 127.0.0.1:3000/    (several times)
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
)

// A visitor is the content of a session.
type visitor struct{ Visits int }

func main() {
	if err := newApp(dunlin.Config{Addr: "127.0.0.1:3000"}).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func newApp(config dunlin.Config) *dunlin.App {
	sessions := middleware.NewSessions[visitor](middleware.SessionConfig{
		Store:    store.NewMemory(store.MemoryConfig{}),
		Insecure: true, // this example has no TLS; without Insecure, browsers send the cookie only over TLS
	})
	app := dunlin.New(config)
	app.Use(sessions.Middleware())
	app.Get("/", dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) {
		var visits int
		err := sessions.Update(r, func(v *visitor) error { // runs again if another request changes the session meanwhile
			v.Visits++
			visits = v.Visits
			return nil
		})
		return dunlin.Text(fmt.Sprintf("visit %d\n", visits)), err
	}))
	app.Post("/end", dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) {
		return dunlin.NoContent(), sessions.End(r)
	}))
	return app
}
