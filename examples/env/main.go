// Command env reads its settings from environment variables, and reports all invalid variables together.
//
//	DUNLIN_ADDR=127.0.0.1:4000 DUNLIN_MAX_BODY=1MiB DUNLIN_DRAIN_GRACE=5s go run ./examples/env
//	DUNLIN_ADR=:4000 DUNLIN_MAX_BODY=much go run ./examples/env
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/dunlinhttp/dunlin"
)

func main() {
	config := dunlin.Config{Addr: "127.0.0.1:3000"} // the defaults of this program
	if err := dunlin.FromEnv(&config); err != nil {
		log.Fatal(err)
	}
	if err := newApp(config).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func newApp(config dunlin.Config) *dunlin.App {
	app := dunlin.New(config)
	app.Get("/", func(*dunlin.Request) dunlin.Response {
		return dunlin.Text(fmt.Sprintf("bodies of up to %d bytes\n", app.Config().Limits.MaxBody))
	})
	return app
}
