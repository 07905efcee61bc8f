// Command spa serves a single-page application (SPA) that is embedded in the program, and its API.
//
//	go run ./examples/spa    (then open http://127.0.0.1:3000/notes/7)
package main

import (
	"context"
	"embed"
	"io/fs"
	"log"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
)

//go:embed dist
var dist embed.FS

func main() {
	if err := newApp(dunlin.Config{Addr: "127.0.0.1:3000"}).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func newApp(config dunlin.Config) *dunlin.App {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		log.Fatal(err)
	}
	// When a browser navigates to a path without a file, it gets index.html. Files with a fingerprint in their names are cached for a year.
	static, err := middleware.Static(middleware.StaticConfig{FS: files, Fallback: "index.html"})
	if err != nil {
		log.Fatal(err)
	}
	app := dunlin.New(config)
	app.Get("/api/notes/{id}", func(r *dunlin.Request) dunlin.Response {
		return dunlin.JSON(map[string]string{"id": r.Param("id"), "text": "a note"})
	})
	app.Get("/{path...}", static)
	return app
}
