package main

import (
	"net/http"
	"net/http/pprof"
	"runtime"

	"github.com/dunlinhttp/dunlin"
)

// profileRate is the rate at which Go samples allocations in programs that contain net/http/pprof. Sampling costs memory and
// time, so this program does not sample unless -pprof requests profiles.
var profileRate = stopSampling()

func stopSampling() (rate int) {
	rate, runtime.MemProfileRate = runtime.MemProfileRate, 0
	return rate
}

// addProfiles serves net/http/pprof on an inner address of the app.
func addProfiles(app *dunlin.App, addr string) {
	runtime.MemProfileRate = profileRate
	mux := http.NewServeMux() // not the default one, which any package may add to
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	app.Inner(addr).Mount("/debug/pprof", mux)
}
