package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

func TestPages(t *testing.T) {
	client := dunlintest.NewClient(newApp(dunlin.Config{}))
	for _, c := range []struct {
		path, accept string
		status       int
		want, cache  string
	}{
		{"/", "text/html", 200, "<title>Notes</title>", "no-cache"},
		{"/notes/7", "text/html", 200, "<title>Notes</title>", "no-cache"},
		{"/missing.png", "image/png", 404, "", ""},
		{"/app.4f3a09bc.js", "*/*", 200, "fetch", "immutable"},
		{"/api/notes/7", "application/json", 200, `{"id":"7","text":"a note"}`, ""},
	} {
		r, err := http.NewRequest("GET", "http://h.example"+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", c.accept)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != c.status || !strings.Contains(string(body), c.want) || !strings.Contains(resp.Header.Get("Cache-Control"), c.cache) {
			t.Errorf("%s: got %s %q %q", c.path, resp.Status, resp.Header.Get("Cache-Control"), body)
		}
	}
}
