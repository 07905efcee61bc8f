package main

import (
	"encoding/json"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/typed"
)

// A record has members of all kinds.
type record struct {
	Name    string             `json:"name,omitempty" minLength:"1" maxLength:"4000000"`
	Mail    string             `json:"mail,omitempty" pattern:"^[^@]+@[^@]+$"`
	Age     int                `json:"age,omitempty" minimum:"0" maximum:"150"`
	Score   float64            `json:"score,omitempty"`
	Tags    []string           `json:"tags,omitempty" maxItems:"1000000"`
	Any     any                `json:"any,omitempty"`
	Bag     []any              `json:"bag,omitempty"`
	Set     []any              `json:"set,omitempty" uniqueItems:"true"`
	Open    map[string]any     `json:"open,omitempty"`
	Records []record           `json:"records,omitempty"`
	Wide    []wide             `json:"wide,omitempty"`
	Lists   [][]string         `json:"lists,omitempty"`
	Texts   map[string]string  `json:"texts,omitempty"`
	Counts  map[int]int        `json:"counts,omitempty"`
	Nested  map[string]*record `json:"nested,omitempty"`
	Raws    []json.RawMessage  `json:"raws,omitempty"`
	Numbers []json.Number      `json:"numbers,omitempty"`
	Times   []time.Time        `json:"times,omitempty"`
	Ints    []int              `json:"ints,omitempty"`
	Floats  []float64          `json:"floats,omitempty"`
	Links   []*wide            `json:"links,omitempty"`
	Lazy    []lazy             `json:"lazy,omitempty"`
}

// A wide needs much more memory than its JSON, {}.
type wide struct {
	Text [16]string  `json:"text,omitempty"`
	List [16]float64 `json:"list,omitempty"`
}

// A lazy has members with defaults.
type lazy struct {
	Text string   `json:"text" default:"a text that is absent"`
	List []string `json:"list" default:"[\"one\",\"two\",\"three\"]"`
}

// typedRoutes registers operations with JSON bodies, and actions that decode JSON or forms.
func typedRoutes(app *dunlin.App) {
	type one struct{ Body record }
	type list struct{ Body []any }
	type wides struct{ Body []wide }
	small := app.WithMaxBody(4 << 20)
	typed.Post(small, "/typed/record", func(*dunlin.Request, one) (typed.None, error) { return typed.None{}, nil })
	typed.Post(small, "/typed/any", func(*dunlin.Request, list) (typed.None, error) { return typed.None{}, nil })
	typed.Post(small, "/typed/wide", func(*dunlin.Request, wides) (typed.None, error) { return typed.None{}, nil })
	small.Post("/decode/any", decoded[any])
	small.Post("/decode/wide", decoded[[]wide])
	small.Post("/form", func(r *dunlin.Request) dunlin.Response {
		if _, err := r.Form(); err != nil {
			return dunlin.Error(err)
		}
		return dunlin.NoContent()
	})
}

// decoded decodes a body without the rules of typed actions.
func decoded[T any](r *dunlin.Request) dunlin.Response {
	if _, err := dunlin.Decode[T](r); err != nil {
		return dunlin.Error(err)
	}
	return dunlin.NoContent()
}
