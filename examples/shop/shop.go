package main

import (
	"context"
	"crypto/subtle"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/openapi"
	"github.com/dunlinhttp/dunlin/stats"
	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/typed"
)

// These are the faults of the shop.
var (
	noBook     = typed.NewFault(404, "no-book", "There is no such book")
	sameISBN   = typed.NewFault(409, "same-isbn", "There is a book with this ISBN already")
	outOfStock = typed.NewFault(409, "out-of-stock", "There are not as many copies")
	bookTwice  = typed.NewFault(409, "book-twice", "The order names a book twice")
	changed    = typed.NewFault(409, "changed", "The book has been changed")
	noCover    = typed.NewFault(404, "no-cover", "The book has no cover")
)

// A shop is the service. Its books are in a database, and its staff has a key.
type shop struct {
	books *catalogue
	key   string
	news  *news
	*shared
}

// register adds the shop's operations to an app.
func (s *shop) register(app *dunlin.App) {
	app.Get("/ready", app.Readiness()).Critical()
	app.Get("/stats", s.stats(app), s.onlyStaff).Critical()
	app.Use(s.browsing())
	typed.Get(app, "/books", s.list).Name("listBooks").Tags("books").
		Summary("Lists books").Description("The answer is one page of the books, in the order that the parameter sort selects.")
	typed.Get(app, "/books/{id:int}", s.show).Name("showBook").Tags("books").Faults(noBook).
		Summary("Shows a book").Description("The header ETag names the version of the book.")
	typed.Get(app, "/books/{id:int}/cover", s.cover).Name("showCover").Tags("books").Faults(noBook, noCover).
		ReturnsBytes(200, "image/png").Summary("Shows a cover").Description("The picture of a book, if it has one.")
	orders := app.Group("/orders", s.once(), s.ordering())
	typed.Post(orders, "", s.order).Name("placeOrder").Tags("orders").Faults(noBook, outOfStock, bookTwice).
		Summary("Buys books").Description("The copies are removed from the stock immediately. With an Idempotency-Key the request may be repeated.").
		Example("two novels", map[string]any{"mail": "ada@example.com", "lines": []OrderLine{{Book: 1, Copies: 2}}})
	typed.Get(app, "/export", s.export).Name("exportBooks").Tags("books").
		Summary("Exports all books").Description("An array of all books, read from the database as it is sent.")
	typed.Get(app, "/lines", s.lines).Name("listLines").Tags("books").
		Summary("Exports all books as lines").Description("One book a line.")
	typed.Get(app, "/news", s.watch).Name("watchStock").Tags("orders").Hidden() // it never ends

	key := typed.APIKey("staff", "header", "X-Staff-Key")
	staff := app.Group("/staff", typed.Declares(s.onlyStaff, typed.Requires(key), typed.Unauthorized))
	typed.Post(staff, "/books", s.add).Name("addBook").Tags("staff").Faults(sameISBN).
		Summary("Adds a book").Description("The answer contains the stored book.")
	typed.Put(staff, "/books/{id:int}", s.replace).Name("replaceBook").Tags("staff").Faults(noBook, sameISBN, changed).
		Summary("Replaces a book").Description("With a version, only if the book still has that version.")
	typed.Delete(staff, "/books/{id:int}", s.remove).Name("removeBook").Tags("staff").Faults(noBook).
		Summary("Removes a book").Description("Orders keep a copy of its data.")
	typed.Put(staff, "/books/{id:int}/cover", s.putCover).Name("putCover").Tags("staff").Faults(noBook).
		Summary("Stores a cover").Description("A picture of up to 2 MB.").Route().MaxBody(3 << 20)

	s.shared.register(app)
	openapi.Serve(app, "/docs", config)
}

// stats shows the statistics of the shop, and of the store that its processes share.
func (s *shop) stats(app *dunlin.App) dunlin.Action {
	return func(*dunlin.Request) dunlin.Response {
		shown := struct {
			Store *store.GuardStats `json:"store,omitempty"`
			stats.Snapshot
		}{Snapshot: app.Stats()}
		if guarded, ok := s.store.(*store.Guarded); ok {
			counts := guarded.Stats()
			shown.Store = &counts
		}
		return dunlin.JSON(shown)
	}
}

var config = openapi.Config{
	Title: "Bookshop", Version: "1.0.0", Description: "A bookshop, to show what typed actions are.",
	Contact: openapi.Contact{Name: "The shop", URL: "https://example.com"}, License: openapi.License{Name: "MIT", Identifier: "MIT"},
	Servers: []openapi.Server{{URL: "http://127.0.0.1:8080", Description: "This machine"}},
	Tags:    []openapi.Tag{{Name: "books", Description: "What there is"}, {Name: "orders", Description: "What is bought"}, {Name: "staff", Description: "For those who run the shop"}},
}

// onlyStaff lets only requests with the staff key pass.
func (s *shop) onlyStaff(next dunlin.Action) dunlin.Action {
	return func(r *dunlin.Request) dunlin.Response {
		if s.key == "" || subtle.ConstantTimeCompare([]byte(r.Header("X-Staff-Key")), []byte(s.key)) != 1 {
			return dunlin.Error(typed.Unauthorized)
		}
		return next(r)
	}
}

func (s *shop) list(r *dunlin.Request, in ListBooks) (Page[Book], error) {
	return s.books.list(r.Context(), in)
}

func (s *shop) show(r *dunlin.Request, in BookID) (ShownBook, error) {
	b, err := s.books.find(r.Context(), in.ID)
	return ShownBook{ETag: b.tag(), Body: b}, err
}

// tag returns the entity tag of a version of a book.
func (b *Book) tag() string { return fmt.Sprintf(`"%d-%d"`, b.ID, b.Version) }

func (s *shop) add(r *dunlin.Request, in AddBook) (typed.Created[Book], error) {
	b, err := s.books.add(r.Context(), in.Body)
	return typed.Created[Book]{Location: fmt.Sprintf("/books/%d", b.ID), Body: b}, err
}

func (s *shop) replace(r *dunlin.Request, in ReplaceBook) (Book, error) {
	return s.books.change(r.Context(), in.ID, func(b *Book) error {
		if version, given := in.Version.Get(); given && version != b.Version {
			return changed
		}
		b.BookData = in.Body
		return nil
	})
}

func (s *shop) remove(r *dunlin.Request, in BookID) (typed.None, error) {
	return typed.None{}, s.books.remove(r.Context(), in.ID)
}

func (s *shop) putCover(r *dunlin.Request, in PutCover) (typed.None, error) {
	return typed.None{}, s.books.setCover(r.Context(), in.ID, in.Image)
}

func (s *shop) cover(r *dunlin.Request, in BookID) (dunlin.Response, error) {
	kind, data, err := s.books.cover(r.Context(), in.ID)
	if err != nil {
		return dunlin.Response{}, err
	}
	return dunlin.Bytes(kind, data).Header("X-Content-Type-Options", "nosniff"), nil // the uploaded file may not be a picture
}

func (s *shop) order(r *dunlin.Request, in PlaceOrder) (typed.Created[Order], error) {
	o, left, err := s.books.order(r.Context(), in.Body.Mail, in.Body.Lines)
	if err != nil {
		return typed.Created[Order]{}, err
	}
	for _, n := range left {
		s.news.tell(n)
	}
	return typed.Created[Order]{Location: fmt.Sprintf("/orders/%d", o.ID), Body: o}, nil
}

func (s *shop) export(r *dunlin.Request, _ struct{}) (typed.Seq[Book], error) {
	return typed.Seq[Book](s.books.all(r.Context())), nil
}

func (s *shop) lines(r *dunlin.Request, _ struct{}) (typed.Lines[Book], error) {
	return typed.Lines[Book](s.books.all(r.Context())), nil
}

// watch sends an event for each change of the stock.
func (s *shop) watch(*dunlin.Request, struct{}) (typed.EventsOf[Notice], error) {
	return func(e *typed.Emitter[Notice]) error {
		notices, leave := s.news.join()
		defer leave()
		for {
			select {
			case n := <-notices:
				if err := e.Emit(n); err != nil {
					return err
				}
			case <-e.Done():
				return nil
			}
		}
	}, nil
}

// A catalogue stores books in a database.
type catalogue struct{ db *sql.DB }

const columns = "id, added, version, isbn, title, author, genre, cents, stock, tags, blurb"

func (s *catalogue) list(ctx context.Context, in ListBooks) (Page[Book], error) {
	where, args := "instr(lower(title), lower(?)) + instr(lower(author), lower(?)) > 0 or ? = ''", []any{in.Search, in.Search, in.Search}
	if len(in.Genre) > 0 {
		where = "(" + where + ") and genre in (?" + strings.Repeat(", ?", len(in.Genre)-1) + ")"
		for _, g := range in.Genre {
			args = append(args, string(g))
		}
	}
	var p Page[Book]
	if err := s.db.QueryRowContext(ctx, "select count(*) from books where "+where, args...).Scan(&p.Total); err != nil {
		return p, err
	}
	// Sort is safe in SQL, because the tag enum of ListBooks.Sort permits only three columns.
	rows, err := s.db.QueryContext(ctx, "select "+columns+" from books where "+where+" order by "+in.Sort+", id limit ? offset ?", append(args, in.Limit, in.Offset)...)
	if err != nil {
		return p, err
	}
	defer rows.Close()
	for rows.Next() {
		b, err := scan(rows)
		if err != nil {
			return p, err
		}
		p.Items = append(p.Items, b)
	}
	if next := in.Offset + in.Limit; next < p.Total {
		p.Next = next
	}
	return p, rows.Err()
}

// all yields every book while it reads the rows of the database.
func (s *catalogue) all(ctx context.Context) func(yield func(Book, error) bool) {
	return func(yield func(Book, error) bool) {
		rows, err := s.db.QueryContext(ctx, "select "+columns+" from books order by id")
		if err != nil {
			yield(Book{}, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			if b, err := scan(rows); !yield(b, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(Book{}, err)
		}
	}
}

func scan(row interface{ Scan(...any) error }) (b Book, err error) {
	var added int64
	var tags string
	var blurb sql.NullString
	err = row.Scan(&b.ID, &added, &b.Version, &b.ISBN, &b.Title, &b.Author, &b.Genre, &b.Cents, &b.Stock, &tags, &blurb)
	if errors.Is(err, sql.ErrNoRows) {
		return b, noBook
	}
	b.Added = time.UnixMilli(added).UTC()
	if err == nil && tags != "" {
		err = json.Unmarshal([]byte(tags), &b.Tags)
	}
	if blurb.Valid {
		b.Blurb = typed.NullableOf(blurb.String)
	}
	return b, err
}

func (s *catalogue) find(ctx context.Context, id int64) (Book, error) {
	return scan(s.db.QueryRowContext(ctx, "select "+columns+" from books where id = ?", id))
}

// values returns the values of the columns that the staff can set.
func (d *BookData) values() []any {
	blurb := sql.NullString{String: d.Blurb.Value, Valid: d.Blurb.Set}
	tags, _ := json.Marshal(d.Tags) // strings can always be encoded
	return []any{d.ISBN, d.Title, d.Author, string(d.Genre), d.Cents, d.Stock, string(tags), blurb}
}

func (s *catalogue) add(ctx context.Context, d BookData) (Book, error) {
	row := s.db.QueryRowContext(ctx, "insert into books (added, version, isbn, title, author, genre, cents, stock, tags, blurb) values (?, 1, ?, ?, ?, ?, ?, ?, ?, ?) returning "+columns,
		append([]any{time.Now().UnixMilli()}, d.values()...)...)
	b, err := scan(row)
	return b, isbnError(err)
}

func isbnError(err error) error {
	if err != nil && strings.Contains(err.Error(), "UNIQUE constraint failed: books.isbn") {
		return sameISBN.WithCause(err)
	}
	return err
}

// within runs f in a transaction.
func (s *catalogue) within(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func (s *catalogue) change(ctx context.Context, id int64, f func(*Book) error) (b Book, err error) {
	err = s.within(ctx, func(tx *sql.Tx) error {
		if b, err = scan(tx.QueryRowContext(ctx, "select "+columns+" from books where id = ?", id)); err != nil {
			return err
		}
		if err = f(&b); err != nil {
			return err
		}
		b.Version++
		_, err = tx.ExecContext(ctx, "update books set version = version + 1, isbn = ?, title = ?, author = ?, genre = ?, cents = ?, stock = ?, tags = ?, blurb = ? where id = ?",
			append(b.values(), id)...)
		return isbnError(err)
	})
	return b, err
}

func (s *catalogue) remove(ctx context.Context, id int64) error {
	return found(s.db.ExecContext(ctx, "delete from books where id = ?", id))
}

// found returns the fault noBook if a statement has affected no row.
func found(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		return noBook
	}
	return err
}

func (s *catalogue) setCover(ctx context.Context, id int64, f typed.File) error {
	return found(s.db.ExecContext(ctx, "update books set cover = ?, cover_type = ? where id = ?", f.Data, f.ContentType, id))
}

func (s *catalogue) cover(ctx context.Context, id int64) (kind string, data []byte, err error) {
	var media sql.NullString
	err = s.db.QueryRowContext(ctx, "select cover_type, cover from books where id = ?", id).Scan(&media, &data)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", nil, noBook
	case err == nil && !media.Valid:
		return "", nil, noCover
	}
	return media.String, data, err
}

// order stores an order and removes the copies from the stock. left has the remaining stock of each book.
func (s *catalogue) order(ctx context.Context, mail string, lines []OrderLine) (o Order, left []Notice, err error) {
	o = Order{Mail: mail, Lines: lines, At: time.Now().UTC()}
	seen := map[int64]bool{}
	for _, line := range lines {
		if seen[line.Book] {
			return o, nil, bookTwice.Member("book", line.Book)
		}
		seen[line.Book] = true
	}
	err = s.within(ctx, func(tx *sql.Tx) error {
		for _, line := range lines {
			b, err := scan(tx.QueryRowContext(ctx, "select "+columns+" from books where id = ?", line.Book))
			if err != nil {
				return err
			}
			if b.Stock < line.Copies {
				return outOfStock.With(fmt.Sprintf("There are %d copies of %q", b.Stock, b.Title)).Member("book", b.ID)
			}
			if _, err = tx.ExecContext(ctx, "update books set stock = stock - ?, version = version + 1 where id = ?", line.Copies, line.Book); err != nil {
				return err
			}
			o.Cents += b.Cents * line.Copies
			left = append(left, Notice{Book: b.ID, Stock: b.Stock - line.Copies})
		}
		result, err := tx.ExecContext(ctx, "insert into orders (at, mail, cents) values (?, ?, ?)", o.At.UnixMilli(), mail, o.Cents)
		if err == nil {
			o.ID, err = result.LastInsertId()
		}
		return err
	})
	return o, left, err
}
