package auth_test

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/auth"
	"github.com/dunlinhttp/dunlin/middleware"
)

var secret = []byte("0123456789abcdef0123456789abcdef") // 32 bytes

// signAs is like sign, with another type in the header of the token. The type nil omits it.
func signAs(t *testing.T, typ any) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodES256, good())
	token.Header["kid"] = "ec"
	if token.Header["typ"] = typ; typ == nil {
		delete(token.Header, "typ")
	}
	text, err := token.SignedString(ecKey)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// An issuer's tokens of other kinds are not access tokens (RFC 8725 section 3.11).
func TestTypes(t *testing.T) {
	usual := auth.NewTokens(auth.Config{Issuer: issuer, Audience: audience, Keys: public})
	strict := auth.NewTokens(auth.Config{Issuer: issuer, Audience: audience, Keys: public, Types: []string{"at+jwt"}})
	for _, c := range []struct {
		typ           any
		usual, strict bool
	}{
		{nil, true, false},
		{"JWT", true, false},
		{"jwt", true, false},
		{"at+jwt", true, true},
		{"AT+JWT", true, true},
		{"application/at+jwt", true, true},
		{"Application/At+Jwt", true, true},
		{"application/application/at+jwt", false, false},
		{"logout+jwt", false, false},
		{"dpop+jwt", false, false},
		{"secevent+jwt", false, false},
		{"application/", false, false},
		{"at+jwt ", false, false},
		{7, false, false},
		{[]string{"at+jwt"}, false, false},
	} {
		for name, check := range map[string]struct {
			tokens *auth.Tokens
			want   bool
		}{"usual": {usual, c.usual}, "strict": {strict, c.strict}} {
			if _, err := check.tokens.Check(t.Context(), signAs(t, c.typ)); (err == nil) != check.want {
				t.Errorf("%s, type %v: %v", name, c.typ, err)
			}
		}
	}
}

// A token that is bound to a key must not be accepted without a check of the key (RFC 9449 section 7).
func TestBoundTokens(t *testing.T) {
	bound := sign(t, jwt.SigningMethodES256, "ec", ecKey, with("cnf", map[string]string{"jkt": "x"}))
	if _, err := auth.NewTokens(auth.Config{Issuer: issuer, Audience: audience, Keys: public}).Check(t.Context(), bound); err == nil || !strings.Contains(err.Error(), "cnf") {
		t.Errorf("bound token: %v", err)
	}
	if _, err := auth.NewTokens(auth.Config{Issuer: issuer, Audience: audience, Keys: public, AllowBound: true}).Check(t.Context(), bound); err != nil {
		t.Errorf("bound token with AllowBound: %v", err)
	}
}

func TestTokensWithoutSubject(t *testing.T) {
	tokens := auth.NewTokens(auth.Config{Issuer: issuer, Audience: audience, Keys: public})
	for _, sub := range []any{nil, ""} {
		if _, err := tokens.Check(t.Context(), sign(t, jwt.SigningMethodES256, "ec", ecKey, with("sub", sub))); err == nil {
			t.Errorf("subject %v: accepted", sub)
		}
	}
}

// The exact name also decides for custom claims of the service.
func TestClaim(t *testing.T) {
	tokens := auth.NewTokens(auth.Config{Issuer: issuer, Audience: audience, Keys: public})
	claims := with("tenant", "mine")
	claims["TENANT"], claims["Only"], claims["none"], claims["roles"] = "victim", "victim", nil, []string{"admin", "audit"}
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	app.Get("/", func(r *dunlin.Request) dunlin.Response {
		var tenant, only, none string
		var roles []string
		err := tokens.Claim(r, "tenant", &tenant)
		if err := tokens.Claim(r, "roles", &roles); err != nil {
			t.Error(err)
		}
		for _, name := range []string{"only", "none", ""} {
			if err := tokens.Claim(r, name, &only); !errors.Is(err, auth.ErrNoClaim) {
				t.Errorf("absent claim %q: %v", name, err)
			}
		}
		if err := tokens.Claim(r, "tenant", &roles); err == nil || errors.Is(err, auth.ErrNoClaim) {
			t.Errorf("claim of another type: %v", err)
		}
		return dunlin.Text(fmt.Sprint(tenant, only, none, roles, err))
	}, tokens.Middleware())
	if w := ask(app, "Bearer "+sign(t, jwt.SigningMethodES256, "ec", ecKey, claims)); w.Body.String() != "mine[admin audit] <nil>" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	var none *auth.Claims
	if err := none.Claim("sub", new(string)); !errors.Is(err, auth.ErrNoClaim) {
		t.Errorf("claim without a token: %v", err)
	}
}

// whoami returns an app that answers with the subject of the token and the user.
func whoami(c auth.Config) *dunlin.App {
	tokens := auth.NewTokens(c)
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	app.Get("/", func(r *dunlin.Request) dunlin.Response {
		if claims := tokens.Claims(r); claims != nil {
			return dunlin.Text(claims.Subject + " " + middleware.User(r))
		}
		return dunlin.Text("anonymous" + middleware.User(r))
	}, tokens.Middleware())
	return app
}

func TestSchemeAndOptional(t *testing.T) {
	token := sign(t, jwt.SigningMethodES256, "ec", ecKey, good())
	bad := sign(t, jwt.SigningMethodES256, "ec", strangerKey, good())
	for _, c := range []struct {
		scheme   string
		optional bool
		field    []string
		want     string
	}{
		{"", false, []string{"Bearer " + token}, "200 ada ada"},
		{"", false, []string{"Token " + token}, "401 Bearer"},
		{"Token", false, []string{"Token " + token}, "200 ada ada"},
		{"Token", false, []string{"token " + token}, "200 ada ada"},
		{"Token", false, []string{"Bearer " + token}, "401 Token"},
		{"Token", false, []string{"Token " + bad}, "401 Token"},
		{"Token", false, nil, "401 Token"},
		{"", true, nil, "200 anonymous"},
		{"", true, []string{"Bearer " + token}, "200 ada ada"},
		{"", true, []string{"Bearer " + bad}, `401 Bearer error="invalid_token"`},
		{"", true, []string{"Bearer"}, "401 Bearer"},
		{"", true, []string{"Bearer "}, "401 Bearer"},
		{"", true, []string{"Basic YTpi"}, "401 Bearer"},
		{"", true, []string{"", "Bearer " + bad}, "401 Bearer"},
	} {
		w := ask(whoami(auth.Config{Issuer: issuer, Audience: audience, Keys: public, Scheme: c.scheme, Optional: c.optional}), c.field...)
		got := fmt.Sprint(w.Code, " ", w.Body)
		if w.Code == 401 {
			got = fmt.Sprint(w.Code, " ", w.Header().Get("WWW-Authenticate"))
		}
		if got != c.want || (w.Header().Get("Vary") == "Authorization") != c.optional {
			t.Errorf("%q, optional %v, %.30q: got %s %v, want %s", c.scheme, c.optional, c.field, got, w.Header(), c.want)
		}
	}
}

func TestSecrets(t *testing.T) {
	c := auth.Config{Issuer: issuer, Audience: audience, Secrets: map[string][]byte{"": secret, "new": append([]byte("new"), secret...)}}
	none := jwt.NewWithClaims(jwt.SigningMethodNone, good())
	unsigned, err := none.SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		token string
		want  int
	}{
		"good":                  {sign(t, jwt.SigningMethodHS256, "", secret, good()), 200},
		"key with another name": {sign(t, jwt.SigningMethodHS256, "new", append([]byte("new"), secret...), good()), 200},
		"of the other secret":   {sign(t, jwt.SigningMethodHS256, "new", secret, good()), 401},
		"an unknown name":       {sign(t, jwt.SigningMethodHS256, "old", secret, good()), 401},
		"a stranger's":          {sign(t, jwt.SigningMethodHS256, "", []byte("secret"), good()), 401},
		"another hash":          {sign(t, jwt.SigningMethodHS512, "", secret, good()), 401},
		"of a key pair":         {sign(t, jwt.SigningMethodES256, "ec", ecKey, good()), 401},
		"unsigned":              {unsigned, 401},
		"another audience":      {sign(t, jwt.SigningMethodHS256, "", secret, with("aud", "others")), 401},
		"expired":               {sign(t, jwt.SigningMethodHS256, "", secret, with("exp", 1)), 401},
	} {
		if w := ask(whoami(c), "Bearer "+test.token); w.Code != test.want {
			t.Errorf("%s: got %d %s", name, w.Code, w.Body)
		}
	}
	long := append(append([]byte{}, secret...), secret...)
	c.Secrets, c.Methods = map[string][]byte{"": long}, []string{"HS512"}
	if w := ask(whoami(c), "Bearer "+sign(t, jwt.SigningMethodHS512, "", long, good())); w.Code != 200 {
		t.Errorf("HS512: got %d", w.Code)
	}
}

// sendToken signs a token for a user.
func sendToken(user struct{ ID string }, private ed25519.PrivateKey) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
		"iss": "https://shop.example.com", "aud": "shop", "sub": user.ID,
		"iat": time.Now().Unix(), "exp": time.Now().Add(15 * time.Minute).Unix(),
	})
	token.Header["kid"] = "2026"
	text, err := token.SignedString(private) // an ed25519.PrivateKey
	return text, err
}

// subjectOf checks a token that did not arrive in the Authorization field.
func subjectOf(r *dunlin.Request, tokens *auth.Tokens, text string, result *string) error {
	claims, err := tokens.Check(r.Context(), text)
	if err != nil {
		return err
	}
	user := claims.Subject
	*result = user
	return nil
}

// tenantOf returns a custom claim of the service.
func tenantOf(r *dunlin.Request, tokens *auth.Tokens) (dunlin.Response, error) {
	var tenant string
	if err := tokens.Claim(r, "tenant", &tenant); err != nil {
		return dunlin.Response{}, err // auth.ErrNoClaim: the token does not have it
	}
	return dunlin.Text(tenant), nil
}

// The code of the page: a service that signs its own tokens, and pages with an optional login.
func TestPage(t *testing.T) {
	_, private, _ := ed25519.GenerateKey(rand.Reader)
	tokens := auth.NewTokens(auth.Config{
		Issuer: "https://shop.example.com", Audience: "shop",
		Keys: map[string]crypto.PublicKey{"2026": private.Public()},
	})
	text, err := sendToken(struct{ ID string }{"ada"}, private)
	if err != nil {
		t.Fatal(err)
	}
	config := auth.Config{
		Issuer: "https://shop.example.com", Audience: "shop", Optional: true,
		Keys: map[string]crypto.PublicKey{"2026": private.Public()},
	}
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	pages := app.Group("/articles", auth.NewTokens(config).Middleware()) // config.Optional is true
	pages.Get("", dunlin.Try(func(r *dunlin.Request) (resp dunlin.Response, err error) {
		var subject string
		err = subjectOf(r, tokens, text, &subject)
		return dunlin.Text(subject + " " + middleware.User(r)), err
	}))
	app.Get("/tenant", dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) { return tenantOf(r, tokens) }), tokens.Middleware())
	for _, c := range []struct{ path, token, want string }{
		{"/articles", "", "200 ada "}, {"/articles", "Bearer " + text, "200 ada ada"}, {"/tenant", "Bearer " + text, "500"}, {"/tenant", "", "401"},
	} {
		req := httptest.NewRequest("GET", c.path, nil)
		req.Header.Set("Authorization", c.token)
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		if got := fmt.Sprint(w.Code, " ", w.Body); got != c.want && !strings.HasPrefix(got, c.want+" {") {
			t.Errorf("%s: got %s, want %s", c.path, got, c.want)
		}
	}
}

func ExampleTokens_Check() {
	secret := []byte("32 random bytes, out of a secret") // for example from the environment
	tokens := auth.NewTokens(auth.Config{
		Issuer: "https://shop.example.com", Audience: "shop",
		Secrets: map[string][]byte{"2026": secret},
	})
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": "https://shop.example.com", "aud": "shop", "sub": "ada", "tenant": "acme",
		"iat": time.Now().Unix(), "exp": time.Now().Add(15 * time.Minute).Unix(),
	})
	token.Header["kid"] = "2026"
	text, err := token.SignedString(secret)
	if err != nil {
		fmt.Println(err)
		return
	}
	claims, err := tokens.Check(context.Background(), text)
	if err != nil {
		fmt.Println(err)
		return
	}
	var tenant string
	err = claims.Claim("tenant", &tenant)
	fmt.Println(claims.Subject, tenant, err)
	// Output: ada acme <nil>
}

// Two Tokens values that accept the same tokens share the claims, in any order of the middleware. Values with other rules do not.
func TestClaimsOfSeveralTokens(t *testing.T) {
	config := auth.Config{Issuer: issuer, Audience: audience, Keys: public}
	loose, other := config, config
	loose.Optional, other.AllowBound = true, true
	required, optional, stranger := auth.NewTokens(config), auth.NewTokens(loose), auth.NewTokens(other)
	subjects := func(r *dunlin.Request) dunlin.Response {
		text := ""
		for _, tokens := range []*auth.Tokens{required, optional, stranger} {
			if c := tokens.Claims(r); c != nil {
				text += c.Subject
			}
			text += ","
		}
		return dunlin.Text(text)
	}
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	app.Get("/strange", subjects, stranger.Middleware()).Critical()
	app.Use(optional.Middleware())
	app.Get("/open", subjects)
	app.Group("/users", required.Middleware()).Get("", subjects)
	app.Group("/all", stranger.Middleware(), required.Middleware()).Get("", subjects)
	app.Group("/others", stranger.Middleware()).Get("", subjects)
	bearer := "Bearer " + sign(t, jwt.SigningMethodEdDSA, "ed", edKey, good())
	for path, want := range map[string]string{
		"/strange": ",,ada,", "/open": "ada,ada,,", "/users": "ada,ada,,", "/all": "ada,ada,ada,", "/others": "ada,ada,ada,",
	} {
		req := httptest.NewRequest("GET", path, nil)
		req.Header.Set("Authorization", bearer)
		w := httptest.NewRecorder()
		if app.ServeHTTP(w, req); w.Body.String() != want {
			t.Errorf("%s: got %d %s, want %s", path, w.Code, w.Body, want)
		}
	}
	w := httptest.NewRecorder()
	if app.ServeHTTP(w, httptest.NewRequest("GET", "/open", nil)); w.Body.String() != ",,," {
		t.Errorf("without a token: got %d %s", w.Code, w.Body)
	}
}
