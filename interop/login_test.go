package interop_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"testing"

	"github.com/oauth2-proxy/mockoidc"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/auth"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
)

// Users log in and out at a third-party provider, over TLS and HTTP/2.
func TestLoginAtProvider(t *testing.T) {
	certificate, _ := localTLS(t)
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certificate.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	provider, err := mockoidc.NewServer(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := provider.Start(ln, certificate); err != nil { // Start does not wrap the listener in TLS
		t.Fatal(err)
	}
	defer func() { _ = provider.Shutdown() }()
	onEnginesTLS(t, func(t *testing.T, app *dunlin.App, base string) {
		_, client := localTLS(t)
		st := store.NewMemory(store.MemoryConfig{})
		issuer, clientID, clientSecret := provider.Issuer(), provider.ClientID, provider.ClientSecret
		keys := middleware.NewKeyRing([]byte("0123456789abcdef0123456789abcdef"))
		type visit struct{ User string }
		sessions := middleware.NewSessions[visit](middleware.SessionConfig{Store: st})
		config := auth.LoginConfig[visit]{
			Issuer: issuer, ClientID: clientID, ClientSecret: clientSecret,
			Callback: base + "/login/callback", // as registered with the provider
			Sessions: sessions, Keys: keys,
			SignIn: func(_ *dunlin.Request, v *visit, who *auth.Identity) error {
				v.User = who.Subject
				return nil
			},
		}
		config.Client, config.SecretInBody = client, true // this provider's
		login := auth.NewLogin(config)
		app.Use(middleware.CrossOrigin(), sessions.Middleware())
		app.Get("/login", login.Begin)
		app.Get("/login/callback", login.Finish)
		app.Post("/logout", login.Logout)

		// onlyUsers passes requests of users that have logged in, and redirects others to the login.
		onlyUsers := func(next dunlin.Action) dunlin.Action {
			return func(r *dunlin.Request) dunlin.Response {
				v, _, err := sessions.Get(r)
				if err != nil {
					return dunlin.Error(err) // 503 while the store is unavailable
				}
				if v.User == "" {
					return dunlin.Redirect("/login?to=" + url.QueryEscape(r.SentPath()+"?"+r.RawQuery()))
				}
				return next(r)
			}
		}
		app.Get("/account", func(r *dunlin.Request) dunlin.Response {
			v, _, _ := sessions.Get(r)
			return dunlin.Text(v.User + " by " + r.Std().Proto)
		}, onlyUsers)
	}, func(t *testing.T, base string, client *http.Client) {
		browser := *client
		browser.Jar, _ = cookiejar.New(nil)
		resp, err := browser.Get(base + "/account")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if want := mockoidc.DefaultUser().Subject + " by HTTP/2.0"; string(body) != want || resp.Request.URL.Path != "/account" {
			t.Errorf("at %s: got %s, not %s", resp.Request.URL, body, want)
		}
		browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		out, err := browser.Post(base+"/logout", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Body.Close()
		again, err := browser.Get(base + "/account")
		if err != nil {
			t.Fatal(err)
		}
		defer again.Body.Close()
		if out.StatusCode != http.StatusSeeOther || again.Header.Get("Location") != "/login?to=%2Faccount%3F" {
			t.Errorf("after the logout (%s): got %s %v", out.Status, again.Status, again.Header)
		}
	})
}
