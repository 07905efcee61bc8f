package main

import (
	"net/http"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

func TestAddresses(t *testing.T) {
	app := newApp(dunlin.Config{})
	inner := app.Inner(innerAddr).App() // the same group as in newApp
	public, private := dunlintest.Serve(t, app), dunlintest.Serve(t, inner)
	for url, want := range map[string]int{
		public + "/": 200, public + "/stats": 404, public + "/debug/pprof/": 404,
		private + "/": 404, private + "/stats": 200, private + "/debug/pprof/": 200, private + "/ready": 200,
	} {
		resp, err := http.Get("http://" + url)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: got %s, want %d", url, resp.Status, want)
		}
	}
}
