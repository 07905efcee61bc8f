// Command fiberstages serves the stages of the blog post (see package stage) with fiber, as the
// post did.
package main

import (
	"context"
	"log"
	"runtime"

	"github.com/gofiber/fiber/v3"
	"golang.org/x/sync/semaphore"

	"github.com/dunlinhttp/dunlin/bench/peers/service"
	"github.com/dunlinhttp/dunlin/bench/peers/stages/stage"
)

func main() {
	name := stage.Flag()
	ln := service.Listen("fiber")
	stage.CountGoroutines()

	ctx := context.Background()
	sem := semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0)))
	// Each stage has its own function, because otherwise the array would be in the stack frame of
	// all stages.
	users := map[stage.Name]fiber.Handler{
		stage.Array: func(c fiber.Ctx) error {
			return c.JSON(stage.UsersArray())
		},
		stage.Slice: func(c fiber.Ctx) error {
			return c.JSON(stage.UsersSlice())
		},
		stage.Semaphore: func(c fiber.Ctx) error {
			if err := sem.Acquire(ctx, 1); err != nil {
				return err
			}
			defer sem.Release(1)
			return c.JSON(stage.UsersSlice())
		},
	}
	app := fiber.New()
	app.Get("/healthz", func(c fiber.Ctx) error { return c.SendString("ok") })
	app.Get("/api/v1/users", users[*name])
	log.Fatal(app.Listener(ln, fiber.ListenConfig{DisableStartupMessage: true}))
}
