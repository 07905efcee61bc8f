// Command inner serves statistics and profiles on an inner address, so that the public address does not serve them.
//
//	go run ./examples/inner
//	curl 127.0.0.1:9090/stats
//	go tool pprof http://127.0.0.1:9090/debug/pprof/heap
package main

import (
	"context"
	"log"
	"net/http"
	"net/http/pprof"

	"github.com/dunlinhttp/dunlin"
)

const innerAddr = "127.0.0.1:9090"

func main() {
	if err := newApp(dunlin.Config{Addr: "127.0.0.1:3000"}).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func newApp(config dunlin.Config) *dunlin.App {
	app := dunlin.New(config)
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello\n") })

	// Run serves both addresses. Both drain together, and a restart by SIGHUP hands over both listeners.
	inner := app.Inner(innerAddr)
	inner.Get("/stats", func(*dunlin.Request) dunlin.Response { return dunlin.JSON(app.Stats()) })
	inner.Get("/ready", app.Readiness()).Critical()
	inner.Mount("/debug/pprof", profiles())
	return app
}

// profiles serves net/http/pprof by its own mux, because any package may add routes to http.DefaultServeMux.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
