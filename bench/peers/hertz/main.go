// Command hertz is the reference service on hertz, with its own event-driven transport.
package main

import (
	"context"
	"net/http"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/hlog"

	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

func main() {
	hlog.SetLevel(hlog.LevelWarn)
	h := server.New(server.WithListener(service.Listen("hertz")))
	h.GET("/plaintext", func(_ context.Context, c *app.RequestContext) {
		c.String(http.StatusOK, service.Greeting)
	})
	h.GET("/json", func(_ context.Context, c *app.RequestContext) {
		c.JSON(http.StatusOK, service.Message{Message: service.Greeting})
	})
	h.GET("/users/:id", func(_ context.Context, c *app.RequestContext) {
		c.String(http.StatusOK, c.Param("id"))
	})
	h.GET("/users/:id/:action", func(_ context.Context, c *app.RequestContext) {
		c.JSON(http.StatusOK, service.UserAction{ID: c.Param("id"), Action: c.Param("action")})
	})
	h.POST("/echo", func(_ context.Context, c *app.RequestContext) {
		c.Data(http.StatusOK, string(c.ContentType()), c.Request.Body())
	})
	h.GET("/api/v1/users", func(_ context.Context, c *app.RequestContext) {
		c.JSON(http.StatusOK, service.Users())
	})
	h.GET("/headers", func(_ context.Context, c *app.RequestContext) {
		c.Header("Cache-Control", service.CacheControl)
		c.String(http.StatusOK, service.Bucket)
	})
	h.GET("/sleep", func(_ context.Context, c *app.RequestContext) {
		service.Sleep(c.Query("ms"))
		c.String(http.StatusOK, service.Greeting)
	})
	h.GET("/paths/*rest", func(_ context.Context, c *app.RequestContext) {
		c.String(http.StatusOK, service.Greeting)
	})
	h.GET("/healthz", func(_ context.Context, c *app.RequestContext) {
		c.String(http.StatusOK, "ok")
	})
	h.Spin()
}
