package main

import (
	"net/http"
	"net/http/pprof"
	"runtime"

	"github.com/dunlinhttp/dunlin"
)

// profileRate is Go's default rate for sampling allocations. Sampling costs memory and time, so this program samples only if
// the flag -pprof is set.
var profileRate = stopSampling()

func stopSampling() (rate int) {
	rate, runtime.MemProfileRate = runtime.MemProfileRate, 0
	return rate
}

// addProfiles serves net/http/pprof on an inner address of the app.
func addProfiles(app *dunlin.App, addr string) {
	runtime.MemProfileRate = profileRate
	mux := http.NewServeMux() // not http.DefaultServeMux, to which any package may add routes
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	app.Inner(addr).Mount("/debug/pprof", mux)
}
