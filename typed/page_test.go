package typed_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/negotiate"
	"github.com/dunlinhttp/dunlin/typed"
)

type listNumbers struct {
	typed.PageQuery
	Odd bool `query:"odd" default:"false"`
}

type number struct {
	N int `json:"n" xml:"n,attr"`
}

var pageKeys = middleware.NewKeyRing([]byte("0123456789abcdef0123456789abcdef"))

// numbers lists the numbers 1 to 5 in pages.
func numbers(app *dunlin.App) *typed.Op[listNumbers, typed.Page[number]] {
	pages := typed.NewPager(pageKeys, "numbers", func(n number) int { return n.N })
	return typed.Get(app, "/numbers", func(_ *dunlin.Request, in listNumbers) (typed.Page[number], error) {
		after, err := pages.After(in.Cursor)
		if err != nil {
			return typed.Page[number]{}, err
		}
		first := 1
		if after != nil {
			first = *after + 1
		}
		var rows []number
		for n := first; n <= 5 && len(rows) <= in.Limit; n++ {
			if !in.Odd || n%2 == 1 {
				rows = append(rows, number{n})
			}
		}
		return pages.Page(rows, in.Limit), nil
	}).Name("listNumbers")
}

func ExamplePager() {
	app := dunlin.New(dunlin.Config{})
	type listBooks struct{ typed.PageQuery }
	books := typed.NewPager(pageKeys, "books", func(title string) string { return title })
	list := typed.Get(app, "/books", func(_ *dunlin.Request, in listBooks) (typed.Page[string], error) {
		after, err := books.After(in.Cursor)
		if err != nil {
			return typed.Page[string]{}, err
		}
		titles := []string{"Emma", "Faust", "Ulysses"}
		if after != nil {
			titles = titles[slices.Index(titles, *after)+1:]
		}
		return books.Page(titles, in.Limit), nil
	})

	t := &testing.T{}
	var in listBooks
	in.Limit = 2
	first := list.Test(t, app, in)
	in.Cursor = first.Out.Next
	second := list.Test(t, app, in)
	fmt.Println(first.Out.Items, second.Out.Items, second.Out.Next == "")
	// Output: [Emma Faust] [Ulysses] true
}

func TestPages(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	list := numbers(app)
	in := listNumbers{Odd: true}
	in.Limit = 2
	first := list.Test(t, app, in)
	if got := fmt.Sprint(first.Out.Items); got != "[{1} {3}]" || first.Out.Next == "" {
		t.Fatalf("first page: got %s, next %q", got, first.Out.Next)
	}
	link := first.Header.Get("Link")
	target, found := strings.CutSuffix(link, `>; rel="next"`)
	if !found || !strings.HasPrefix(target, "<?cursor=") || !strings.Contains(target, "&limit=2&odd=true") {
		t.Fatalf("got Link %s", link)
	}
	in.Cursor = first.Out.Next
	second := list.Test(t, app, in)
	if got := fmt.Sprint(second.Out.Items); got != "[{5}]" || second.Out.Next != "" || second.Header.Get("Link") != "" {
		t.Errorf("last page: got %s, next %q, Link %q", got, second.Out.Next, second.Header.Get("Link"))
	}
	got := list.Test(t, app, in, func(r *http.Request) { r.URL.RawQuery = strings.TrimPrefix(target, "<?") })
	if string(got.Body) != string(second.Body) {
		t.Errorf("page of the Link field: got %s", got.Body)
	}
}

func TestEmptyPageIsEmptyList(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	got := typed.Get(app, "/", func(*dunlin.Request, struct{}) (typed.Page[number], error) { return typed.Page[number]{}, nil }).Test(t, app, struct{}{})
	if string(got.Body) != `{"items":[]}` {
		t.Errorf("got %s", got.Body)
	}
}

func TestForeignCursorsAreRefused(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	list := numbers(app)
	other := typed.NewPager(pageKeys, "letters", func(n number) int { return n.N })
	otherKeys := typed.NewPager(middleware.NewKeyRing([]byte("another key of 16 bytes or more")), "numbers", func(n number) int { return n.N })
	otherType := typed.NewPager(pageKeys, "numbers", func(number) string { return "one" })
	own := typed.NewPager(pageKeys, "numbers", func(n number) int { return n.N }).Cursor(2)
	for name, cursor := range map[string]string{
		"made up":               "1",
		"of another list":       other.Cursor(2),
		"of another key":        otherKeys.Cursor(2),
		"of another position":   otherType.Cursor("x"),
		"changed":               "x" + own,
		"without its signature": strings.SplitN(own, ".", 2)[0],
	} {
		var in listNumbers
		in.Cursor, in.Limit = cursor, 20
		got := list.Test(t, app, in)
		if got.Status != 400 || got.Problem == nil || got.Problem.Type != "invalid-cursor" {
			t.Errorf("%s: got %d %s", name, got.Status, got.Body)
		}
	}
	var in listNumbers
	in.Cursor, in.Limit = own, 101
	if got := list.Test(t, app, in); got.Status != 400 || !strings.Contains(string(got.Body), `"parameter":"limit"`) {
		t.Errorf("limit 101: got %d %s", got.Status, got.Body)
	}
}

// Keys are rotated: cursors of the old key stay valid.
func TestCursorsAfterKeyRotation(t *testing.T) {
	old, next := []byte("0123456789abcdef"), []byte("fedcba9876543210")
	at := func(keys ...[]byte) *typed.Pager[number, int] {
		return typed.NewPager(middleware.NewKeyRing(keys...), "numbers", func(n number) int { return n.N })
	}
	if after, err := at(next, old).After(at(old).Cursor(7)); err != nil || *after != 7 {
		t.Errorf("got %v, error %v", after, err)
	}
}

func TestPagesInXML(t *testing.T) {
	app := dunlin.New(dunlin.Config{})
	typed.Configure(app, typed.Config{Formats: []*negotiate.Format{negotiate.XML}})
	list := numbers(app)
	in := listNumbers{}
	in.Limit = 5
	got := list.Test(t, app, in, func(r *http.Request) { r.Header.Set("Accept", "application/xml") })
	if want := `<page><items><item n="1"></item><item n="2"></item>`; !strings.Contains(string(got.Body), want) {
		t.Errorf("got %s", got.Body)
	}
}
