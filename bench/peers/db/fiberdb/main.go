// Command fiberdb serves the routes that use a database with fiber.
package main

import (
	"log"

	"github.com/gofiber/fiber/v3"

	"github.com/dunlinhttp/dunlin/bench/peers/db/data"
	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

func main() {
	ln, source := data.Listen("fiber-db")
	app := fiber.New()
	app.Get("/plaintext", func(c fiber.Ctx) error {
		return c.SendString(service.Greeting)
	})
	app.Get("/db", func(c fiber.Ctx) error {
		row, err := source.One(c.Context())
		if err != nil {
			return err
		}
		return c.JSON(row)
	})
	app.Get("/queries", func(c fiber.Ctx) error {
		rows, err := source.Many(c.Context(), data.Count(c.Query("n")))
		if err != nil {
			return err
		}
		return c.JSON(rows)
	})
	app.Get("/updates", func(c fiber.Ctx) error {
		rows, err := source.Update(c.Context(), data.Count(c.Query("n")))
		if err != nil {
			return err
		}
		return c.JSON(rows)
	})
	app.Get("/cached", func(c fiber.Ctx) error {
		return c.JSON(source.Cached(data.Count(c.Query("n"))))
	})
	app.Get("/fortunes", func(c fiber.Ctx) error {
		fortunes, err := source.Fortunes(c.Context())
		if err != nil {
			return err
		}
		c.Set(fiber.HeaderContentType, data.HTML)
		return data.Page.Execute(c.Response().BodyWriter(), fortunes)
	})
	app.Get("/wait", func(c fiber.Ctx) error {
		text, err := source.Wait(c.Query("us"))
		if err != nil {
			return err
		}
		return c.SendString(text)
	})
	app.Get("/slow", func(c fiber.Ctx) error {
		if err := source.Slow(c.Context()); err != nil {
			return err
		}
		return c.SendString(service.Greeting)
	})
	app.Get("/compute", func(c fiber.Ctx) error {
		return c.SendString(data.Compute())
	})
	app.Get("/healthz", func(c fiber.Ctx) error {
		return c.SendString("ok")
	})
	log.Fatal(app.Listener(ln, fiber.ListenConfig{DisableStartupMessage: true}))
}
