// Command testing is a small service whose tests, in main_test.go, show three ways: in memory, of a typed operation, and on both
// engines.
//
//	go test ./examples/testing
package main

import (
	"context"
	"log"
	"sync"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

// A Note is a text with a number.
type Note struct {
	ID   int    `json:"id"`
	Text string `json:"text"`
}

// CreateNote is the body of a request that creates a note.
type CreateNote struct {
	Body struct {
		Text string `json:"text" minLength:"1" maxLength:"100"`
	}
}

// FindNote selects a note.
type FindNote struct {
	ID int `path:"id"`
}

type service struct {
	mu    sync.Mutex
	notes []Note
}

func (s *service) create(_ *dunlin.Request, in CreateNote) (Note, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, Note{ID: len(s.notes) + 1, Text: in.Body.Text})
	return s.notes[len(s.notes)-1], nil
}

func (s *service) find(_ *dunlin.Request, in FindNote) (Note, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.ID < 1 || in.ID > len(s.notes) {
		return Note{}, typed.NotFound
	}
	return s.notes[in.ID-1], nil
}

func main() {
	if err := newApp(dunlin.Config{Addr: "127.0.0.1:3000"}).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func newApp(config dunlin.Config) *dunlin.App {
	app, s := dunlin.New(config), new(service)
	typed.Post(app, "/notes", s.create)
	typed.Get(app, "/notes/{id}", s.find).Faults(typed.NotFound)
	return app
}
