//go:build ignore

// Command celeris is the reference service on celeris, in clear text. It is built in a module of its own, from a checkout
// that COMPARE_CELERIS names.
package main

import (
	"flag"
	"log"
	"net"

	"github.com/goceleris/celeris"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:3000", "address to listen on")
	flag.Parse()
	s := celeris.New(celeris.Config{Addr: *addr, Protocol: celeris.Auto})
	text := func(body string) celeris.HandlerFunc {
		return func(c *celeris.Context) error { return c.String(200, body) }
	}
	s.GET("/plaintext", text("Hello, World!"))
	s.GET("/healthz", text("ok"))
	s.GET("/json", func(c *celeris.Context) error {
		return c.JSON(200, struct {
			Message string `json:"message"`
		}{"Hello, World!"})
	})
	s.GET("/users/:id", func(c *celeris.Context) error { return c.String(200, c.Param("id")) })
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(s.StartWithListener(ln))
}
