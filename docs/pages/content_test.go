package pages

import (
	"html/template"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/datastar"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/htmx"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/negotiate"
	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/templates"
	"github.com/dunlinhttp/dunlin/typed"
	"github.com/dunlinhttp/dunlin/webhook"
)

type book struct {
	ISBN  string `json:"isbn" xml:"isbn"`
	Title string `json:"title" xml:"title"`
}

type ListBooks struct {
	typed.PageQuery        // the parameters cursor and limit
	Author          string `query:"author" default:""`
}

func content(t *testing.T, app *dunlin.App) {
	pages := template.Must(template.New("book").Parse(`<p id="book">{{.Title}}</p>{{define "count"}}<p id="count">{{.}}</p>{{end}}`))
	keys := middleware.NewKeyRing([]byte("0123456789abcdef"))
	find := func(_ string, after *string, most int) []book {
		all := []book{{"1", "Emma"}, {"2", "Faust"}}
		if after != nil {
			all = all[1:]
		}
		return all[:min(most, len(all))]
	}

	typed.Configure(app, typed.Config{Formats: []*negotiate.Format{negotiate.XML}})

	languages := negotiate.NewLanguages("en", "de", "pt-BR")
	app.Use(languages.Middleware()) // Vary and Content-Language

	formats := negotiate.New(negotiate.JSON, negotiate.XML)
	app.Get("/books/{isbn}", func(r *dunlin.Request) dunlin.Response {
		return negotiate.Answer(formats, r, book{r.Param("isbn"), "Emma"})
	})

	app.Get("/books/{isbn}/page", func(r *dunlin.Request) dunlin.Response {
		return dunlin.Render(r, templates.Component(pages, "book", book{r.Param("isbn"), "Emma"}))
	})

	app.Post("/books", func(r *dunlin.Request) dunlin.Response {
		if !htmx.Partial(r) { // without htmx, or for the whole page
			return dunlin.Redirect("/books")
		}
		resp := dunlin.Render(r, templates.Component(pages, "book", book{"1", "Emma"}))
		return htmx.Trigger(htmx.Reswap(resp, "beforeend"), htmx.Event{Name: "bookAdded", Detail: "1"})
	})

	app.Post("/count", func(r *dunlin.Request) dunlin.Response {
		var in struct{ Count int }
		if err := datastar.ReadSignals(r, &in); err != nil {
			return dunlin.Error(err)
		}
		return datastar.Answer(r,
			datastar.Elements{Component: templates.Component(pages, "count", in.Count+1)},
			datastar.Signals{Values: map[string]int{"count": in.Count + 1}})
	})

	books := typed.NewPager(keys, "books", func(b book) string { return b.ISBN })
	typed.Get(app, "/books", func(r *dunlin.Request, in ListBooks) (typed.Page[book], error) {
		after, err := books.After(in.Cursor) // nil for the first page
		if err != nil {
			return typed.Page[book]{}, err
		}
		return books.Page(find(in.Author, after, in.Limit+1), in.Limit), nil
	})

	for path, want := range map[string]int{"/books/1": 200, "/books/1/page": 200, "/books?limit=1": 200, "/books?cursor=1": 400} {
		if status := dunlintest.JSON(t, app, "GET", path, nil, nil); status != want {
			t.Errorf("%s: got %d", path, status)
		}
	}
	if status := dunlintest.JSON(t, app, "POST", "/count", map[string]int{"count": 1}, nil); status != 200 {
		t.Errorf("/count: got %d", status)
	}
}

func webhooks(_ *testing.T, app *dunlin.App) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	st, received := store.NewMemory(store.MemoryConfig{}), hello

	hooks := webhook.New(webhook.Config{Secrets: []string{secret}, Store: st})
	app.Post("/hooks/payments", received, hooks.Middleware())
}
