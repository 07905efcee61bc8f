package interop_test

import (
	"net/http"
	"testing"

	"github.com/rs/cors"

	"github.com/dunlinhttp/dunlin"
)

func TestCORS(t *testing.T) {
	onEngines(t, func(_ *testing.T, app *dunlin.App) {
		app.UseStd(cors.New(cors.Options{
			AllowedOrigins: []string{"https://good.example"},
			AllowedMethods: []string{"GET", "PUT"},
			AllowedHeaders: []string{"X-Token"},
		}).Handler)
		app.Put("/thing", func(*dunlin.Request) dunlin.Response {
			return dunlin.Text("put").AddHeader("Vary", "Accept")
		})
	}, func(t *testing.T, url string) {
		resp, got := ask(t, "PUT", url+"/thing", "x", "Origin", "https://good.example")
		if got != "put" || resp.Header.Get("Access-Control-Allow-Origin") != "https://good.example" {
			t.Errorf("good origin: got %q %v", got, resp.Header)
		}
		if vary := resp.Header.Values("Vary"); len(vary) != 2 || vary[0] != "Origin" || vary[1] != "Accept" {
			t.Errorf("Vary: got %q", vary)
		}
		resp, got = ask(t, "PUT", url+"/thing", "x", "Origin", "https://bad.example")
		if got != "put" || resp.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("bad origin: got %q %v", got, resp.Header)
		}
		// There is no route for OPTIONS, but the middleware of the app sees the request.
		resp, _ = ask(t, "OPTIONS", url+"/thing", "", "Origin", "https://good.example",
			"Access-Control-Request-Method", "PUT", "Access-Control-Request-Headers", "x-token")
		if resp.StatusCode != 204 || resp.Header.Get("Access-Control-Allow-Methods") != "PUT" || resp.Header.Get("Access-Control-Allow-Headers") != "x-token" {
			t.Errorf("preflight: got %d %v", resp.StatusCode, resp.Header)
		}
	})
}

func TestCrossOriginProtection(t *testing.T) {
	onEngines(t, func(_ *testing.T, app *dunlin.App) {
		app.UseStd(http.NewCrossOriginProtection().Handler)
		app.Handle("GET,POST", "/form", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(r.Method()) })
	}, func(t *testing.T, url string) {
		for _, c := range []struct {
			method, site string
			status       int
		}{
			{"POST", "same-origin", 200},
			{"POST", "cross-site", 403},
			{"GET", "cross-site", 200},
		} {
			if resp, got := ask(t, c.method, url+"/form", "", "Sec-Fetch-Site", c.site); resp.StatusCode != c.status {
				t.Errorf("%s %s: got %d %q, want %d", c.method, c.site, resp.StatusCode, got, c.status)
			}
		}
	})
}
