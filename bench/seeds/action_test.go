package seeds_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// Post 000 (2015) measured the cost of returning a response from an action instead of writing it. It compared a response
// value with a header map, copied into the writer's, with a handler that writes directly:
//
//	map-based value   1,908 ns   728 B   6 allocations
//	standard handler  1,357 ns   504 B   5 allocations
type account struct {
	Name    string `json:"name"`
	Balance int    `json:"balance"`
	Active  bool   `json:"active"`
}

var someAccount = account{Name: "Calidris alpina", Balance: 42, Active: true}

var accountAnswer = answer{
	status: http.StatusOK,
	headers: map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-store", "Content-Length": "53",
	},
	body: `{"name":"Calidris alpina","balance":42,"active":true}`,
}

// mapValue is the response of the post: a status, a map and a body, written at the end.
type mapValue struct {
	status int
	header http.Header
	body   []byte
}

func jsonValue(v any) mapValue {
	body, err := json.Marshal(v)
	if err != nil {
		return mapValue{status: http.StatusInternalServerError}
	}
	return mapValue{status: http.StatusOK, body: body, header: http.Header{
		"Content-Type":   {"application/json"},
		"Content-Length": {strconv.Itoa(len(body))},
	}}
}

func (m mapValue) with(name, value string) mapValue {
	m.header.Set(name, value)
	return m
}

func (m mapValue) writeTo(w http.ResponseWriter) {
	header := w.Header()
	for name, values := range m.header {
		for _, value := range values {
			header.Add(name, value)
		}
	}
	w.WriteHeader(m.status)
	w.Write(m.body)
}

func mapValueHandler() http.Handler {
	action := func(*http.Request) mapValue {
		return jsonValue(&someAccount).with("Cache-Control", "no-store")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		action(r).writeTo(w)
	})
}

func stdHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := json.Marshal(&someAccount)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		header := w.Header()
		header.Set("Content-Type", "application/json")
		header.Set("Content-Length", strconv.Itoa(len(body)))
		header.Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
		w.Write(body)
	})
}

// dunlinHandler is a complete app: unlike the two above it also finds the route.
func dunlinHandler() http.Handler {
	app := dunlin.New(dunlin.Config{})
	app.Get("/account", func(*dunlin.Request) dunlin.Response {
		return dunlin.JSON(someAccount).Header("Cache-Control", "no-store")
	})
	return app
}

var actionHandlers = []struct {
	name string
	make func() http.Handler
}{
	{"map-value", mapValueHandler},
	{"std", stdHandler},
	{"dunlin", dunlinHandler},
}

func TestActionResponse(t *testing.T) {
	for _, h := range actionHandlers {
		t.Run(h.name, func(t *testing.T) {
			check(t, h.make(), httptest.NewRequest("GET", "/account", nil), accountAnswer)
		})
	}
}

func BenchmarkActionResponse(b *testing.B) {
	for _, h := range actionHandlers {
		b.Run(h.name, func(b *testing.B) {
			serve(b, h.make(), httptest.NewRequest("GET", "/account", nil), accountAnswer)
		})
	}
}

// The cost of a request with a path parameter, without a server.
func BenchmarkPathParameter(b *testing.B) {
	const id = "8e605ad7-554a-450d-a72d-d0098d336e8e"
	want := answer{status: http.StatusOK, body: id}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Write([]byte(r.PathValue("id")))
	})
	app := dunlin.New(dunlin.Config{})
	app.Get("/users/{id}", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Param("id")) })
	b.Run("std", func(b *testing.B) { serve(b, mux, httptest.NewRequest("GET", "/users/"+id, nil), want) })
	b.Run("dunlin", func(b *testing.B) { serve(b, app, httptest.NewRequest("GET", "/users/"+id, nil), want) })
}

// serve measures handler with a writer that discards everything.
func serve(b *testing.B, handler http.Handler, request *http.Request, want answer) {
	check(b, handler, request, want)
	w := newDiscard()
	b.ReportAllocs()
	for b.Loop() {
		w.reset()
		handler.ServeHTTP(w, request)
	}
	if w.bytes != len(want.body) {
		b.Fatalf("last answer: got %d bytes, want %d", w.bytes, len(want.body))
	}
}
