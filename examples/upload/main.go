// Command upload saves files of any size to a folder while they arrive.
//
//	go run ./examples/upload
//	curl -F file=@README.md 127.0.0.1:3000/files
package main

import (
	"context"
	"io"
	"log"
	"os"

	"github.com/dunlinhttp/dunlin"
)

// A folder is an os.Root, so a file name from a client cannot lead out of it.
type folder struct{ *os.Root }

func main() {
	dir, err := os.MkdirTemp("", "uploads")
	if err != nil {
		log.Fatal(err)
	}
	log.Println("files are saved in", dir)
	if err := newApp(dunlin.Config{Addr: "127.0.0.1:3000"}, dir).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func newApp(config dunlin.Config, dir string) *dunlin.App {
	root, err := os.OpenRoot(dir)
	if err != nil {
		log.Fatal(err)
	}
	app := dunlin.New(config)
	app.Post("/files", dunlin.Try(folder{root}.save)).MaxBody(1 << 30)
	return app
}

// save copies each file of the form to the folder. At any time it has only a part of one file in memory.
func (f folder) save(r *dunlin.Request) (dunlin.Response, error) {
	sizes := map[string]int64{}
	for part, err := range r.Parts() {
		if err != nil {
			return dunlin.Response{}, err
		}
		if part.FileName() == "" {
			continue // the part is a field, not a file
		}
		to, err := f.Create(part.FileName()) // FileName returns the base name, so a client cannot choose the folder
		if err != nil {
			return dunlin.Response{}, err
		}
		size, err := io.Copy(to, part)
		if closeErr := to.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return dunlin.Response{}, err
		}
		sizes[part.FileName()] = size
	}
	return dunlin.JSON(sizes).Status(201), nil
}
