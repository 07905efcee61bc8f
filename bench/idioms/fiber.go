package idioms

import (
	"fmt"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/recover"
)

// Fiber returns the service on Fiber.
func Fiber() *fiber.App {
	app := fiber.New()
	app.Use(recover.New())

	app.Get("/users/:id<int>", func(c fiber.Ctx) error {
		u, ok := findUser(fiber.Params[int](c, "id"))
		if !ok {
			return fiber.ErrNotFound
		}
		return c.JSON(u)
	})

	admin := app.Group("/admin", fiberKey)
	admin.Post("/users", fiberCreate)
	admin.Get("/me", func(c fiber.Ctx) error {
		return c.SendString(fiber.Locals[string](c, "user"))
	})
	return app
}

func fiberCreate(c fiber.Ctx) error {
	var in struct {
		Name string `json:"name"`
	}
	if err := c.Bind().JSON(&in); err != nil {
		return fiber.NewError(fiber.StatusBadRequest, err.Error())
	}
	if in.Name == "" {
		return fiber.NewError(fiber.StatusBadRequest, "name is required")
	}
	u := addUser(in.Name)
	c.Set(fiber.HeaderLocation, fmt.Sprintf("/users/%d", u.ID))
	return c.Status(fiber.StatusCreated).JSON(u)
}

func fiberKey(c fiber.Ctx) error {
	name := ownerOf(c.Get("X-Key"))
	if name == "" {
		return fiber.ErrUnauthorized
	}
	fiber.Locals(c, "user", name)
	c.Set("X-Served-For", name)
	return c.Next()
}
