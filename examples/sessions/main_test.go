package main

import (
	"io"
	"net/http/cookiejar"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

func TestVisits(t *testing.T) {
	browser := dunlintest.NewClient(newApp(dunlin.Config{}))
	browser.Jar, _ = cookiejar.New(nil)
	visit := func(want string) {
		t.Helper()
		resp, err := browser.Get("http://h.example/")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if body, _ := io.ReadAll(resp.Body); string(body) != want {
			t.Errorf("got %q, want %q", body, want)
		}
	}
	visit("visit 1\n")
	visit("visit 2\n")
	resp, err := browser.Post("http://h.example/end", "", nil)
	if err != nil || resp.StatusCode != 204 {
		t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
	visit("visit 1\n")
}
