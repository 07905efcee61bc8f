// Command ratelimit allows each client address three logins a minute.
//
//	go run ./examples/ratelimit
//	curl -i -X POST 127.0.0.1:3000/login    (several times)
package main

import (
	"context"
	"log"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

func main() {
	if err := newApp(dunlin.Config{Addr: "127.0.0.1:3000"}).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func newApp(config dunlin.Config) *dunlin.App {
	app := dunlin.New(config)
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("without a limit\n") })
	// Behind a reverse proxy set Config.Proxy.Trusted; otherwise all clients share the address of the proxy.
	logins := middleware.RateLimit(middleware.RateLimitConfig{Name: "login", Limit: 3, Window: time.Minute}).Middleware()
	app.Post("/login", func(*dunlin.Request) dunlin.Response { return dunlin.Text("welcome\n") }, logins)
	return app
}
