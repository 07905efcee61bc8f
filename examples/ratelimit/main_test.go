package main

import (
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

func TestRateLimit(t *testing.T) {
	client := dunlintest.NewClient(newApp(dunlin.Config{}))
	for i, want := range []int{200, 200, 200, 429} {
		resp, err := client.Post("http://h.example/login", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want || want == 429 && resp.Header.Get("Retry-After") == "" {
			t.Errorf("login %d: got %s %v, want %d", i, resp.Status, resp.Header, want)
		}
	}
}
