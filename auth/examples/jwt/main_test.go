package main

import (
	"crypto/ed25519"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

func TestTokens(t *testing.T) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := dunlintest.NewClient(newApp(dunlin.Config{}, private))
	do := func(resp *http.Response, err error) (int, string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	me := func(token string) (int, string) {
		r, err := http.NewRequest("GET", "http://h.example/me", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		return do(client.Do(r))
	}
	if status, _ := do(client.PostForm("http://h.example/login", url.Values{"name": {"ada"}, "password": {"guess"}})); status != 401 {
		t.Errorf("wrong password: got %d", status)
	}
	status, token := do(client.PostForm("http://h.example/login", url.Values{"name": {"ada"}, "password": {"engine"}}))
	if status != 200 {
		t.Fatal(status, token)
	}
	if status, user := me(token); status != 200 || user != "ada" {
		t.Errorf("got %d %q", status, user)
	}
	if status, _ := me(token + "x"); status != 401 {
		t.Errorf("modified token: got %d", status)
	}
}
