package main

import (
	"io"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

func TestHosts(t *testing.T) {
	client := dunlintest.NewClient(newApp(dunlin.Config{}))
	for url, want := range map[string]string{
		"http://acme.example.com/":       "200 OK ACME: Road runners welcome",
		"http://globex.example.com:3000": "200 OK Globex: We build the future",
		"http://nobody.example.com/":     "404 Not Found",
		"http://api.example.com/tenants": `200 OK {"acme":`,
		"http://example.com/":            "404 Not Found",
	} {
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if got := resp.Status + " " + string(body); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", url, got, want)
		}
	}
}
