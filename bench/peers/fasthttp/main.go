// Command fasthttp is the reference service on fasthttp and its router.
package main

import (
	"encoding/json"
	"log"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

func main() {
	r := router.New()
	r.GET("/plaintext", func(ctx *fasthttp.RequestCtx) {
		ctx.WriteString(service.Greeting)
	})
	r.GET("/json", func(ctx *fasthttp.RequestCtx) {
		writeJSON(ctx, service.Message{Message: service.Greeting})
	})
	r.GET("/users/{id}", func(ctx *fasthttp.RequestCtx) {
		ctx.WriteString(ctx.UserValue("id").(string))
	})
	r.GET("/users/{id}/{action}", func(ctx *fasthttp.RequestCtx) {
		writeJSON(ctx, service.UserAction{
			ID:     ctx.UserValue("id").(string),
			Action: ctx.UserValue("action").(string),
		})
	})
	r.POST("/echo", func(ctx *fasthttp.RequestCtx) {
		ctx.SetContentTypeBytes(ctx.Request.Header.ContentType())
		ctx.Write(ctx.PostBody())
	})
	r.GET("/api/v1/users", func(ctx *fasthttp.RequestCtx) {
		writeJSON(ctx, service.Users())
	})
	r.GET("/headers", func(ctx *fasthttp.RequestCtx) {
		ctx.Response.Header.Set("Cache-Control", service.CacheControl)
		ctx.WriteString(service.Bucket)
	})
	r.GET("/sleep", func(ctx *fasthttp.RequestCtx) {
		service.Sleep(string(ctx.QueryArgs().Peek("ms")))
		ctx.WriteString(service.Greeting)
	})
	r.GET("/paths/{rest:*}", func(ctx *fasthttp.RequestCtx) {
		ctx.WriteString(service.Greeting)
	})
	r.GET("/healthz", func(ctx *fasthttp.RequestCtx) {
		ctx.WriteString("ok")
	})
	log.Fatal(fasthttp.Serve(service.Listen("fasthttp"), r.Handler))
}

func writeJSON(ctx *fasthttp.RequestCtx, v any) {
	ctx.SetContentType("application/json")
	if err := json.NewEncoder(ctx).Encode(v); err != nil {
		ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
	}
}
