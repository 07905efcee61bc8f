//go:build compareprofile

package main

import (
	"net/http"
	"net/http/pprof"

	"github.com/dunlinhttp/dunlin"
)

// A program that contains net/http/pprof has its allocations sampled, which where memory is limited costs some
// of that and of the processor's time. So only programs built to be profiled have the routes:
//
//	go run -tags compareprofile ./examples/users
func init() {
	more = append(more, func(app *dunlin.App) { app.Mount("/debug/pprof", profiles()) })
}

// profiles serves net/http/pprof without the default mux.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
