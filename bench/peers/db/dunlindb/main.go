// Command dunlindb serves the routes that use a database with Dunlin.
package main

import (
	"flag"
	"log"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/backend"
	"github.com/dunlinhttp/dunlin/bench/peers/db/data"
	"github.com/dunlinhttp/dunlin/bench/peers/service"
	"github.com/dunlinhttp/dunlin/templates"
)

func main() {
	var config dunlin.Config
	flag.TextVar(&config.Engine, "engine", dunlin.EngineAuto, "engine: auto, std or loop")
	flag.BoolFunc("backend", "connect to the database and the upstream server by package backend", func(string) error {
		data.Dial = backend.Dial
		return nil
	})
	ln, source := data.Listen("dunlin-db")
	app := dunlin.New(config)
	app.Get("/plaintext", func(*dunlin.Request) dunlin.Response {
		return dunlin.Text(service.Greeting)
	})
	app.Get("/db", func(r *dunlin.Request) dunlin.Response {
		row, err := source.One(r.Context())
		return asJSON(row, err)
	})
	app.Get("/queries", func(r *dunlin.Request) dunlin.Response {
		rows, err := source.Many(r.Context(), data.Count(r.Query("n")))
		return asJSON(rows, err)
	})
	app.Get("/updates", func(r *dunlin.Request) dunlin.Response {
		rows, err := source.Update(r.Context(), data.Count(r.Query("n")))
		return asJSON(rows, err)
	})
	app.Get("/cached", func(r *dunlin.Request) dunlin.Response {
		return dunlin.JSON(source.Cached(data.Count(r.Query("n"))))
	})
	app.Get("/fortunes", func(r *dunlin.Request) dunlin.Response {
		fortunes, err := source.Fortunes(r.Context())
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Render(r, templates.Component(data.Page, "", fortunes))
	})
	app.Get("/wait", func(r *dunlin.Request) dunlin.Response {
		text, err := source.Wait(r.Query("us"))
		return asText(text, err)
	})
	app.Get("/slow", func(r *dunlin.Request) dunlin.Response {
		return asText(service.Greeting, source.Slow(r.Context()))
	})
	app.Get("/compute", func(*dunlin.Request) dunlin.Response {
		return dunlin.Text(data.Compute())
	})
	app.Get("/healthz", app.Readiness()).Critical()
	app.Get("/stats", func(*dunlin.Request) dunlin.Response { return dunlin.JSON(app.Stats()) }).Critical()
	log.Fatal(app.Serve(ln))
}

func asJSON[T any](v T, err error) dunlin.Response {
	if err != nil {
		return dunlin.Error(err)
	}
	return dunlin.JSON(v)
}

func asText(text string, err error) dunlin.Response {
	if err != nil {
		return dunlin.Error(err)
	}
	return dunlin.Text(text)
}
