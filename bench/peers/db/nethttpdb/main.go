// Command nethttpdb serves the routes that use a database with only the standard library.
package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"

	"github.com/dunlinhttp/dunlin/bench/peers/db/data"
	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

func main() {
	ln, source := data.Listen("nethttp-db")
	log.Fatal(http.Serve(ln, handlers(source)))
}

func handlers(source *data.Source) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /plaintext", func(w http.ResponseWriter, r *http.Request) {
		writeText(w, service.Greeting, nil)
	})
	mux.HandleFunc("GET /db", func(w http.ResponseWriter, r *http.Request) {
		row, err := source.One(r.Context())
		writeJSON(w, row, err)
	})
	mux.HandleFunc("GET /queries", func(w http.ResponseWriter, r *http.Request) {
		rows, err := source.Many(r.Context(), data.Count(r.URL.Query().Get("n")))
		writeJSON(w, rows, err)
	})
	mux.HandleFunc("GET /updates", func(w http.ResponseWriter, r *http.Request) {
		rows, err := source.Update(r.Context(), data.Count(r.URL.Query().Get("n")))
		writeJSON(w, rows, err)
	})
	mux.HandleFunc("GET /cached", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, source.Cached(data.Count(r.URL.Query().Get("n"))), nil)
	})
	mux.HandleFunc("GET /fortunes", func(w http.ResponseWriter, r *http.Request) {
		fortunes, err := source.Fortunes(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", data.HTML)
		data.Page.Execute(w, fortunes)
	})
	mux.HandleFunc("GET /wait", func(w http.ResponseWriter, r *http.Request) {
		text, err := source.Wait(r.URL.Query().Get("us"))
		writeText(w, text, err)
	})
	mux.HandleFunc("GET /slow", func(w http.ResponseWriter, r *http.Request) {
		writeText(w, service.Greeting, source.Slow(r.Context()))
	})
	mux.HandleFunc("GET /compute", func(w http.ResponseWriter, r *http.Request) {
		writeText(w, data.Compute(), nil)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		writeText(w, "ok", nil)
	})
	return mux
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
