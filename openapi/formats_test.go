package openapi_test

import (
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/negotiate"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/typed"
)

// The document contains the formats of an operation, its pages and the fault for invalid cursors.
func TestDocumentOfFormatsAndPages(t *testing.T) {
	type book struct {
		Title string `json:"title"`
	}
	type listBooks struct{ typed.PageQuery }
	app := dunlin.New(dunlin.Config{})
	typed.Configure(app, typed.Config{InvalidStatus: 422, Formats: []*negotiate.Format{negotiate.XML}})
	pages := typed.NewPager(middleware.NewKeyRing([]byte("0123456789abcdef")), "books", func(b book) string { return b.Title })
	typed.Get(app, "/books", func(_ *dunlin.Request, in listBooks) (typed.Page[book], error) {
		return pages.Page(nil, in.Limit), nil
	}).Name("listBooks")
	document, err := openapi.Document(app, openapi.Config{Title: "Books", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(document)), "")
	for _, want := range []string{
		`"content":{"application/json":{"schema":{"$ref":"#/components/schemas/PageOfBook"}},"application/xml":{}}`,
		`"headers":{"Link":{"schema":{"type":"string"}}}`,
		`"PageOfBook":{"type":"object"`,
		`"406":`,
		`"invalid-cursor"`,
		`"name":"cursor"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got a document without %s:\n%s", want, document)
		}
	}
}
