package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/auth"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
)

// newRefresher returns a login at a provider that accepts each refresh token once: first r0, then r1.
func newRefresher(t *testing.T, p *idp, claims jwt.MapClaims) (*auth.Login[visit], *auth.Identity) {
	next := 0
	var mu sync.Mutex
	if p.token == nil {
		p.token = func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			if id, secret, _ := r.BasicAuth(); r.FormValue("grant_type") != "refresh_token" || r.FormValue("refresh_token") != fmt.Sprint("r", next) || id != "shop" || secret != "secret" {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
				return
			}
			next++
			answer := map[string]any{"access_token": fmt.Sprint("a", next), "token_type": "Bearer", "refresh_token": fmt.Sprint("r", next), "expires_in": 3600}
			if claims != nil {
				answer["id_token"] = sign(t, jwt.SigningMethodES256, "ec", ecKey, claims)
			}
			_ = json.NewEncoder(w).Encode(answer)
		}
	}
	sessions := middleware.NewSessions[visit](middleware.SessionConfig{Store: store.NewMemory(store.MemoryConfig{})})
	login := auth.NewLogin(loginConfig(p, sessions))
	return login, &auth.Identity{Issuer: p.URL, Subject: "ada", Token: &oauth2.Token{AccessToken: "a0", RefreshToken: "r0", Expiry: time.Now().Add(-time.Minute)}}
}

// Concurrent and later calls with the same refresh token cause one call of the provider, and all have its result.
func TestRefreshOnce(t *testing.T) {
	p := newIDP(t)
	login, who := newRefresher(t, p, nil)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			fresh, err := login.Refresh(t.Context(), who)
			if err != nil || fresh.Token.AccessToken != "a1" || fresh.Token.RefreshToken != "r1" || fresh.Subject != "ada" || !fresh.Token.Valid() {
				t.Errorf("got %+v, %v", fresh, err)
			}
		})
	}
	wg.Wait()
	fresh, err := login.Refresh(t.Context(), who) // the session was read before the refresh
	if err != nil {
		t.Fatal(err)
	}
	if again, err := login.Refresh(t.Context(), fresh); err != nil || again != fresh {
		t.Errorf("valid token was refreshed: %v", err)
	}
	if n := p.exchanged.Load(); n != 1 {
		t.Errorf("got %d calls of the provider", n)
	}
	fresh.Token.Expiry = time.Now().Add(-time.Minute)
	if second, err := login.Refresh(t.Context(), fresh); err != nil || second.Token.AccessToken != "a2" {
		t.Errorf("second refresh: got %+v, %v", second, err)
	}
	if err := fresh.Claims(new(struct{})); err == nil {
		t.Error("got claims without an ID token")
	}
}

func TestRefreshIDToken(t *testing.T) {
	p := newIDP(t)
	for what, change := range map[string]func(jwt.MapClaims){
		"":                         func(jwt.MapClaims) {},
		"other subject":            func(c jwt.MapClaims) { c["sub"] = "eve" },
		"token of another service": func(c jwt.MapClaims) { c["aud"] = "other" },
		"another provider's":       func(c jwt.MapClaims) { c["iss"] = "https://evil.example" },
		"one that has passed":      func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-time.Hour).Unix() },
	} {
		claims := jwt.MapClaims{"iss": p.URL, "aud": "shop", "sub": "ada", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(), "email": "ada@example.com", "EMAIL": "victim@example.com"}
		change(claims)
		p.token = nil
		login, who := newRefresher(t, p, claims)
		fresh, err := login.Refresh(t.Context(), who)
		if what != "" {
			if status := statusOf(err); status != http.StatusBadGateway {
				t.Errorf("%s: got %d %v", what, status, err)
			}
			continue
		}
		var email, none string
		var all map[string]any
		if err != nil || fresh.IDToken == "" || fresh.Claim("email", &email) != nil || email != "ada@example.com" {
			t.Errorf("got %+v, %v, %q", fresh, err, email)
		}
		if err := fresh.Claim("Email", &none); !errors.Is(err, auth.ErrNoClaim) {
			t.Errorf("absent claim: %q, %v", none, err)
		}
		if err := fresh.Claims(&all); err != nil || all["sub"] != "ada" {
			t.Errorf("all claims: got %v, %v", all, err)
		}
		if err := (&auth.Identity{}).Claim("email", &none); err == nil {
			t.Error("got a claim of an identity without a token")
		}
	}
}

func TestRefreshFails(t *testing.T) {
	p := newIDP(t)
	login, who := newRefresher(t, p, nil)
	past := func(refresh string) *oauth2.Token {
		return &oauth2.Token{AccessToken: "a", RefreshToken: refresh, Expiry: time.Now().Add(-time.Minute)}
	}
	for what, id := range map[string]*auth.Identity{
		"nobody":              nil,
		"no token":            {Issuer: p.URL, Subject: "ada"},
		"another provider":    {Issuer: "https://other.example", Subject: "ada", Token: past("r0")},
		"no refresh token":    {Issuer: p.URL, Subject: "ada", Token: past("")},
		"a token that is not": {Issuer: p.URL, Subject: "ada", Token: past("x")},
	} {
		if _, err := login.Refresh(t.Context(), id); statusOf(err) != http.StatusUnauthorized {
			t.Errorf("%s: %v", what, err)
		}
	}
	p.token = func(w http.ResponseWriter, _ *http.Request) { tell(w, http.StatusServiceUnavailable, "down") }
	if _, err := login.Refresh(t.Context(), who); statusOf(err) != http.StatusServiceUnavailable || dunlin.Error(err).Get("Retry-After") != "1" {
		t.Errorf("unavailable provider: %v", err)
	}
	asked, answer := make(chan struct{}), make(chan struct{})
	p.token = func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		tell(w, http.StatusOK, `{"access_token":"late","token_type":"Bearer","expires_in":3600}`)
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() { _, err := login.Refresh(ctx, who); left <- err }()
	<-asked
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled caller: got %v", err)
	}
	close(answer)
	if fresh, err := login.Refresh(t.Context(), who); err != nil || fresh.Token.AccessToken != "late" || fresh.Token.RefreshToken != "r0" {
		t.Errorf("waiting caller: got %+v, %v", fresh, err) // the result of the call of the first one
	}
}

// statusOf returns the status of a problem.
func statusOf(err error) int {
	if p, ok := errors.AsType[*dunlin.ProblemDetails](err); ok {
		return p.Status
	}
	return 0
}

// The result of a refresh is not lost if the keys to check its ID token are unavailable.
func TestRefreshWithoutKeys(t *testing.T) {
	p := newIDP(t)
	p.metadata = map[string]any{"jwks_uri": "https://127.0.0.1:1/keys"}
	login, who := newRefresher(t, p, jwt.MapClaims{"iss": p.URL, "aud": "shop", "sub": "ada", "exp": time.Now().Add(time.Hour).Unix()})
	who.IDToken = "before"
	fresh, err := login.Refresh(t.Context(), who)
	if err != nil || fresh.Subject != "ada" || fresh.IDToken != "before" || fresh.Token.RefreshToken != "r1" {
		t.Errorf("got %+v, %v", fresh, err)
	}
}

// The memory of results is limited, but does not prevent further refreshes. Expired access tokens are not returned from it.
func TestRefreshRemembersSome(t *testing.T) {
	p := newIDP(t)
	lasts := 3600
	p.token = func(w http.ResponseWriter, r *http.Request) {
		tell(w, http.StatusOK, fmt.Sprintf(`{"access_token":%q,"token_type":"Bearer","expires_in":%d}`, "for "+r.FormValue("refresh_token"), lasts))
	}
	login, who := newRefresher(t, p, nil)
	for i := range 1100 {
		token := *who.Token
		token.RefreshToken = fmt.Sprint("of ", i)
		fresh, err := login.Refresh(t.Context(), &auth.Identity{Issuer: p.URL, Subject: "ada", Token: &token})
		if err != nil || fresh.Token.AccessToken != "for "+token.RefreshToken {
			t.Fatalf("refresh %d: got %+v, %v", i+1, fresh, err)
		}
	}
	lasts = 1
	before := p.exchanged.Load()
	for range 2 {
		if _, err := login.Refresh(t.Context(), who); err != nil {
			t.Fatal(err)
		}
	}
	if n := p.exchanged.Load() - before; n != 2 {
		t.Errorf("got %d calls of the provider for tokens valid for a second", n)
	}
}
