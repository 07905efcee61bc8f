package idioms

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/typed"
	"github.com/gofiber/fiber/v3"
)

// This file implements one operation of a service in several frameworks, for docs/COMING-FROM.md. The operation lists the books
// of a shelf.

type Book struct {
	Title string `json:"title"`
}

type shelf []Book

var shelves = map[string]shelf{"sea": {{"Moby-Dick"}}}

func (s shelf) books(_ context.Context, limit int, _ []string) []Book { return s[:min(limit, len(s))] }

// ListBooks is the input of listBooks.
type ListBooks struct {
	Shelf string   `path:"shelf"`
	Limit int      `query:"limit" default:"20" minimum:"1" maximum:"100"`
	Tags  []string `query:"tag"`
}

var noShelf = typed.NewFault(404, "no-shelf", "The shelf does not exist")

func listBooks(r *dunlin.Request, in ListBooks) ([]Book, error) {
	shelf, ok := shelves[in.Shelf]
	if !ok {
		return nil, noShelf
	}
	return shelf.books(r.Context(), in.Limit, in.Tags), nil
}

// Library returns the operation on Dunlin.
func Library(config dunlin.Config) *dunlin.App {
	app := dunlin.New(config)
	typed.Get(app, "/shelves/{shelf}/books", listBooks).Name("listBooks").Faults(noShelf)
	openapi.Serve(app, "/docs", openapi.Config{Title: "Library", Version: "1.0.0"})
	return app
}

// ListBooksInput is huma's input type.
type ListBooksInput struct {
	Shelf string   `path:"shelf"`
	Limit int      `query:"limit" default:"20" minimum:"1" maximum:"100"`
	Tags  []string `query:"tag,explode"`
}

// ListBooksOutput is huma's output type.
type ListBooksOutput struct{ Body []Book }

// HumaLibrary returns the operation on huma.
func HumaLibrary() http.Handler {
	mux := http.NewServeMux()
	api := humago.New(mux, huma.DefaultConfig("Library", "1.0.0"))
	huma.Register(api, huma.Operation{OperationID: "listBooks", Method: "GET", Path: "/shelves/{shelf}/books", Errors: []int{404}},
		func(ctx context.Context, in *ListBooksInput) (*ListBooksOutput, error) {
			shelf, ok := shelves[in.Shelf]
			if !ok {
				return nil, huma.Error404NotFound("shelf not found")
			}
			return &ListBooksOutput{shelf.books(ctx, in.Limit, in.Tags)}, nil
		})
	return mux
}

// FiberLibrary returns the operation on Fiber.
func FiberLibrary() *fiber.App {
	app := fiber.New()
	app.Get("/shelves/:shelf/books", func(c fiber.Ctx) error {
		var in struct {
			Limit int      `query:"limit" validate:"min=1,max=100"`
			Tags  []string `query:"tag"`
		}
		in.Limit = 20
		if err := c.Bind().Query(&in); err != nil {
			return err
		}
		shelf, ok := shelves[strings.Clone(c.Params("shelf"))]
		if !ok {
			return fiber.NewError(404, "shelf not found")
		}
		return c.JSON(shelf.books(c.Context(), in.Limit, in.Tags))
	})
	return app
}
