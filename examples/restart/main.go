// Command restart replaces itself without a lost request (graceful restart).
//
//	go build -o /tmp/restart ./examples/restart && /tmp/restart
//	kill -HUP PID     a new process takes over the listener, and the old process drains
//	kill -TERM PID    the process drains and ends (graceful shutdown)
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/dunlinhttp/dunlin"
)

func main() {
	err := newApp(dunlin.Config{
		Addr: "127.0.0.1:3000",
		Process: dunlin.ProcessConfig{
			DrainGrace:   5 * time.Second,  // after SIGTERM: time for the load balancer to detect that /ready answers 503
			DrainTimeout: 30 * time.Second, // time limit for running requests
		},
	}).Run(context.Background())
	if err != nil {
		log.Fatal(err) // some requests were still running
	}
}

func newApp(config dunlin.Config) *dunlin.App {
	app := dunlin.New(config)
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text(fmt.Sprintf("process %d\n", os.Getpid())) })
	app.Get("/ready", app.Readiness()).Critical()
	return app
}
