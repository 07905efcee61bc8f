// Command echo is the reference service on echo.
package main

import (
	"context"
	"io"
	"log"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

func main() {
	e := echo.New()
	e.GET("/plaintext", func(c *echo.Context) error {
		return c.String(http.StatusOK, service.Greeting)
	})
	e.GET("/json", func(c *echo.Context) error {
		return c.JSON(http.StatusOK, service.Message{Message: service.Greeting})
	})
	e.GET("/users/:id", func(c *echo.Context) error {
		return c.String(http.StatusOK, c.Param("id"))
	})
	e.GET("/users/:id/:action", func(c *echo.Context) error {
		return c.JSON(http.StatusOK, service.UserAction{ID: c.Param("id"), Action: c.Param("action")})
	})
	e.POST("/echo", func(c *echo.Context) error {
		body, err := io.ReadAll(c.Request().Body)
		if err != nil {
			return err
		}
		return c.Blob(http.StatusOK, c.Request().Header.Get("Content-Type"), body)
	})
	e.GET("/api/v1/users", func(c *echo.Context) error {
		return c.JSON(http.StatusOK, service.Users())
	})
	e.GET("/headers", func(c *echo.Context) error {
		c.Response().Header().Set("Cache-Control", service.CacheControl)
		return c.String(http.StatusOK, service.Bucket)
	})
	e.GET("/sleep", func(c *echo.Context) error {
		service.Sleep(c.QueryParam("ms"))
		return c.String(http.StatusOK, service.Greeting)
	})
	e.GET("/paths/*", func(c *echo.Context) error {
		return c.String(http.StatusOK, service.Greeting)
	})
	e.GET("/healthz", func(c *echo.Context) error {
		return c.String(http.StatusOK, "ok")
	})
	start := echo.StartConfig{Listener: service.Listen("echo"), HideBanner: true, HidePort: true}
	log.Fatal(start.Start(context.Background(), e))
}
