// Command proxy forwards requests below /api to an upstream server. While the upstream fails, it answers 503 at once (circuit breaker).
//
//	go run ./examples/proxy -to http://127.0.0.1:4000
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"net/url"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/resilience"
)

func main() {
	to := flag.String("to", "http://127.0.0.1:4000", "`URL` of the upstream server")
	flag.Parse()
	target, err := url.Parse(*to)
	if err != nil {
		log.Fatal(err)
	}
	if err := newApp(dunlin.Config{Addr: "127.0.0.1:3000"}, target).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func newApp(config dunlin.Config, target *url.URL) *dunlin.App {
	app := dunlin.New(config)
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("answered by the proxy itself\n") })
	breaker := resilience.NewBreaker(resilience.BreakerConfig{})
	app.Handle("*", "/api/{path...}", middleware.Proxy(middleware.ProxyConfig{
		Target:    target,
		Transport: breaker.Transport(http.DefaultTransport),
	}))
	return app
}
