package main

import (
	"net/http"
	"testing"

	"github.com/dunlinhttp/dunlin/acme"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

// Requests in clear text are redirected; requests over TLS are answered. No certificate is ordered before Run.
func TestRedirect(t *testing.T) {
	client := dunlintest.NewClient(newApp("www.example.com", acme.Config{AcceptTerms: true, Folder: t.TempDir()}))
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for url, want := range map[string]int{"http://www.example.com/": 308, "https://www.example.com/": 200, "http://other.example/": 400} {
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: got %s, want %d", url, resp.Status, want)
		}
	}
}
