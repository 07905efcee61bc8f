package main

import (
	"time"

	"github.com/dunlinhttp/dunlin/typed"
)

// A Genre is one of the values of Enum.
type Genre string

// Enum returns all genres.
func (Genre) Enum() []Genre { return []Genre{"novel", "crime", "poetry", "science", "children"} }

// A Book is an item of the shop.
type Book struct {
	ID      int64     `json:"id" minimum:"1" description:"Given by the shop"`
	Added   time.Time `json:"added" description:"When the shop took it into its range"`
	Version int64     `json:"version" minimum:"1" description:"Grows with each change"`
	BookData
}

// BookData is the data of a book that the staff can set.
type BookData struct {
	ISBN   string                 `json:"isbn" pattern:"^97[89][0-9]{10}$" example:"9780142437247"`
	Title  string                 `json:"title" minLength:"1" maxLength:"200" example:"Moby-Dick"`
	Author string                 `json:"author" minLength:"1" maxLength:"100" example:"Herman Melville"`
	Genre  Genre                  `json:"genre"`
	Cents  int64                  `json:"cents" minimum:"0" maximum:"1000000" description:"The price"`
	Stock  int64                  `json:"stock" minimum:"0" maximum:"100000"`
	Tags   []string               `json:"tags,omitempty" maxItems:"10" uniqueItems:"true" items.minLength:"1" items.maxLength:"30"`
	Blurb  typed.Nullable[string] `json:"blurb,omitzero" maxLength:"2000"`
}

// A Page is a part of a list.
type Page[T any] struct {
	Items []T   `json:"items"`
	Total int64 `json:"total" minimum:"0"`
	Next  int64 `json:"next,omitempty" description:"The offset of the next page, absent behind the last"`
}

// An Order is a purchase of a customer.
type Order struct {
	ID    int64       `json:"id"`
	Cents int64       `json:"cents" description:"What it costs in all"`
	Lines []OrderLine `json:"lines"`
	Mail  string      `json:"mail"`
	At    time.Time   `json:"at"`
}

// An OrderLine is a number of copies of one book.
type OrderLine struct {
	Book   int64 `json:"book" minimum:"1"`
	Copies int64 `json:"copies" minimum:"1" maximum:"100"`
}

// A Notice describes a change in the stock.
type Notice struct {
	Book  int64 `json:"book"`
	Stock int64 `json:"stock"`
}

// ListBooks selects books.
type ListBooks struct {
	Limit  int64   `query:"limit" default:"20" minimum:"1" maximum:"100"`
	Offset int64   `query:"offset" default:"0" minimum:"0" maximum:"1000000"`
	Genre  []Genre `query:"genre" description:"Any of these genres"`
	Search string  `query:"search" default:"" maxLength:"100" description:"A part of the title or the author"`
	Sort   string  `query:"sort" default:"title" enum:"title,author,cents"`
}

// BookID is the ID of a book in the path.
type BookID struct {
	ID int64 `path:"id" minimum:"1"`
}

// ShownBook is a book with the tag of its version.
type ShownBook struct {
	ETag string `header:"ETag"`
	Body Book
}

// AddBook adds a book.
type AddBook struct{ Body BookData }

// ReplaceBook replaces a book. With Version it does so only if the book has this version.
type ReplaceBook struct {
	BookID
	Version typed.Optional[int64] `query:"version" minimum:"1" description:"Refuses the change if the book has another version"`
	Body    BookData
}

// PlaceOrder buys books.
type PlaceOrder struct {
	Body struct {
		Mail  string      `json:"mail" format:"email" maxLength:"200"`
		Lines []OrderLine `json:"lines" minItems:"1" maxItems:"20"`
	}
}

// PutCover stores the picture of a book.
type PutCover struct {
	BookID
	Image typed.File `form:"image" contentType:"image/png" maxLength:"2000000"`
}
