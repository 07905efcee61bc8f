package idioms

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"
)

// Echo returns the service on Echo.
func Echo() *echo.Echo {
	e := echo.New()
	e.Use(middleware.Recover())

	e.GET("/users/:id", func(c *echo.Context) error {
		id, err := echo.PathParam[int](c, "id")
		if err != nil {
			return echo.ErrNotFound
		}
		u, ok := findUser(id)
		if !ok {
			return echo.ErrNotFound
		}
		return c.JSON(http.StatusOK, u)
	})

	admin := e.Group("/admin", echoKey)
	admin.POST("/users", echoCreate)
	admin.GET("/me", func(c *echo.Context) error {
		name, _ := c.Get("user").(string)
		return c.String(http.StatusOK, name)
	})
	return e
}

func echoCreate(c *echo.Context) error {
	var in User
	if err := c.Bind(&in); err != nil {
		return err
	}
	if in.Name == "" {
		return echo.NewHTTPError(http.StatusBadRequest, "name is required")
	}
	u := addUser(in.Name)
	c.Response().Header().Set("Location", fmt.Sprintf("/users/%d", u.ID))
	return c.JSON(http.StatusCreated, u)
}

func echoKey(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		name := ownerOf(c.Request().Header.Get("X-Key"))
		if name == "" {
			return echo.ErrUnauthorized
		}
		c.Set("user", name)
		c.Response().Header().Set("X-Served-For", name) // must be set before the handler writes
		return next(c)
	}
}
