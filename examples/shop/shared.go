package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/typed"
)

// shared is the state that all processes of the shop share in a store: the responses to orders by idempotency key, the
// rate limits of customers, and the baskets.
type shared struct {
	store   store.Store
	keys    store.Store // idempotency keys of orders, with their responses
	bytes   int64       // maximum memory of keys, in bytes
	perHour int         // maximum number of orders of an address in an hour; 0: no limit
	baskets *middleware.Sessions[basket]
}

// A basket is the current selection of a visitor: the number of copies by the ID of the book.
type basket map[int64]int64

var basketGone = typed.NewFault(409, "basket-gone", "The basket has expired")

func newShared(st, keys store.Store, bytes int64, perHour int) *shared {
	return &shared{st, keys, bytes, perHour, middleware.NewSessions[basket](middleware.SessionConfig{Store: st, Cookie: "__Host-basket"})}
}

// browsing limits the rate of requests of an address. While the store is unavailable, each process counts for itself,
// because some requests too many are better than no service.
func (s *shared) browsing() dunlin.Middleware {
	return typed.Declares(middleware.RateLimit(middleware.RateLimitConfig{
		Name: "browsing", Limit: 6_000_000, Window: time.Hour, Store: s.store, Away: middleware.RateAwayLimitLocally,
	}).Middleware(), typed.Status{Code: 429, Description: "Too many requests from this address"})
}

// once makes orders idempotent. While the store is unavailable, the shop cannot detect repeated orders, so it refuses
// orders with a key.
func (s *shared) once() dunlin.Middleware {
	return typed.Declares(middleware.Idempotency(middleware.IdempotencyConfig{
		Store: s.keys, StoreBytes: s.bytes, Lease: 10 * time.Minute, Anonymous: true, // customers do not sign in
	}),
		typed.Status{Code: 400, Description: "The Idempotency-Key is malformed"},
		typed.Status{Code: 409, Description: "The request with this Idempotency-Key has not ended"},
		typed.Status{Code: 422, Description: "The Idempotency-Key was used for another order"},
		typed.Status{Code: 429, Description: "The address has sent too many orders with keys"},
		typed.Status{Code: 503, Description: "Temporarily unavailable; try again later"})
}

// ordering limits the rate of orders of an address. While the store is unavailable, all orders are refused.
func (s *shared) ordering() dunlin.Middleware {
	if s.perHour == 0 {
		return func(next dunlin.Action) dunlin.Action { return next }
	}
	return typed.Declares(middleware.RateLimit(middleware.RateLimitConfig{
		Name: "orders", Limit: s.perHour, Window: time.Hour, Store: s.store, Away: middleware.RateAwayRefuse,
	}).Middleware(),
		typed.Status{Code: 429, Description: "The address has placed too many orders"},
		typed.Status{Code: 503, Description: "Temporarily unavailable; try again later"})
}

// register adds the routes that need a visitor's basket.
func (s *shared) register(app *dunlin.App) {
	visit := app.Group("/basket", s.baskets.Middleware())
	typed.Get(visit, "", s.show).Name("showBasket").Tags("orders").Faults(typed.ServiceUnavailable).
		Summary("Shows the basket").Description("What the visitor has chosen so far. It is forgotten after half an hour without a visit.")
	typed.Post(visit, "/lines", s.add).Name("addToBasket").Tags("orders").Faults(basketGone, typed.ServiceUnavailable).
		Summary("Puts books into the basket").Description("The response has the whole basket.")
}

// Basket is the basket of a visitor as clients see it.
type Basket struct {
	Copies int64            `json:"copies" minimum:"0" description:"Total number of copies"`
	Lines  map[string]int64 `json:"lines" description:"Number of copies by the ID of the book"`
}

// AddToBasket puts copies into the basket.
type AddToBasket struct{ Body OrderLine }

func (b basket) view() Basket {
	view := Basket{Lines: map[string]int64{}}
	for book, copies := range b {
		view.Lines[fmt.Sprint(book)] = copies
		view.Copies += copies
	}
	return view
}

func (s *shared) show(r *dunlin.Request, _ struct{}) (Basket, error) {
	b, _, err := s.baskets.Get(r)
	return b.view(), basketError(err)
}

func (s *shared) add(r *dunlin.Request, in AddToBasket) (Basket, error) {
	var now Basket
	err := s.baskets.Update(r, func(b *basket) error {
		if *b == nil {
			*b = basket{}
		}
		(*b)[in.Body.Book] += in.Body.Copies
		now = b.view()
		return nil
	})
	return now, basketError(err)
}

func basketError(err error) error {
	switch {
	case errors.Is(err, middleware.ErrSessionEnded):
		return basketGone.WithCause(err)
	case errors.Is(err, store.ErrUnavailable):
		return typed.ServiceUnavailable.WithCause(err)
	}
	return err
}
