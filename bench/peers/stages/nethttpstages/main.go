// Command nethttpstages serves the stages of the blog post (see package stage) with the standard
// library.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"runtime"

	"golang.org/x/sync/semaphore"

	"github.com/dunlinhttp/dunlin/bench/peers/service"
	"github.com/dunlinhttp/dunlin/bench/peers/stages/stage"
)

func main() {
	name := stage.Flag()
	ln := service.Listen("nethttp")
	stage.CountGoroutines()

	sem := semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0)))
	// Each stage has its own function, because otherwise the array would be in the stack frame of
	// all stages.
	users := map[stage.Name]http.HandlerFunc{
		stage.Array: func(w http.ResponseWriter, r *http.Request) {
			writeJSON(w, stage.UsersArray())
		},
		stage.Slice: func(w http.ResponseWriter, r *http.Request) {
			writeJSON(w, stage.UsersSlice())
		},
		stage.Semaphore: func(w http.ResponseWriter, r *http.Request) {
			if sem.Acquire(r.Context(), 1) != nil {
				return
			}
			defer sem.Release(1)
			writeJSON(w, stage.UsersSlice())
		},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {})
	mux.HandleFunc("GET /api/v1/users", users[*name])
	log.Fatal(http.Serve(ln, mux))
}

// writeJSON answers with v as JSON. It ignores errors, because it fails only if the client has
// disconnected.
func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
