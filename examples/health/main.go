// Command health answers health checks for liveness and readiness on an inner address.
//
//	go run ./examples/health
//	curl 127.0.0.1:9090/ready
package main

import (
	"context"
	"errors"
	"log"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/health"
)

const innerAddr = "127.0.0.1:9090"

// A database is a dependency that can be unavailable.
type database struct{ down atomic.Bool }

// Ping is like sql.DB.PingContext.
func (d *database) Ping(context.Context) error {
	if d.down.Load() {
		return errors.New("connection refused")
	}
	return nil
}

func main() {
	if err := newApp(dunlin.Config{Addr: "127.0.0.1:3000"}, new(database)).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func newApp(config dunlin.Config, db *database) *dunlin.App {
	app := dunlin.New(config)
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello\n") })

	checks := health.New(app)
	// A result is reused for 5 s. A check that takes longer than 1 s fails.
	checks.AddCheck(health.Check{Name: "database", Run: db.Ping, Timeout: time.Second, Cache: 5 * time.Second})
	inner := app.Inner(innerAddr)
	inner.Get("/live", checks.Live()).Critical()   // after a failure the orchestrator restarts the process
	inner.Get("/ready", checks.Ready()).Critical() // after a failure the load balancer sends requests elsewhere
	return app
}
