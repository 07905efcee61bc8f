// Command fibdb serves the routes that use a database with fib and its router.
package main

import (
	"bytes"
	"net/http"

	fibhttp "github.com/lesismal/fib/http"

	"github.com/dunlinhttp/dunlin/bench/peers/db/data"
	fibpeer "github.com/dunlinhttp/dunlin/bench/peers/fib"
	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

func main() {
	connect := data.Flags("fib-db")
	at := service.ReadAddress()
	source := connect()
	r := fibhttp.NewRouter()
	r.Get("/plaintext", func(c *fibhttp.Context) { fibpeer.Text(c, service.Greeting) })
	r.Get("/db", func(c *fibhttp.Context) {
		row, err := source.One(c.Context())
		writeJSON(c, row, err)
	})
	r.Get("/queries", func(c *fibhttp.Context) {
		rows, err := source.Many(c.Context(), data.Count(c.Query("n")))
		writeJSON(c, rows, err)
	})
	r.Get("/updates", func(c *fibhttp.Context) {
		rows, err := source.Update(c.Context(), data.Count(c.Query("n")))
		writeJSON(c, rows, err)
	})
	r.Get("/cached", func(c *fibhttp.Context) { fibpeer.JSON(c, source.Cached(data.Count(c.Query("n")))) })
	r.Get("/fortunes", func(c *fibhttp.Context) {
		fortunes, err := source.Fortunes(c.Context())
		var page bytes.Buffer
		if err == nil {
			err = data.Page.Execute(&page, fortunes)
		}
		if err != nil {
			fibpeer.Error(c, err)
			return
		}
		_ = c.Respond(http.StatusOK, data.HTML, page.Bytes())
	})
	r.Get("/wait", func(c *fibhttp.Context) {
		text, err := source.Wait(c.Query("us"))
		writeText(c, text, err)
	})
	r.Get("/slow", func(c *fibhttp.Context) { writeText(c, service.Greeting, source.Slow(c.Context())) })
	r.Get("/compute", func(c *fibhttp.Context) { fibpeer.Text(c, data.Compute()) })
	r.Get("/healthz", func(c *fibhttp.Context) { fibpeer.Text(c, "ok") })
	fibpeer.Serve("fib-db", at, r)
}

func writeJSON(c *fibhttp.Context, v any, err error) {
	if err != nil {
		fibpeer.Error(c, err)
		return
	}
	fibpeer.JSON(c, v)
}

func writeText(c *fibhttp.Context, text string, err error) {
	if err != nil {
		fibpeer.Error(c, err)
		return
	}
	fibpeer.Text(c, text)
}
