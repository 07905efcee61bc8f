// Command fasthttpdb serves the routes that use a database with fasthttp and its router.
package main

import (
	"encoding/json"
	"log"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"github.com/dunlinhttp/dunlin/bench/peers/db/data"
	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

func main() {
	ln, source := data.Listen("fasthttp-db")
	r := router.New()
	r.GET("/plaintext", func(ctx *fasthttp.RequestCtx) {
		ctx.WriteString(service.Greeting)
	})
	r.GET("/db", func(ctx *fasthttp.RequestCtx) {
		row, err := source.One(ctx)
		writeJSON(ctx, row, err)
	})
	r.GET("/queries", func(ctx *fasthttp.RequestCtx) {
		rows, err := source.Many(ctx, count(ctx))
		writeJSON(ctx, rows, err)
	})
	r.GET("/updates", func(ctx *fasthttp.RequestCtx) {
		rows, err := source.Update(ctx, count(ctx))
		writeJSON(ctx, rows, err)
	})
	r.GET("/cached", func(ctx *fasthttp.RequestCtx) {
		writeJSON(ctx, source.Cached(count(ctx)), nil)
	})
	r.GET("/fortunes", func(ctx *fasthttp.RequestCtx) {
		fortunes, err := source.Fortunes(ctx)
		if err == nil {
			ctx.SetContentType(data.HTML)
			err = data.Page.Execute(ctx, fortunes)
		}
		if err != nil {
			ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
		}
	})
	r.GET("/wait", func(ctx *fasthttp.RequestCtx) {
		text, err := source.Wait(string(ctx.QueryArgs().Peek("us")))
		writeText(ctx, text, err)
	})
	r.GET("/slow", func(ctx *fasthttp.RequestCtx) {
		writeText(ctx, service.Greeting, source.Slow(ctx))
	})
	r.GET("/compute", func(ctx *fasthttp.RequestCtx) {
		ctx.WriteString(data.Compute())
	})
	r.GET("/healthz", func(ctx *fasthttp.RequestCtx) {
		ctx.WriteString("ok")
	})
	log.Fatal(fasthttp.Serve(ln, r.Handler))
}

func count(ctx *fasthttp.RequestCtx) int { return data.Count(string(ctx.QueryArgs().Peek("n"))) }

func writeJSON(ctx *fasthttp.RequestCtx, v any, err error) {
	ctx.SetContentType("application/json")
	if err == nil {
		err = json.NewEncoder(ctx).Encode(v)
	}
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
	}
}

func writeText(ctx *fasthttp.RequestCtx, text string, err error) {
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
		return
	}
	ctx.WriteString(text)
}
