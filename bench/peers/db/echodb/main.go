// Command echodb serves the routes that use a database with echo.
package main

import (
	"context"
	"log"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/dunlinhttp/dunlin/bench/peers/db/data"
	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

func main() {
	ln, source := data.Listen("echo-db")
	e := echo.New()
	e.Renderer = &echo.TemplateRenderer{Template: data.Page}
	e.GET("/plaintext", func(c *echo.Context) error {
		return c.String(http.StatusOK, service.Greeting)
	})
	e.GET("/db", func(c *echo.Context) error {
		row, err := source.One(c.Request().Context())
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, row)
	})
	e.GET("/queries", func(c *echo.Context) error {
		rows, err := source.Many(c.Request().Context(), data.Count(c.QueryParam("n")))
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, rows)
	})
	e.GET("/updates", func(c *echo.Context) error {
		rows, err := source.Update(c.Request().Context(), data.Count(c.QueryParam("n")))
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, rows)
	})
	e.GET("/cached", func(c *echo.Context) error {
		return c.JSON(http.StatusOK, source.Cached(data.Count(c.QueryParam("n"))))
	})
	e.GET("/fortunes", func(c *echo.Context) error {
		fortunes, err := source.Fortunes(c.Request().Context())
		if err != nil {
			return err
		}
		return c.Render(http.StatusOK, data.Page.Name(), fortunes)
	})
	e.GET("/wait", func(c *echo.Context) error {
		text, err := source.Wait(c.QueryParam("us"))
		if err != nil {
			return err
		}
		return c.String(http.StatusOK, text)
	})
	e.GET("/slow", func(c *echo.Context) error {
		if err := source.Slow(c.Request().Context()); err != nil {
			return err
		}
		return c.String(http.StatusOK, service.Greeting)
	})
	e.GET("/compute", func(c *echo.Context) error {
		return c.String(http.StatusOK, data.Compute())
	})
	e.GET("/healthz", func(c *echo.Context) error {
		return c.String(http.StatusOK, "ok")
	})
	start := echo.StartConfig{Listener: ln, HideBanner: true, HidePort: true}
	log.Fatal(start.Start(context.Background(), e))
}
