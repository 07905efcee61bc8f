package main

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/typed"
)

// newShop returns a shop with a database of its own, and its app.
func newShop(t *testing.T) (*shop, *dunlin.App) {
	db, err := open(":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &shop{books: &catalogue{db}, key: "k", news: new(news), shared: newShared(store.NewMemory(store.MemoryConfig{}), store.NewMemory(store.MemoryConfig{}), 0, 0)}, dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
}

var emma = BookData{ISBN: "9780141439587", Title: "Emma", Author: "Jane Austen", Genre: "novel", Cents: 899, Stock: 3}

func TestBooks(t *testing.T) {
	s, app := newShop(t)
	list := typed.Get(app, "/books", s.list)
	show := typed.Get(app, "/books/{id:int}", s.show).Faults(noBook)
	add := typed.Post(app, "/books", s.add).Faults(sameISBN)
	replace := typed.Put(app, "/books/{id:int}", s.replace).Faults(noBook, sameISBN, changed)
	remove := typed.Delete(app, "/books/{id:int}", s.remove).Faults(noBook)

	if x := list.Test(t, app, ListBooks{Limit: 1, Sort: "title"}); x.Out.Total != 2 || len(x.Out.Items) != 1 || x.Out.Items[0].Title != "Emma" || x.Out.Next != 1 {
		t.Errorf("first page: got %+v", x.Out)
	}
	if x := add.Test(t, app, AddBook{emma}); !errors.Is(x.Problem, sameISBN) {
		t.Errorf("duplicate ISBN: got %d", x.Status)
	}
	other := emma
	other.ISBN = "9780141439588"
	x := add.Test(t, app, AddBook{other})
	if x.Status != http.StatusCreated || x.Out.Location != "/books/3" || x.Out.Body.BookData.Title != "Emma" {
		t.Fatalf("add: got %d %s", x.Status, x.Body)
	}
	shown := show.Test(t, app, BookID{3})
	if shown.Out.ETag != `"3-1"` {
		t.Errorf("got ETag %s", shown.Out.ETag)
	}
	other.Title = "Emma, revised"
	if y := replace.Test(t, app, ReplaceBook{BookID: BookID{3}, Version: typed.OptionalOf(int64(1)), Body: other}); y.Out.Version != 2 || y.Out.Title != "Emma, revised" {
		t.Errorf("replace: got %d %s", y.Status, y.Body)
	}
	if y := replace.Test(t, app, ReplaceBook{BookID: BookID{3}, Version: typed.OptionalOf(int64(1)), Body: other}); !errors.Is(y.Problem, changed) {
		t.Errorf("replace an old version: got %d", y.Status)
	}
	if y := remove.Test(t, app, BookID{3}); y.Status != http.StatusNoContent {
		t.Errorf("remove: got %d", y.Status)
	}
	if y := show.Test(t, app, BookID{3}); !errors.Is(y.Problem, noBook) {
		t.Errorf("show a removed book: got %d", y.Status)
	}
	other.ISBN, other.Tags = "1", []string{"a", "a", ""}
	if y := add.Test(t, app, AddBook{other}); y.Status != http.StatusBadRequest || len(y.Problem.Errors) != 3 {
		t.Errorf("invalid book: got %d %s", y.Status, y.Body)
	}
}

func TestOrders(t *testing.T) {
	s, app := newShop(t)
	order := typed.Post(app, "/orders", s.order).Faults(noBook, outOfStock, bookTwice)
	var in PlaceOrder
	in.Body.Mail, in.Body.Lines = "ada@example.com", []OrderLine{{Book: 1, Copies: 2}, {Book: 2, Copies: 1}}
	if x := order.Test(t, app, in); x.Out.Body.Cents != 2*1299+899 {
		t.Errorf("got %d %s", x.Status, x.Body)
	}
	in.Body.Lines = []OrderLine{{Book: 1, Copies: 1}, {Book: 1, Copies: 1}}
	if x := order.Test(t, app, in); !errors.Is(x.Problem, bookTwice) {
		t.Errorf("the same book twice: got %d %s", x.Status, x.Body)
	}
	for range 10 {
		in.Body.Lines = []OrderLine{{Book: 1, Copies: 100}}
		if x := order.Test(t, app, in); errors.Is(x.Problem, outOfStock) {
			return
		}
	}
	t.Error("the stock never ran out")
}

func TestStaff(t *testing.T) {
	s, app := newShop(t)
	s.register(app)
	ops := map[string]int{}
	for _, o := range typed.Operations(app) {
		for _, a := range o.Answers() {
			if a.Status == http.StatusUnauthorized {
				ops[o.Describe().Route.Name]++
			}
		}
	}
	if len(ops) != 4 || ops["addBook"] != 1 {
		t.Errorf("operations that ask for a key: got %v", ops)
	}
	if _, err := openapi.Document(app, config); err != nil {
		t.Error(err)
	}
}

// Routes of the staff refuse requests without the key, also if no key is configured. A cover is never served as a page, with
// any content.
func TestGuards(t *testing.T) {
	for _, key := range []string{"k", ""} {
		s, app := newShop(t)
		s.key = key
		s.register(app)
		for _, sent := range []string{"", "K", key} {
			req := httptest.NewRequest("GET", "/stats", nil)
			if sent != "" {
				req.Header.Set("X-Staff-Key", sent)
			}
			w := httptest.NewRecorder()
			app.ServeHTTP(w, req)
			if passes := sent != "" && sent == key; (w.Code == 200) != passes || !passes && w.Code != 401 {
				t.Errorf("statistics for the key %q: got %d", sent, w.Code)
			}
		}
		if err := s.books.setCover(t.Context(), 1, typed.File{ContentType: "image/png", Data: []byte("<script>alert(1)</script>")}); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		app.ServeHTTP(w, httptest.NewRequest("GET", "/books/1/cover", nil))
		if h := w.Header(); w.Code != 200 || h.Get("Content-Type") != "image/png" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("cover: got %d %v", w.Code, h)
		}
	}
}

// Orders with keys use no memory of baskets, and refused orders use no memory.
func TestFloodOfOrders(t *testing.T) {
	s, app := newShop(t)
	s.register(app)
	for i := range 2000 {
		req := httptest.NewRequest("POST", "/orders", strings.NewReader("{}"))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", strconv.Itoa(i))
		w := httptest.NewRecorder()
		if app.ServeHTTP(w, req); w.Code != 400 {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
	}
	if keys, others := s.keys.(*store.Memory).Held(), s.store.(*store.Memory).Held(); keys != 0 || others > 1000 {
		t.Errorf("got %d bytes for keys and %d for other data", keys, others)
	}
}
