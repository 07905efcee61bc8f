package typed

import (
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"reflect"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/negotiate"
)

// A Page is the output of an action that answers 200 with a part of a list. Next is the cursor of the next page; it is empty
// on the last page. The answer also has a link to the next page in a Link header with rel="next" (RFC 8288). The link keeps
// the other query parameters. Use a [Pager] to make pages.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty" description:"The cursor of the next page; absent on the last page"`
}

// cursorParam is the query parameter of [PageQuery.Cursor].
const cursorParam = "cursor"

// PageQuery has the query parameters of a list. Embed it in the input of an action that returns a [Page]. If you need other
// limits, declare fields for the same parameters in place of PageQuery, and pass their values to [Pager.After] and
// [Pager.Page].
type PageQuery struct {
	Cursor string `query:"cursor" default:"" maxLength:"2000" description:"The cursor of the page; the first page has none"`
	Limit  int    `query:"limit" default:"20" minimum:"1" maximum:"100" description:"The maximum number of items"`
}

// A Signer signs cursors, so that clients cannot make or change them. *middleware.KeyRing implements Signer.
type Signer interface {
	Sign(purpose, value string) string
	Verify(purpose, signed string) (string, error)
}

// InvalidCursor is the fault for a cursor that was not issued for the list.
var InvalidCursor = NewFault(http.StatusBadRequest, "invalid-cursor", "The cursor is not one of this list")

// A Pager makes the pages and cursors of one list. T is the type of an item. C is the type of an item's position in the order
// of the list, such as its ID, or a struct of a date and an ID:
//
//	var books = typed.NewPager(keys, "books", func(b Book) int64 { return b.ID })
//
//	func list(r *dunlin.Request, in ListBooks) (typed.Page[Book], error) {
//		after, err := books.After(in.PageQuery.Cursor)
//		if err != nil {
//			return typed.Page[Book]{}, err
//		}
//		rows, err := query(r.Context(), after, in.Limit+1) // one more row tells whether there is a next page
//		return books.Page(rows, in.Limit), err
//	}
//
// A cursor is the JSON of a position, with a signature. It is not encrypted. A cursor that one user got is also valid for
// other users, so the query must select rows by the user of the request.
type Pager[T, C any] struct {
	keys     Signer
	purpose  string
	position func(T) C
}

// NewPager returns the pager of a list. The name of the list is part of the signature, so a cursor of another list is
// refused. NewPager panics if an argument is missing, or if C cannot be encoded as JSON.
func NewPager[T, C any](keys Signer, list string, position func(T) C) *Pager[T, C] {
	if keys == nil || list == "" || position == nil {
		panic(fmt.Sprintf("typed: NewPager(%q): it needs keys, the name of the list and a function", list))
	}
	if _, err := outputNode(reflect.TypeFor[C]()); err != nil {
		panic(fmt.Sprintf("typed: NewPager(%q): the position: %v", list, err))
	}
	return &Pager[T, C]{keys, "typed cursor\x00" + list, position}
}

// After returns the position in a cursor, after which the page begins, or nil for the first page. It returns InvalidCursor if
// the cursor was not issued for this list.
func (p *Pager[T, C]) After(cursor string) (*C, error) {
	if cursor == "" {
		return nil, nil
	}
	text, err := p.keys.Verify(p.purpose, cursor)
	if err != nil {
		return nil, InvalidCursor.WithCause(err)
	}
	position := new(C)
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, position)
	}
	if err != nil { // the program that signed the cursor had another type C
		return nil, InvalidCursor.WithCause(err)
	}
	return position, nil
}

// Page returns a page of at most limit items. If items has more, the page has the cursor of the next page. Therefore select
// limit+1 rows.
func (p *Pager[T, C]) Page(items []T, limit int) Page[T] {
	if limit < 1 || len(items) <= limit {
		return Page[T]{Items: items}
	}
	items = items[:limit:limit]
	return Page[T]{Items: items, Next: p.Cursor(p.position(items[limit-1]))}
}

// Cursor returns the cursor of the page after a position. It panics if the position cannot be encoded as JSON, as with NaN.
func (p *Pager[T, C]) Cursor(after C) string {
	b, err := json.Marshal(after)
	if err != nil {
		panic(fmt.Sprintf("typed: encode position of a cursor: %v", err))
	}
	return p.keys.Sign(p.purpose, base64.RawURLEncoding.EncodeToString(b))
}

func (Page[T]) result() (*result, error) {
	node, err := outputNode(reflect.TypeFor[Page[T]]())
	if err != nil {
		return nil, err
	}
	text, err := outputNode(reflect.TypeFor[string]())
	if err != nil {
		return nil, err
	}
	return &result{
		answers: []Answer{{Status: http.StatusOK, MediaType: mediaJSON, Schema: Schema{node}, Headers: []AnswerHeader{{Name: "Link", Schema: Schema{text}}}}},
		faults:  []*Fault{InvalidCursor},
		bodies:  []reflect.Type{reflect.TypeFor[struct{ Items []T }]()},
		respond: func(from address, f *negotiate.Format) dunlin.Response {
			if f != nil {
				return f.Response(load[Page[T]](from))
			}
			return dunlin.JSON(load[Page[T]](from), dunlin.JSONNilAsEmpty, dunlin.JSONOmitWriteOnly)
		},
		next:    func(from address) string { return pointer[Page[T]](from).Next },
		receive: func(a *received, to address) error { return json.Unmarshal(a.body, pointer[Page[T]](to)) },
	}, nil
}

// MarshalXML encodes the page as an element page with the elements items and next.
func (p Page[T]) MarshalXML(e *xml.Encoder, _ xml.StartElement) error {
	type page struct {
		XMLName xml.Name `xml:"page"`
		Items   []T      `xml:"items>item"`
		Next    string   `xml:"next,omitempty"`
	}
	return e.Encode(page{Items: p.Items, Next: p.Next})
}
