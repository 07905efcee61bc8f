// Command quickstart is the example of README.md; a test keeps the two the same.
package main

import (
	"context"
	"log"

	"github.com/dunlinhttp/dunlin"
)

type user struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

func main() {
	app := dunlin.New(dunlin.Config{Addr: "127.0.0.1:3000"})
	app.Get("/users/{id:int}", func(r *dunlin.Request) dunlin.Response {
		id, err := r.Int("id")
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.JSON(user{id, "Ada"}).Header("Cache-Control", "no-store")
	})
	if err := app.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
