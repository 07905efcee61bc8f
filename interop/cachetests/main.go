// Command cachetests serves the responses of another server through Proxy and NewCache of package middleware. The tests of
// HTTP caches at https://github.com/http-tests/cache-tests use it:
//
//	npm run server &                                    # in cache-tests: the origin server, on port 8000
//	go run -C interop ./cachetests -listen 127.0.0.1:8100 -origin http://127.0.0.1:8000 &
//	npm run --silent cli --base=http://127.0.0.1:8100   # in cache-tests: prints the results as JSON
package main

import (
	"flag"
	"log"
	"log/slog"
	"net/url"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/interop/cachetests/front"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8100", "address to serve")
	origin := flag.String("origin", "http://127.0.0.1:8000", "URL of the server whose answers are kept")
	defaults := flag.Bool("defaults", false, "with the defaults of the cache, not as one sets it up in front of servers of others")
	flag.Parse()
	target, err := url.Parse(*origin)
	if err != nil {
		log.Fatal(err)
	}
	app := dunlin.New(dunlin.Config{})
	front.Register(app, target, !*defaults, slog.Default())
	log.Fatal(app.ListenAndServe(*listen))
}
