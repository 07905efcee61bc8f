//go:build compareprofile

package main

import (
	"net/http"
	"net/http/pprof"

	"github.com/dunlinhttp/dunlin"
)

// The runtime samples the allocations of a program that contains net/http/pprof, which costs memory and CPU time. So
// only a program built for profiling has these routes:
//
//	go run -tags compareprofile ./examples/users
func init() {
	more = append(more, func(app *dunlin.App) { app.Mount("/debug/pprof", profiles()) })
}

// profiles serves net/http/pprof without http.DefaultServeMux.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
