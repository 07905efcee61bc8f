// Command chidb serves the routes that use a database with chi.
package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/dunlinhttp/dunlin/bench/peers/db/data"
	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

func main() {
	ln, source := data.Listen("chi-db")
	log.Fatal(http.Serve(ln, handlers(source)))
}

func handlers(source *data.Source) http.Handler {
	r := chi.NewRouter()
	r.Get("/plaintext", func(w http.ResponseWriter, r *http.Request) {
		writeText(w, service.Greeting, nil)
	})
	r.Get("/db", func(w http.ResponseWriter, r *http.Request) {
		row, err := source.One(r.Context())
		writeJSON(w, row, err)
	})
	r.Get("/queries", func(w http.ResponseWriter, r *http.Request) {
		rows, err := source.Many(r.Context(), data.Count(r.URL.Query().Get("n")))
		writeJSON(w, rows, err)
	})
	r.Get("/updates", func(w http.ResponseWriter, r *http.Request) {
		rows, err := source.Update(r.Context(), data.Count(r.URL.Query().Get("n")))
		writeJSON(w, rows, err)
	})
	r.Get("/cached", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, source.Cached(data.Count(r.URL.Query().Get("n"))), nil)
	})
	r.Get("/fortunes", func(w http.ResponseWriter, r *http.Request) {
		fortunes, err := source.Fortunes(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", data.HTML)
		data.Page.Execute(w, fortunes)
	})
	r.Get("/wait", func(w http.ResponseWriter, r *http.Request) {
		text, err := source.Wait(r.URL.Query().Get("us"))
		writeText(w, text, err)
	})
	r.Get("/slow", func(w http.ResponseWriter, r *http.Request) {
		writeText(w, service.Greeting, source.Slow(r.Context()))
	})
	r.Get("/compute", func(w http.ResponseWriter, r *http.Request) {
		writeText(w, data.Compute(), nil)
	})
	r.Get("/healthz", func(w http.ResponseWriter, r *http.Request) {
		writeText(w, "ok", nil)
	})
	return r
}

func writeText(w http.ResponseWriter, text string, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, text)
}

func writeJSON(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}
