// Command nethttpbulk sends and receives large bodies with the standard library.
package main

import (
	"log"
	"net/http"
	"strconv"

	"github.com/dunlinhttp/dunlin/bench/peers/bulk/bulk"
	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

func main() {
	ln := service.Listen("nethttp", "http/1.1")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {})
	mux.HandleFunc("GET "+bulk.Path, func(w http.ResponseWriter, r *http.Request) {
		n, ok := bulk.Asked(r.URL.Query().Get("bytes"))
		if !ok {
			http.Error(w, "bytes must be a number", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_ = bulk.Send(w, n) // fails if the client has disconnected
	})
	mux.HandleFunc("POST "+bulk.Path, func(w http.ResponseWriter, r *http.Request) {
		n, err := bulk.Count(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write(strconv.AppendInt(nil, n, 10))
	})
	log.Fatal(http.Serve(ln, mux))
}
