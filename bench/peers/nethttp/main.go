// Command nethttp is the reference service with only the standard library. With -loop it serves the same handlers on Dunlin's
// loop engine.
package main

import (
	"encoding/json"
	"flag"
	"io"
	"log"
	"net/http"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/bench/peers/service"
)

func main() {
	loop := flag.Bool("loop", false, "have the loop engine serve the handlers")
	h2c := flag.Bool("h2c", false, "also accept HTTP/2 in clear text")
	ln := service.Listen("nethttp", "h2", "http/1.1")
	if !*loop {
		server := &http.Server{Handler: handlers()}
		if *h2c {
			server.Protocols = new(http.Protocols)
			server.Protocols.SetHTTP1(true)
			server.Protocols.SetUnencryptedHTTP2(true)
		}
		log.Fatal(server.Serve(ln))
	}
	app := dunlin.New(dunlin.Config{Engine: dunlin.EngineLoop})
	app.Mount("/", handlers())
	log.Fatal(app.Serve(ln))
}

func handlers() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /plaintext", func(w http.ResponseWriter, r *http.Request) {
		writeText(w, service.Greeting)
	})
	mux.HandleFunc("GET /json", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, service.Message{Message: service.Greeting})
	})
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) {
		writeText(w, r.PathValue("id"))
	})
	mux.HandleFunc("GET /users/{id}/{action}", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, service.UserAction{ID: r.PathValue("id"), Action: r.PathValue("action")})
	})
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		// The body is read before the answer, because net/http discards the unread part of a body when the handler answers.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.Write(body)
	})
	mux.HandleFunc("GET /api/v1/users", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, service.Users())
	})
	mux.HandleFunc("GET /headers", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", service.CacheControl)
		writeText(w, service.Bucket)
	})
	mux.HandleFunc("GET /sleep", func(w http.ResponseWriter, r *http.Request) {
		service.Sleep(r.URL.Query().Get("ms"))
		writeText(w, service.Greeting)
	})
	mux.HandleFunc("GET /paths/{rest...}", func(w http.ResponseWriter, r *http.Request) {
		writeText(w, service.Greeting)
	})
	mux.HandleFunc("GET /file", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeFile(w, r, service.LargeFile())
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		writeText(w, "ok")
	})
	return mux
}

func writeText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, text)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}
