// Command chi is the reference service on chi.
package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

func main() {
	r := chi.NewRouter()
	r.Get("/plaintext", func(w http.ResponseWriter, r *http.Request) {
		writeText(w, service.Greeting)
	})
	r.Get("/json", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, service.Message{Message: service.Greeting})
	})
	r.Get("/users/{id}", func(w http.ResponseWriter, r *http.Request) {
		writeText(w, chi.URLParam(r, "id"))
	})
	r.Get("/users/{id}/{action}", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, service.UserAction{ID: chi.URLParam(r, "id"), Action: chi.URLParam(r, "action")})
	})
	r.Post("/echo", func(w http.ResponseWriter, r *http.Request) {
		// The body is read before the answer, because net/http discards the unread part of a body
		// when the handler answers.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.Write(body)
	})
	r.Get("/api/v1/users", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, service.Users())
	})
	r.Get("/headers", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", service.CacheControl)
		writeText(w, service.Bucket)
	})
	r.Get("/sleep", func(w http.ResponseWriter, r *http.Request) {
		service.Sleep(r.URL.Query().Get("ms"))
		writeText(w, service.Greeting)
	})
	r.Get("/paths/*", func(w http.ResponseWriter, r *http.Request) {
		writeText(w, service.Greeting)
	})
	r.Get("/healthz", func(w http.ResponseWriter, r *http.Request) {
		writeText(w, "ok")
	})
	log.Fatal(http.Serve(service.Listen("chi"), r))
}

func writeText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, text)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}
