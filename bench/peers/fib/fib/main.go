// Command fib is the reference service on fib and its router.
package main

import (
	"flag"
	"net/http"

	fibhttp "github.com/lesismal/fib/http"

	fibpeer "github.com/dunlinhttp/dunlin/bench/peers/fib"
	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

func main() {
	flag.Bool("h2c", false, "has no effect: fib always accepts HTTP/2 in clear text")
	r := fibhttp.NewRouter()
	r.Get("/plaintext", func(c *fibhttp.Context) { fibpeer.Text(c, service.Greeting) })
	r.Get("/json", func(c *fibhttp.Context) { fibpeer.JSON(c, service.Message{Message: service.Greeting}) })
	r.Get("/users/{id}", func(c *fibhttp.Context) { fibpeer.Text(c, c.Param("id")) })
	r.Get("/users/{id}/{action}", func(c *fibhttp.Context) {
		fibpeer.JSON(c, service.UserAction{ID: c.Param("id"), Action: c.Param("action")})
	})
	r.Post("/echo", func(c *fibhttp.Context) {
		_ = c.Respond(http.StatusOK, c.Request.Header.Get("Content-Type"), c.Body())
	})
	r.Get("/api/v1/users", func(c *fibhttp.Context) { fibpeer.JSON(c, service.Users()) })
	r.Get("/headers", func(c *fibhttp.Context) {
		c.Header().Set("Cache-Control", service.CacheControl)
		c.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = c.WriteString(service.Bucket)
	})
	r.Get("/sleep", func(c *fibhttp.Context) {
		service.Sleep(c.Query("ms"))
		fibpeer.Text(c, service.Greeting)
	})
	r.Get("/paths/*", func(c *fibhttp.Context) { fibpeer.Text(c, service.Greeting) })
	r.Get("/file", func(c *fibhttp.Context) {
		c.Header().Set("Content-Type", "application/octet-stream")
		c.File(service.LargeFile())
	})
	r.Get("/healthz", func(c *fibhttp.Context) { fibpeer.Text(c, "ok") })
	fibpeer.Serve("fib", service.ReadAddress(), r)
}
