package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
)

// A visitor who has not signed in is redirected to the provider.
func TestLoginBegins(t *testing.T) {
	t.Setenv("CLIENT_ID", "shop")
	var provider *httptest.Server
	provider = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"issuer": provider.URL, "authorization_endpoint": provider.URL + "/authorize", "token_endpoint": provider.URL + "/token",
			"jwks_uri": provider.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"},
		})
	}))
	defer provider.Close()
	browser := dunlintest.NewClient(newApp(dunlin.Config{}, provider.URL))
	var last *url.URL
	browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		last = r.URL
		if strings.HasPrefix(r.URL.String(), provider.URL) {
			return http.ErrUseLastResponse
		}
		return nil
	}
	resp, err := browser.Get("http://localhost:3000/")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if q := last.Query(); last.Path != "/authorize" || q.Get("client_id") != "shop" || q.Get("redirect_uri") != "http://localhost:3000/login/callback" || q.Get("code_challenge") == "" {
		t.Errorf("got redirect to %v", last)
	}
}
