package auth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/auth"
)

const issuer, audience = "https://id.example.com", "shop"

var (
	rsaKey, _      = rsa.GenerateKey(rand.Reader, 2048)
	ecKey, _       = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, edKey, _    = ed25519.GenerateKey(rand.Reader)
	strangerKey, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)

	public = map[string]crypto.PublicKey{"rsa": &rsaKey.PublicKey, "ec": &ecKey.PublicKey, "ed": edKey.Public()}
)

// good returns valid claims.
func good() jwt.MapClaims {
	now := time.Now()
	return jwt.MapClaims{"iss": issuer, "aud": audience, "sub": "ada", "exp": now.Add(time.Hour).Unix(), "iat": now.Unix(), "scope": "read write"}
}

func sign(t *testing.T, method jwt.SigningMethod, kid string, key any, claims jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	if kid != "" {
		token.Header["kid"] = kid
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func with(name string, value any) jwt.MapClaims {
	c := good()
	if value == nil {
		delete(c, name)
	} else {
		c[name] = value
	}
	return c
}

func serve(tokens *auth.Tokens) *dunlin.App {
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	app.Get("/", func(r *dunlin.Request) dunlin.Response {
		c := tokens.Claims(r)
		return dunlin.Text(fmt.Sprint(c.Subject, " ", c.HasScope("write"), " ", c.HasScope("wri")))
	}, tokens.Middleware())
	return app
}

func ask(app http.Handler, authorization ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest("GET", "/", nil)
	for _, a := range authorization {
		req.Header.Add("Authorization", a)
	}
	w := httptest.NewRecorder()
	app.ServeHTTP(w, req)
	return w
}

func TestTokens(t *testing.T) {
	app := serve(auth.NewTokens(auth.Config{Issuer: issuer, Audience: audience, Keys: public}))
	for name, token := range map[string]string{
		"RS256":                   sign(t, jwt.SigningMethodRS256, "rsa", rsaKey, good()),
		"ES256":                   sign(t, jwt.SigningMethodES256, "ec", ecKey, good()),
		"EdDSA":                   sign(t, jwt.SigningMethodEdDSA, "ed", edKey, good()),
		"one of many audiences":   sign(t, jwt.SigningMethodES256, "ec", ecKey, with("aud", []string{"other", audience})),
		"expired within leeway":   sign(t, jwt.SigningMethodES256, "ec", ecKey, with("exp", time.Now().Add(-10*time.Second).Unix())),
		"begins within leeway":    sign(t, jwt.SigningMethodES256, "ec", ecKey, with("nbf", time.Now().Add(10*time.Second).Unix())),
		"without a time of issue": sign(t, jwt.SigningMethodES256, "ec", ecKey, with("iat", nil)),
	} {
		if w := ask(app, "Bearer "+token); w.Code != 200 || w.Body.String() != "ada true false" {
			t.Errorf("%s: got %d %s", name, w.Code, w.Body)
		}
	}
	nameless := serve(auth.NewTokens(auth.Config{Issuer: issuer, Audience: audience, Keys: map[string]crypto.PublicKey{"": &ecKey.PublicKey}}))
	if w := ask(nameless, "Bearer "+sign(t, jwt.SigningMethodES256, "", ecKey, good())); w.Code != 200 {
		t.Errorf("key without a name: got %d", w.Code)
	}
	if w := ask(app, "bearer  "+sign(t, jwt.SigningMethodES256, "ec", ecKey, good())); w.Code != 200 {
		t.Errorf("other spelling of the scheme: got %d", w.Code)
	}
}

func TestBadTokens(t *testing.T) {
	app := serve(auth.NewTokens(auth.Config{Issuer: issuer, Audience: audience, Keys: public}))
	valid := sign(t, jwt.SigningMethodES256, "ec", ecKey, good())
	parts := strings.Split(valid, ".")
	der := []byte(rsaKey.PublicKey.N.String())
	header := func(h string) string { return base64.RawURLEncoding.EncodeToString([]byte(h)) }
	flipped := []byte(parts[2])
	flipped[10] ^= 1
	for name, token := range map[string]string{
		"alg none":                    header(`{"alg":"none","kid":"ec"}`) + "." + parts[1] + ".",
		"alg None":                    header(`{"alg":"None","kid":"ec"}`) + "." + parts[1] + ".",
		"alg none with a signature":   header(`{"alg":"none","kid":"ec"}`) + "." + parts[1] + "." + parts[2],
		"no alg":                      header(`{"kid":"ec"}`) + "." + parts[1] + "." + parts[2],
		"HMAC by the public key":      sign(t, jwt.SigningMethodHS256, "rsa", der, good()),
		"other method of the key":     sign(t, jwt.SigningMethodRS512, "rsa", rsaKey, good()),
		"key of another type":         sign(t, jwt.SigningMethodES256, "rsa", ecKey, good()),
		"unknown key":                 sign(t, jwt.SigningMethodES256, "stranger", strangerKey, good()),
		"other key with a known name": sign(t, jwt.SigningMethodES256, "ec", strangerKey, good()),
		"no name of a key":            sign(t, jwt.SigningMethodES256, "", ecKey, good()),
		"expired":                     sign(t, jwt.SigningMethodES256, "ec", ecKey, with("exp", time.Now().Add(-time.Minute).Unix())),
		"no expiry":                   sign(t, jwt.SigningMethodES256, "ec", ecKey, with("exp", nil)),
		"not yet":                     sign(t, jwt.SigningMethodES256, "ec", ecKey, with("nbf", time.Now().Add(time.Minute).Unix())),
		"issued in the future":        sign(t, jwt.SigningMethodES256, "ec", ecKey, with("iat", time.Now().Add(time.Hour).Unix())),
		"other issuer":                sign(t, jwt.SigningMethodES256, "ec", ecKey, with("iss", issuer+".evil")),
		"no issuer":                   sign(t, jwt.SigningMethodES256, "ec", ecKey, with("iss", nil)),
		"other audience":              sign(t, jwt.SigningMethodES256, "ec", ecKey, with("aud", "other")),
		"no audience":                 sign(t, jwt.SigningMethodES256, "ec", ecKey, with("aud", nil)),
		"times that are none":         sign(t, jwt.SigningMethodES256, "ec", ecKey, with("exp", "tomorrow")),
		"other signature":             parts[0] + "." + parts[1] + "." + string(flipped),
		"other claims":                parts[0] + "." + header(`{"iss":"`+issuer+`","aud":"shop","sub":"eve","exp":99999999999}`) + "." + parts[2],
		"no signature":                parts[0] + "." + parts[1] + ".",
		"two parts":                   parts[0] + "." + parts[1],
		"four parts":                  valid + ".x",
		"not base64":                  "!!." + parts[1] + "." + parts[2],
		"padded":                      valid + "=",
		"critical extensions":         header(`{"alg":"ES256","kid":"ec","crit":["x"]}`) + "." + parts[1] + "." + parts[2],
		"long":                        valid + strings.Repeat("A", 20_000),
		"nothing":                     ".",
		"a list":                      valid + ", Bearer " + valid,
	} {
		w := ask(app, "Bearer "+token)
		if w.Code != 401 || !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), `Bearer error="invalid_token"`) || strings.Contains(w.Body.String(), "signature") {
			t.Errorf("%s: got %d %v %s", name, w.Code, w.Header(), w.Body)
		}
	}
	for name, headers := range map[string][]string{
		"nothing": nil, "empty": {""}, "Basic": {"Basic YTpi"}, "no token": {"Bearer"}, "only a space": {"Bearer "},
	} {
		if w := ask(app, headers...); w.Code != 401 || w.Header().Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: got %d %v", name, w.Code, w.Header())
		}
	}
	if w := ask(app, "Bearer "+valid, "Bearer "+valid); w.Code != 401 {
		t.Errorf("two lines: got %d", w.Code)
	}
}

// An issuerServer serves a key set that can change.
type issuerServer struct {
	*httptest.Server
	fetches atomic.Int64
	mu      sync.Mutex
	set     string
	status  int
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func webKeys(keys map[string]crypto.PublicKey) string {
	var list []map[string]string
	for kid, key := range keys {
		switch key := key.(type) {
		case *rsa.PublicKey:
			list = append(list, map[string]string{"kty": "RSA", "kid": kid, "use": "sig", "n": b64(key.N.Bytes()), "e": b64(big.NewInt(int64(key.E)).Bytes())})
		case *ecdsa.PublicKey:
			point, _ := key.Bytes()
			list = append(list, map[string]string{"kty": "EC", "kid": kid, "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])})
		case ed25519.PublicKey:
			list = append(list, map[string]string{"kty": "OKP", "kid": kid, "crv": "Ed25519", "x": b64(key)})
		}
	}
	text, _ := json.Marshal(map[string]any{"keys": list})
	return string(text)
}

func newIssuer(t *testing.T, set string) *issuerServer {
	s := &issuerServer{set: set, status: 200}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.fetches.Add(1)
		s.mu.Lock()
		defer s.mu.Unlock()
		w.WriteHeader(s.status)
		_, _ = w.Write([]byte(s.set))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *issuerServer) change(status int, set string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.set = status, set
}

func TestKeySet(t *testing.T) {
	id := newIssuer(t, webKeys(public))
	app := serve(auth.NewTokens(auth.Config{Issuer: issuer, Audience: audience, KeySet: id.URL, Insecure: true}))
	var wg sync.WaitGroup
	for range 50 {
		for _, token := range []string{
			sign(t, jwt.SigningMethodRS256, "rsa", rsaKey, good()), sign(t, jwt.SigningMethodES256, "ec", ecKey, good()), sign(t, jwt.SigningMethodEdDSA, "ed", edKey, good()),
		} {
			wg.Go(func() {
				if w := ask(app, "Bearer "+token); w.Code != 200 {
					t.Errorf("got %d %s", w.Code, w.Body)
				}
			})
		}
	}
	wg.Wait()
	for i := range 100 {
		if w := ask(app, "Bearer "+sign(t, jwt.SigningMethodES256, fmt.Sprint("made up ", i), strangerKey, good())); w.Code != 401 {
			t.Errorf("unknown key: got %d", w.Code)
		}
	}
	if n := id.fetches.Load(); n != 1 {
		t.Errorf("got %d fetches of the key set, want 1", n)
	}
}

// A key that names its method does not verify signatures of another method (RFC 8725 section 3.1).
func TestKeyWithOtherMethod(t *testing.T) {
	n, e := b64(rsaKey.N.Bytes()), b64(big.NewInt(int64(rsaKey.E)).Bytes())
	key := func(kid, alg string) map[string]string {
		return map[string]string{"kty": "RSA", "kid": kid, "alg": alg, "n": n, "e": e}
	}
	set, _ := json.Marshal(map[string]any{"keys": []map[string]string{
		key("rs", "RS256"), key("ps", "PS256"), key("oaep", "RSA-OAEP"),
		{"kty": "OKP", "kid": "ed", "alg": "Ed25519", "crv": "Ed25519", "x": b64(edKey.Public().(ed25519.PublicKey))},
	}})
	id := newIssuer(t, string(set))
	app := serve(auth.NewTokens(auth.Config{Issuer: issuer, Audience: audience, KeySet: id.URL, Insecure: true, Methods: []string{"RS256", "PS256", "EdDSA"}}))
	for token, want := range map[string]int{
		sign(t, jwt.SigningMethodRS256, "rs", rsaKey, good()):   200,
		sign(t, jwt.SigningMethodPS256, "ps", rsaKey, good()):   200,
		sign(t, jwt.SigningMethodEdDSA, "ed", edKey, good()):    200,
		sign(t, jwt.SigningMethodRS256, "ps", rsaKey, good()):   401,
		sign(t, jwt.SigningMethodPS256, "rs", rsaKey, good()):   401,
		sign(t, jwt.SigningMethodRS256, "oaep", rsaKey, good()): 401,
	} {
		if w := ask(app, "Bearer "+token); w.Code != want {
			t.Errorf("%.60s: got %d, want %d", token, w.Code, want)
		}
	}
}

// Unsupported keys do not invalidate the rest of a key set (RFC 7517 section 5).
func TestSeveralKeys(t *testing.T) {
	n, e := b64(rsaKey.N.Bytes()), b64(big.NewInt(int64(rsaKey.E)).Bytes())
	rsa := `{"kty":"RSA","kid":"one","n":"` + n + `","e":"` + e + `"`
	set := strings.TrimSuffix(webKeys(map[string]crypto.PublicKey{"one": &ecKey.PublicKey}), "]}") + "," + rsa + `,"alg":"RS256","key_ops":["verify"]},` + rsa + `,"alg":"RSA-OAEP"},` +
		rsa + `,"use":"enc"},{"kty":"EC","kid":7},{"kty":"EC","kid":"x","use":["sig"]},"a key",null,[]]}`
	id := newIssuer(t, set)
	app := serve(auth.NewTokens(auth.Config{Issuer: issuer, Audience: audience, KeySet: id.URL, Insecure: true, Methods: []string{"RS256", "PS256", "ES256"}}))
	for method, want := range map[jwt.SigningMethod]int{jwt.SigningMethodES256: 200, jwt.SigningMethodRS256: 200, jwt.SigningMethodPS256: 401} {
		key := any(rsaKey)
		if method == jwt.SigningMethodES256 {
			key = ecKey
		}
		if w := ask(app, "Bearer "+sign(t, method, "one", key, good())); w.Code != want {
			t.Errorf("%s: got %d %s, want %d", method.Alg(), w.Code, w.Body, want)
		}
	}
}

// The keys are not fetched in clear text, even after a redirect.
func TestKeySetRedirects(t *testing.T) {
	clear := newIssuer(t, webKeys(public))
	to := ""
	id := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keys" {
			_, _ = io.WriteString(w, webKeys(public))
			return
		}
		http.Redirect(w, r, to, http.StatusFound)
	}))
	t.Cleanup(id.Close)
	token := sign(t, jwt.SigningMethodES256, "ec", ecKey, good())
	for _, c := range []struct {
		to   string
		want error
	}{{id.URL + "/keys", nil}, {clear.URL, auth.ErrNoKeys}, {id.URL + "/again", auth.ErrNoKeys}} {
		to = c.to
		tokens := auth.NewTokens(auth.Config{Issuer: issuer, Audience: audience, KeySet: id.URL, Client: id.Client()})
		if _, err := tokens.Check(t.Context(), token); !errors.Is(err, c.want) {
			t.Errorf("redirected to %s: got %v, want %v", c.to, err, c.want)
		}
	}
	if n := clear.fetches.Load(); n != 0 {
		t.Errorf("got %d fetches in clear text, want 0", n)
	}
}

// Names of claims are compared exactly (RFC 7519 section 10.1.1). A claim whose name users may choose does not replace a claim
// of the issuer.
func TestClaimsByTheirNames(t *testing.T) {
	tokens := auth.NewTokens(auth.Config{Issuer: issuer, Audience: audience, Keys: public})
	claims := good()
	for name, value := range map[string]any{"Sub": "root", "SUB": "root", "ſub": "root", "Scope": "admin", "zScope": "admin", "SCOPE": []string{"admin"}} {
		claims[name] = value
	}
	got, err := tokens.Check(t.Context(), sign(t, jwt.SigningMethodES256, "ec", ecKey, claims))
	if err != nil || got.Subject != "ada" || got.HasScope("admin") || !got.HasScope("write") {
		t.Errorf("claims in other letters: got %+v, %v", got, err)
	}
	for name, other := range map[string]string{"exp": "Exp", "aud": "AUD", "iss": "Iss"} {
		claims := good()
		claims[other] = claims[name]
		delete(claims, name)
		if got, err := tokens.Check(t.Context(), sign(t, jwt.SigningMethodES256, "ec", ecKey, claims)); err == nil {
			t.Errorf("%s for %s: got %+v", other, name, got)
		}
	}
	claims = good()
	claims["aud"], claims["jti"] = []string{"other", audience}, "7"
	if got, err := tokens.Check(t.Context(), sign(t, jwt.SigningMethodES256, "ec", ecKey, claims)); err != nil || got.ID != "7" || len(got.Audience) != 2 || got.ExpiresAt == nil || got.IssuedAt == nil {
		t.Errorf("all claims: got %+v, %v", got, err)
	}
}

func TestKeyRotation(t *testing.T) {
	id := newIssuer(t, "")
	id.change(503, "")
	tokens := auth.NewTokens(auth.Config{Issuer: issuer, Audience: audience, KeySet: id.URL, Insecure: true, MinRefresh: 1})
	app := serve(tokens)
	old, rotated := sign(t, jwt.SigningMethodES256, "ec", ecKey, good()), sign(t, jwt.SigningMethodEdDSA, "ed", edKey, good())
	if w := ask(app, "Bearer "+old); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("before the keys are available: got %d", w.Code)
	}
	id.change(200, webKeys(map[string]crypto.PublicKey{"ec": &ecKey.PublicKey}))
	if w := ask(app, "Bearer "+old); w.Code != 200 {
		t.Errorf("after the keys are available: got %d %s", w.Code, w.Body)
	}
	if w := ask(app, "Bearer "+rotated); w.Code != 401 {
		t.Errorf("key that is not yet published: got %d", w.Code)
	}
	id.change(200, webKeys(map[string]crypto.PublicKey{"ed": edKey.Public()}))
	if w := ask(app, "Bearer "+rotated); w.Code != 200 {
		t.Errorf("new key: got %d %s", w.Code, w.Body)
	}
	if w := ask(app, "Bearer "+old); w.Code != 401 {
		t.Errorf("removed key: %d", w.Code)
	}
	id.change(500, "")
	if w := ask(app, "Bearer "+rotated); w.Code != 200 {
		t.Errorf("known key while the issuer is unavailable: got %d", w.Code)
	}
	if _, err := tokens.Check(context.Background(), old); !errors.Is(err, auth.ErrNoKeys) {
		t.Errorf("unknown key while the issuer is unavailable: %v", err)
	}
}

// A key that the issuer withdraws, for example because it was stolen, is refused after an hour, even if no token names an
// unknown key. No request waits for the fetch. While the issuer is unavailable, the known keys stay.
func TestRemovedKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := &issuerServer{set: webKeys(map[string]crypto.PublicKey{"ec": &ecKey.PublicKey, "ed": edKey.Public()}), status: 200}
		client := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			id.fetches.Add(1)
			id.mu.Lock()
			defer id.mu.Unlock()
			return &http.Response{StatusCode: id.status, Body: io.NopCloser(strings.NewReader(id.set))}, nil
		})}
		tokens := auth.NewTokens(auth.Config{Issuer: issuer, Audience: audience, KeySet: "https://id.example.com/jwks", Client: client})
		holds := func(kid string, method jwt.SigningMethod, key any, fetched int64) bool {
			t.Helper()
			token, began := sign(t, method, kid, key, good()), time.Now()
			_, err := tokens.Check(t.Context(), token)
			if waited := time.Since(began); waited > 0 && fetched > 1 {
				t.Errorf("token of a known key waited %v", waited)
			}
			time.Sleep(2 * time.Second)
			if n := id.fetches.Load(); n != fetched {
				t.Errorf("got %d fetches of the keys, want %d", n, fetched)
			}
			return err == nil
		}
		stolen := func(fetched int64) bool { return holds("ec", jwt.SigningMethodES256, ecKey, fetched) }
		other := func(fetched int64) bool { return holds("ed", jwt.SigningMethodEdDSA, edKey, fetched) }
		if !stolen(1) || !other(1) {
			t.Error("a published key was refused")
		}
		id.change(503, "")
		time.Sleep(time.Hour)
		if !stolen(2) || !other(2) {
			t.Error("a known key was refused while the issuer is unavailable")
		}
		id.change(200, webKeys(map[string]crypto.PublicKey{"ed": edKey.Public()}))
		time.Sleep(time.Minute)
		if !other(3) {
			t.Error("the other key was refused")
		}
		if stolen(3) {
			t.Error("a removed key was accepted")
		}
		if time.Sleep(30 * time.Minute); !other(3) {
			t.Error("the other key was refused")
		}
	})
}

func TestBadKeySets(t *testing.T) {
	small, _ := rsa.GenerateKey(rand.Reader, 2048)
	small.N.Rsh(small.N, 1100)
	for what, set := range map[string]string{
		"nothing": "", "no JSON": "<html>", "no keys": `{"keys":[]}`, "a list": `[]`,
		"a short RSA key":     webKeys(map[string]crypto.PublicKey{"ec": &small.PublicKey}),
		"an exponent of one":  `{"keys":[{"kty":"RSA","kid":"ec","n":"` + b64(rsaKey.N.Bytes()) + `","e":"AQ"}]}`,
		"a point elsewhere":   `{"keys":[{"kty":"EC","kid":"ec","crv":"P-256","x":"AQ","y":"AQ"}]}`,
		"another curve":       `{"keys":[{"kty":"EC","kid":"ec","crv":"P-224","x":"AQ","y":"AQ"}]}`,
		"a secret":            `{"keys":[{"kty":"oct","kid":"ec","k":"AAAA"}]}`,
		"for encryption":      strings.ReplaceAll(webKeys(map[string]crypto.PublicKey{"ec": &rsaKey.PublicKey}), `"sig"`, `"enc"`),
		"for agreeing on one": strings.ReplaceAll(webKeys(map[string]crypto.PublicKey{"ec": &ecKey.PublicKey}), `"kid"`, `"key_ops":["deriveKey"],"kid"`),
		"too large":           webKeys(public) + strings.Repeat(" ", 2<<20),
	} {
		id := newIssuer(t, set)
		tokens := auth.NewTokens(auth.Config{Issuer: issuer, Audience: audience, KeySet: id.URL, Insecure: true})
		if _, err := tokens.Check(context.Background(), sign(t, jwt.SigningMethodES256, "ec", ecKey, good())); !errors.Is(err, auth.ErrNoKeys) {
			t.Errorf("key set, %s: %v", what, err)
		}
	}
}

func TestSettings(t *testing.T) {
	//lint:ignore SA1019 no other way leads to such a key
	offCurve := &ecdsa.PublicKey{Curve: elliptic.P256(), X: big.NewInt(1), Y: big.NewInt(1)}
	p224, _ := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	small := rsa.PublicKey{N: new(big.Int).Rsh(rsaKey.N, 1100), E: rsaKey.E}
	for what, c := range map[string]auth.Config{
		"nothing":                               {},
		"no audience":                           {Issuer: issuer, Keys: public},
		"no issuer":                             {Audience: audience, Keys: public},
		"no keys":                               {Issuer: issuer, Audience: audience},
		"both":                                  {Issuer: issuer, Audience: audience, Keys: public, KeySet: "x"},
		"HMAC":                                  {Issuer: issuer, Audience: audience, Keys: public, Methods: []string{"HS256"}},
		"none":                                  {Issuer: issuer, Audience: audience, Keys: public, Methods: []string{"none"}},
		"negative leeway":                       {Issuer: issuer, Audience: audience, Keys: public, Leeway: -1},
		"a secret":                              {Issuer: issuer, Audience: audience, Keys: map[string]crypto.PublicKey{"k": []byte("secret")}},
		"a private key":                         {Issuer: issuer, Audience: audience, Keys: map[string]crypto.PublicKey{"k": rsaKey}},
		"a short RSA key":                       {Issuer: issuer, Audience: audience, Keys: map[string]crypto.PublicKey{"k": &small}},
		"a cut key":                             {Issuer: issuer, Audience: audience, Keys: map[string]crypto.PublicKey{"k": ed25519.PublicKey("x")}},
		"no exponent":                           {Issuer: issuer, Audience: audience, Keys: map[string]crypto.PublicKey{"k": &rsa.PublicKey{N: rsaKey.N}}},
		"no point":                              {Issuer: issuer, Audience: audience, Keys: map[string]crypto.PublicKey{"k": &ecdsa.PublicKey{Curve: elliptic.P256()}}},
		"off the curve":                         {Issuer: issuer, Audience: audience, Keys: map[string]crypto.PublicKey{"k": offCurve}},
		"another curve":                         {Issuer: issuer, Audience: audience, Keys: map[string]crypto.PublicKey{"k": &p224.PublicKey}},
		"a key set in clear text":               {Issuer: issuer, Audience: audience, KeySet: "http://id.example.com/jwks"},
		"a short secret":                        {Issuer: issuer, Audience: audience, Secrets: map[string][]byte{"": secret[:31]}},
		"a secret that is short for the method": {Issuer: issuer, Audience: audience, Secrets: map[string][]byte{"": secret}, Methods: []string{"HS256", "HS512"}},
		"keys and secrets":                      {Issuer: issuer, Audience: audience, Keys: public, Secrets: map[string][]byte{"": secret}},
		"a key set and secrets":                 {Issuer: issuer, Audience: audience, KeySet: "https://id.example.com", Secrets: map[string][]byte{"": secret}},
		"secrets for a method of keys":          {Issuer: issuer, Audience: audience, Secrets: map[string][]byte{"": secret}, Methods: []string{"HS256", "RS256"}},
		"secrets for none":                      {Issuer: issuer, Audience: audience, Secrets: map[string][]byte{"": secret}, Methods: []string{"none"}},
		"a scheme of two words":                 {Issuer: issuer, Audience: audience, Keys: public, Scheme: "My Token"},
		"no URL":                                {Issuer: issuer, Audience: audience, KeySet: "id.example.com/jwks"},
		"a file":                                {Issuer: issuer, Audience: audience, KeySet: "file:///jwks"},
		"a nil key":                             {Issuer: issuer, Audience: audience, Keys: map[string]crypto.PublicKey{"k": nil}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("NewTokens with %s: got no panic", what)
				}
			}()
			auth.NewTokens(c)
		}()
	}
}

func ExampleNewTokens() {
	app := dunlin.New(dunlin.Config{})
	tokens := auth.NewTokens(auth.Config{
		Issuer: "https://id.example.com", Audience: "shop",
		KeySet: "https://id.example.com/.well-known/jwks.json",
	})
	api := app.Group("/api", tokens.Middleware())
	api.Get("/me", func(r *dunlin.Request) dunlin.Response {
		return dunlin.Text(tokens.Claims(r).Subject)
	})

	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest("GET", "/api/me", nil)) // without a token: no request to the issuer
	fmt.Println(w.Code, w.Header().Get("WWW-Authenticate"))
	// Output: 401 Bearer
}

func Example() {
	tokens := auth.NewTokens(auth.Config{Issuer: issuer, Audience: audience, Keys: public})
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	api := app.Group("/api", tokens.Middleware())
	api.Get("/me", func(r *dunlin.Request) dunlin.Response { return dunlin.Text(tokens.Claims(r).Subject) })

	token := jwt.NewWithClaims(jwt.SigningMethodES256, good())
	token.Header["kid"] = "ec"
	text, _ := token.SignedString(ecKey)
	for _, authorization := range []string{"Bearer " + text, ""} {
		req := httptest.NewRequest("GET", "/api/me", nil)
		req.Header.Set("Authorization", authorization)
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		fmt.Println(w.Code, w.Header().Get("WWW-Authenticate") != "")
	}
	// Output:
	// 200 false
	// 401 true
}
