// Command hertzdb serves the routes that use a database with hertz.
package main

import (
	"context"
	"net/http"

	"github.com/cloudwego/hertz/pkg/app"
	"github.com/cloudwego/hertz/pkg/app/server"
	"github.com/cloudwego/hertz/pkg/common/hlog"

	"github.com/dunlinhttp/dunlin/bench/peers/db/data"
	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

func main() {
	hlog.SetLevel(hlog.LevelWarn)
	ln, source := data.Listen("hertz-db")
	h := server.New(server.WithListener(ln))
	h.SetHTMLTemplate(data.Page)
	h.GET("/plaintext", func(_ context.Context, c *app.RequestContext) {
		c.String(http.StatusOK, service.Greeting)
	})
	h.GET("/db", func(ctx context.Context, c *app.RequestContext) {
		row, err := source.One(ctx)
		writeJSON(c, row, err)
	})
	h.GET("/queries", func(ctx context.Context, c *app.RequestContext) {
		rows, err := source.Many(ctx, data.Count(c.Query("n")))
		writeJSON(c, rows, err)
	})
	h.GET("/updates", func(ctx context.Context, c *app.RequestContext) {
		rows, err := source.Update(ctx, data.Count(c.Query("n")))
		writeJSON(c, rows, err)
	})
	h.GET("/cached", func(_ context.Context, c *app.RequestContext) {
		c.JSON(http.StatusOK, source.Cached(data.Count(c.Query("n"))))
	})
	h.GET("/fortunes", func(ctx context.Context, c *app.RequestContext) {
		fortunes, err := source.Fortunes(ctx)
		if err != nil {
			c.String(http.StatusInternalServerError, err.Error())
			return
		}
		c.HTML(http.StatusOK, data.Page.Name(), fortunes)
	})
	h.GET("/wait", func(_ context.Context, c *app.RequestContext) {
		text, err := source.Wait(c.Query("us"))
		writeText(c, text, err)
	})
	h.GET("/slow", func(ctx context.Context, c *app.RequestContext) {
		writeText(c, service.Greeting, source.Slow(ctx))
	})
	h.GET("/compute", func(_ context.Context, c *app.RequestContext) {
		c.String(http.StatusOK, data.Compute())
	})
	h.GET("/healthz", func(_ context.Context, c *app.RequestContext) {
		c.String(http.StatusOK, "ok")
	})
	h.Spin()
}

func writeJSON(c *app.RequestContext, v any, err error) {
	if err != nil {
		c.String(http.StatusInternalServerError, err.Error())
		return
	}
	c.JSON(http.StatusOK, v)
}

func writeText(c *app.RequestContext, text string, err error) {
	if err != nil {
		c.String(http.StatusInternalServerError, err.Error())
		return
	}
	c.String(http.StatusOK, text)
}
