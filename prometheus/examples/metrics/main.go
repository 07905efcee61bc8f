// Command metrics exports metrics to Prometheus on an inner address.
//
//	go run ./examples/metrics    (in the folder prometheus)
//	curl 127.0.0.1:9090/metrics
package main

import (
	"context"
	"log"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/prometheus"
)

const innerAddr = "127.0.0.1:9090"

func main() {
	if err := newApp(dunlin.Config{Addr: "127.0.0.1:3000"}).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func newApp(config dunlin.Config) *dunlin.App {
	app := dunlin.New(config)
	app.Get("/users/{id}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text("user " + r.Param("id") + "\n") })
	app.Inner(innerAddr).Get("/metrics", prometheus.Handler(app)).Critical()
	return app
}
