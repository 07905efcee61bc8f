// Command fiber is the reference service on fiber.
package main

import (
	"log"

	"github.com/gofiber/fiber/v3"

	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

func main() {
	app := fiber.New()
	app.Get("/plaintext", func(c fiber.Ctx) error {
		return c.SendString(service.Greeting)
	})
	app.Get("/json", func(c fiber.Ctx) error {
		return c.JSON(service.Message{Message: service.Greeting})
	})
	app.Get("/users/:id", func(c fiber.Ctx) error {
		return c.SendString(c.Params("id"))
	})
	app.Get("/users/:id/:action", func(c fiber.Ctx) error {
		return c.JSON(service.UserAction{ID: c.Params("id"), Action: c.Params("action")})
	})
	app.Post("/echo", func(c fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, c.Get(fiber.HeaderContentType))
		return c.Send(c.Body())
	})
	app.Get("/api/v1/users", func(c fiber.Ctx) error {
		return c.JSON(service.Users())
	})
	app.Get("/headers", func(c fiber.Ctx) error {
		c.Set(fiber.HeaderCacheControl, service.CacheControl)
		return c.SendString(service.Bucket)
	})
	app.Get("/sleep", func(c fiber.Ctx) error {
		service.Sleep(c.Query("ms"))
		return c.SendString(service.Greeting)
	})
	app.Get("/paths/*", func(c fiber.Ctx) error {
		return c.SendString(service.Greeting)
	})
	app.Get("/healthz", func(c fiber.Ctx) error {
		return c.SendString("ok")
	})
	log.Fatal(app.Listener(service.Listen("fiber"), fiber.ListenConfig{DisableStartupMessage: true}))
}
