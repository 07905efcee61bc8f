package auth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/auth"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
)

const shop = "https://shop.example.com"

// An idp is an OpenID Connect provider that can be made to send wrong answers.
type idp struct {
	*httptest.Server

	claims   func(jwt.MapClaims)                             // of ID tokens
	sign     func(t *testing.T, claims jwt.MapClaims) string // replaces the signature with the published key
	metadata map[string]any                                  // replaces or extends the published metadata
	token    http.HandlerFunc                                // replaces the token endpoint
	answer   url.Values                                      // parameters of the redirect, in addition to code and state

	keys             atomic.Pointer[string] // the published keys
	asked, exchanged atomic.Int64
	mu               sync.Mutex
	codes            map[string]url.Values // the authorization requests by their codes
}

func newIDP(t *testing.T) *idp {
	p := &idp{codes: map[string]url.Values{}, answer: url.Values{}}
	p.keys.Store(new(webKeys(public)))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		says := map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"end_session_endpoint": p.URL + "/bye", "id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"},
			"authorization_response_iss_parameter_supported": true, "code_challenge_methods_supported": []string{"S256"},
		}
		maps.Copy(says, p.metadata)
		_ = json.NewEncoder(w).Encode(says)
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, *p.keys.Load()) })
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		p.mu.Lock()
		code := fmt.Sprint("code", len(p.codes))
		p.codes[code] = q
		p.mu.Unlock()
		back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}}
		maps.Copy(back, p.answer)
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		p.exchanged.Add(1)
		if p.token != nil {
			p.token(w, r)
			return
		}
		p.exchange(t, w, r)
	})
	p.Server = httptest.NewTLSServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *idp) exchange(t *testing.T, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	p.mu.Lock()
	asked, ok := p.codes[r.FormValue("code")]
	p.codes[r.FormValue("code")] = nil
	p.mu.Unlock()
	id, secret, _ := r.BasicAuth()
	challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !ok || asked == nil || id != "shop" || secret != "secret" || asked.Get("redirect_uri") != r.FormValue("redirect_uri") ||
		asked.Get("code_challenge_method") != "S256" || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(challenge[:]) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
		return
	}
	claims := jwt.MapClaims{
		"iss": p.URL, "aud": "shop", "sub": "ada", "nonce": asked.Get("nonce"), "email": "ada@example.com",
		"exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
	}
	if p.claims != nil {
		p.claims(claims)
	}
	signed := ""
	if p.sign != nil {
		signed = p.sign(t, claims)
	} else {
		signed = sign(t, jwt.SigningMethodES256, "ec", ecKey, claims)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": "access", "token_type": "Bearer", "id_token": signed, "expires_in": 3600})
}

type visit struct {
	User, Mail, Token string
	Cart              []string
}

// loginConfig returns the settings of the shop at a provider.
func loginConfig(p *idp, sessions *middleware.Sessions[visit]) auth.LoginConfig[visit] {
	return auth.LoginConfig[visit]{
		Issuer: p.URL, ClientID: "shop", ClientSecret: "secret", Callback: shop + "/login/callback", Client: p.Client(),
		Sessions: sessions, Keys: middleware.NewKeyRing([]byte("0123456789abcdef")),
		SignIn: func(_ *dunlin.Request, v *visit, who *auth.Identity) error {
			v.User, v.Token = who.Subject, who.IDToken
			return who.Claim("email", &v.Mail)
		},
		Hint: func(v *visit) string { return v.Token },
	}
}

// newShop returns a service with a login, and a function that returns new browsers.
func newShop(t *testing.T, p *idp, change func(*auth.LoginConfig[visit])) (*dunlin.App, func() *http.Client) {
	sessions := middleware.NewSessions[visit](middleware.SessionConfig{Store: store.NewMemory(store.MemoryConfig{})})
	config := loginConfig(p, sessions)
	if change != nil {
		change(&config)
	}
	login := auth.NewLogin(config)
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	app.Use(sessions.Middleware())
	app.Get("/login", login.Begin)
	app.Get("/login/callback", login.Finish)
	app.Handle("GET,POST", "/logout", login.Logout)
	app.Get("/add/{thing}", func(r *dunlin.Request) dunlin.Response {
		if err := sessions.Update(r, func(v *visit) error { v.Cart = append(v.Cart, r.Param("thing")); return nil }); err != nil {
			return dunlin.Error(err)
		}
		return dunlin.NoContent()
	})
	me := func(r *dunlin.Request) dunlin.Response {
		v, _, err := sessions.Get(r)
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(fmt.Sprint(v.User, " ", v.Mail, " ", v.Cart))
	}
	app.Get("/", me)
	app.Get("/me", me)
	return app, func() *http.Client {
		jar, _ := cookiejar.New(nil)
		return &http.Client{Jar: jar, Transport: byHost{"shop.example.com": dunlintest.NewClient(app).Transport, "": p.Client().Transport}}
	}
}

// byHost sends requests to the service or to the provider by their host.
type byHost map[string]http.RoundTripper

func (b byHost) RoundTrip(req *http.Request) (*http.Response, error) {
	if next := b[req.URL.Host]; next != nil {
		return next.RoundTrip(req)
	}
	return b[""].RoundTrip(req)
}

// visitPage returns the last response after all redirects, and its body.
func visitPage(t *testing.T, browser *http.Client, address string) (resp *http.Response, body string) {
	t.Helper()
	resp, err := browser.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// callback begins a login in a browser, and returns the URL to which the provider redirects it. The browser does not follow
// that redirect.
func callback(t *testing.T, browser *http.Client, begin string) string {
	t.Helper()
	browser.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
		if req.URL.Path == "/login/callback" {
			return http.ErrUseLastResponse
		}
		return nil
	}
	defer func() { browser.CheckRedirect = nil }()
	resp, body := visitPage(t, browser, begin)
	if resp.Header.Get("Location") == "" {
		t.Fatalf("no redirect from the provider: got %s %s", resp.Status, body)
	}
	return resp.Header.Get("Location")
}

func session(browser *http.Client) string {
	at, _ := url.Parse(shop)
	for _, c := range browser.Jar.Cookies(at) {
		if c.Name == "__Host-session" {
			return c.Value
		}
	}
	return ""
}

func TestLogin(t *testing.T) {
	p := newIDP(t)
	_, newBrowser := newShop(t, p, func(c *auth.LoginConfig[visit]) {
		c.Scopes, c.Params = []string{"email"}, map[string]string{"prompt": "login"}
		c.AfterLogout = true
	})
	browser := newBrowser()
	visitPage(t, browser, shop+"/add/book")
	before := session(browser)
	resp, body := visitPage(t, browser, shop+"/login?to="+url.QueryEscape("/me?a=b"))
	if resp.Request.URL.String() != shop+"/me?a=b" || body != "ada ada@example.com [book]" {
		t.Errorf("at %s: got %s", resp.Request.URL, body)
	}
	if after := session(browser); after == before || after == "" {
		t.Error("the session has the same name as before the login")
	}
	at, _ := url.Parse(shop)
	if cookies := browser.Jar.Cookies(at); len(cookies) != 1 {
		t.Errorf("after the login: got cookies %v", cookies)
	}
	// The logout redirects to the provider and names the user's session.
	browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := browser.Post(shop+"/logout", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	to, _ := url.Parse(resp.Header.Get("Location"))
	if resp.StatusCode != 303 || to.Path != "/bye" || to.Query().Get("id_token_hint") == "" || to.Query().Get("client_id") != "shop" ||
		to.Query().Get("post_logout_redirect_uri") != shop+"/" {
		t.Errorf("logout: got %d %s", resp.StatusCode, to)
	}
	if _, body := visitPage(t, browser, shop+"/me"); body != "  []" {
		t.Errorf("after the logout: got %s", body)
	}
	// Without a session the logout does not redirect to the provider.
	if resp, err := browser.Post(shop+"/logout", "", nil); err != nil || resp.Header.Get("Location") != "/" {
		t.Errorf("second logout: got %v, %v", resp, err)
	}
	if resp, _ := visitPage(t, browser, shop+"/logout"); resp.StatusCode != 405 {
		t.Errorf("GET of the logout: got %d", resp.StatusCode)
	}
}

// The authorization request has the required parameters.
func TestLoginRequest(t *testing.T) {
	p := newIDP(t)
	app, _ := newShop(t, p, func(c *auth.LoginConfig[visit]) {
		c.Scopes, c.Params = []string{"email", "openid"}, map[string]string{"prompt": "login"}
	})
	req := httptest.NewRequest("GET", "/login?to=/me", nil)
	req.Host = "evil.example"
	req.Header.Set("X-Forwarded-Host", "evil.example")
	w := httptest.NewRecorder()
	app.ServeHTTP(w, req)
	to, _ := url.Parse(w.Header().Get("Location"))
	q := to.Query()
	for name, want := range map[string]string{
		"client_id": "shop", "response_type": "code", "scope": "openid email", "redirect_uri": shop + "/login/callback", "code_challenge_method": "S256", "prompt": "login",
	} {
		if q.Get(name) != want {
			t.Errorf("got %s is %q, not %q", name, q.Get(name), want)
		}
	}
	for _, name := range []string{"state", "nonce", "code_challenge"} {
		if len(q.Get(name)) < 26 {
			t.Errorf("got %s is %q", name, q.Get(name))
		}
	}
	cookie := w.Header().Get("Set-Cookie")
	for _, want := range []string{"__Host-login-", "Path=/", "HttpOnly", "Secure", "SameSite=Lax", "Max-Age=600"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("got cookie %s without %s", cookie, want)
		}
	}
	for _, secret := range []string{q.Get("state"), q.Get("nonce"), "/me"} {
		if strings.Contains(cookie, secret) {
			t.Errorf("the cookie contains %s", secret)
		}
	}
	if w.Code != 303 || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("got %d %v", w.Code, w.Header())
	}
}

// A login redirects to paths of its own host only.
func TestLoginOpenRedirect(t *testing.T) {
	p := newIDP(t)
	_, newBrowser := newShop(t, p, nil)
	for _, to := range []string{
		"https://evil.example/", "//evil.example/", "/\\evil.example/", "\\\\evil.example", "/\t/evil.example/", "/\n/evil.example", "javascript:alert(1)",
		"evil", "", "/" + strings.Repeat("a", 600), "/" + strings.Repeat("é", 200), "///evil.example", "/login/callback", "/login/callback?state=x", "/%zz", "/\x00", "/login?to=/x", "/login#x", "/login/callback#x", "/login/%63allback", "http:/evil.example", " //evil.example",
	} {
		if resp, _ := visitPage(t, newBrowser(), shop+"/login?to="+url.QueryEscape(to)); resp.Request.URL.String() != shop+"/" {
			t.Errorf("path %q: got redirect to %s", to, resp.Request.URL)
		}
	}
}

// A login redirects back to the page that required it, for any path and query.
func TestLoginLeadsBack(t *testing.T) {
	p := newIDP(t)
	sessions := middleware.NewSessions[visit](middleware.SessionConfig{Store: store.NewMemory(store.MemoryConfig{})})
	login := auth.NewLogin(loginConfig(p, sessions))
	dunlintest.OnEngines(t, dunlin.Config{Logger: slog.New(slog.DiscardHandler)}, func(t *testing.T, app *dunlin.App) {
		app.Use(sessions.Middleware())
		app.Get("/login", login.Begin)
		app.Get("/login/callback", login.Finish)
		app.Get("/pages/{path...}", func(r *dunlin.Request) dunlin.Response {
			v, _, err := sessions.Get(r)
			if err != nil {
				return dunlin.Error(err)
			}
			if v.User == "" {
				return dunlin.Redirect("/login?to=" + url.QueryEscape(r.SentPath()+"?"+r.RawQuery()))
			}
			return dunlin.Text(r.SentPath() + "?" + r.RawQuery())
		})
		addr := dunlintest.Serve(t, app)
		own := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		}}
		t.Cleanup(own.CloseIdleConnections)
		for _, path := range []string{"/pages/a?b=c&d=e+f%26", "/pages/caf%C3%A9?x=%C3%A9", "/pages/a%20b?", "/pages/50%25?", "/pages/a%2Fb?to=/x", "/pages/%7B%7D%22?", "/pages/..%2Fx?"} {
			jar, _ := cookiejar.New(nil)
			clear := func(req *http.Request) (*http.Response, error) { // the engines serve in clear text in this test
				req = req.Clone(req.Context())
				req.URL.Scheme = "http"
				return own.RoundTrip(req)
			}
			browser := &http.Client{Jar: jar, Transport: byHost{"shop.example.com": roundTrip(clear), "": p.Client().Transport}}
			want, err := url.PathUnescape(strings.NewReplacer("%2F", "%252F", "%25", "%2525").Replace(path[:strings.IndexByte(path, '?')]))
			if err != nil {
				t.Fatal(err)
			}
			want += path[strings.IndexByte(path, '?'):]
			if resp, body := visitPage(t, browser, shop+path); resp.StatusCode != 200 || body != want {
				t.Errorf("%s: got %s, %d %q, want %q", path, resp.Request.URL, resp.StatusCode, body, want)
			}
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestLoginAttacks tests forged callbacks.
func TestLoginAttacks(t *testing.T) {
	p := newIDP(t)
	app, newBrowser := newShop(t, p, nil)
	victim, attacker := newBrowser(), newBrowser()
	set := func(to, name, value string) string {
		u, _ := url.Parse(to)
		q := u.Query()
		if value == "" {
			q.Del(name)
		} else {
			q.Set(name, value)
		}
		u.RawQuery = q.Encode()
		return u.String()
	}
	refused := func(what string, browser *http.Client, to string, status int) {
		t.Helper()
		before := p.exchanged.Load()
		resp, body := visitPage(t, browser, to)
		if resp.StatusCode != status || !strings.Contains(body, `"status":`) || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got %d %s", what, resp.StatusCode, body)
		}
		if session(browser) != "" {
			t.Errorf("%s: got a session", what)
		}
		if n := p.exchanged.Load() - before; n != 0 {
			t.Errorf("%s: got a call of the provider", what)
		}
	}
	mine := callback(t, attacker, shop+"/login")
	refused("login of another browser (CSRF)", victim, mine, 400)
	theirs := callback(t, victim, shop+"/login")
	refused("login of another browser, during a login", victim, mine, 400)
	refused("other state", victim, set(theirs, "state", "x"), 400)
	refused("no state", victim, set(theirs, "state", ""), 400)
	refused("a state of bytes", victim, set(theirs, "state", "\xff\xfe"), 400)
	refused("two states", victim, theirs+"&state=x", 400)
	refused("two codes", victim, theirs+"&code=x", 400)
	refused("another provider's answer (mix-up)", newBrowserWith(t, newBrowser, victim), set(theirs, "iss", "https://evil.example"), 400)
	refused("no provider's answer", newBrowserWith(t, newBrowser, victim), set(theirs, "iss", ""), 400)
	refused("no code", newBrowserWith(t, newBrowser, victim), set(theirs, "code", ""), 400)
	refused("a code that is too long", newBrowserWith(t, newBrowser, victim), set(theirs, "code", strings.Repeat("c", 5000)), 400)
	refused("access denied by the user", newBrowserWith(t, newBrowser, victim), set(set(theirs, "code", ""), "error", "access_denied"), 403)
	refused("the provider cannot", newBrowserWith(t, newBrowser, victim), set(set(theirs, "code", ""), "error", "temporarily_unavailable"), 503)
	refused("the provider will not", newBrowserWith(t, newBrowser, victim), set(set(theirs, "code", ""), "error", "<script>"), 400)

	// A code can be used only once: the provider refuses it, and the browser has removed the cookie of the login.
	copied := newBrowserWith(t, newBrowser, victim)
	if resp, body := visitPage(t, victim, theirs); resp.StatusCode != 200 || !strings.HasPrefix(body, "ada") {
		t.Fatalf("login: got %d %s", resp.StatusCode, body)
	}
	refused("repeated callback", newBrowserWith(t, newBrowser, victim), theirs, 400)
	if resp, _ := visitPage(t, copied, theirs); resp.StatusCode != 400 || session(copied) != "" {
		t.Errorf("used code with the earlier cookie: %d", resp.StatusCode)
	}
	// The victim's code does not fit the attacker's login (code injection): PKCE.
	code, _ := url.Parse(callback(t, newBrowser(), shop+"/login"))
	if resp, _ := visitPage(t, attacker, set(mine, "code", code.Query().Get("code"))); resp.StatusCode != 400 || session(attacker) != "" {
		t.Errorf("injected code: got %d", resp.StatusCode)
	}
	// Cookies that the key ring has not sealed.
	for _, value := range []string{"", "x", strings.Repeat("A", 200), middleware.NewKeyRing([]byte("another key of somebody")).Seal("login", []byte(`{}`))} {
		req := httptest.NewRequest("GET", theirs, nil)
		for i := range 8 {
			req.AddCookie(&http.Cookie{Name: cookieOf(t, app) + fmt.Sprint(i), Value: value})
		}
		w := httptest.NewRecorder()
		if app.ServeHTTP(w, req); w.Code != 400 {
			t.Errorf("cookie %q: got %d", value, w.Code)
		}
	}
}

// cookieOf returns the name of the login cookies, without the number.
func cookieOf(t *testing.T, app *dunlin.App) string {
	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest("GET", "/login", nil))
	name, _, ok := strings.Cut(w.Header().Get("Set-Cookie"), "=")
	if !ok {
		t.Fatal("got no cookie")
	}
	return name[:len(name)-1]
}

// newBrowserWith returns a browser with the login cookies of another browser, but without its session.
func newBrowserWith(t *testing.T, newBrowser func() *http.Client, other *http.Client) *http.Client {
	t.Helper()
	b, at := newBrowser(), &url.URL{Scheme: "https", Host: "shop.example.com", Path: "/"}
	for _, c := range other.Jar.Cookies(at) {
		if strings.HasPrefix(c.Name, "__Host-login-") {
			b.Jar.SetCookies(at, []*http.Cookie{{Name: c.Name, Value: c.Value, Path: "/", Secure: true}})
		}
	}
	return b
}

// Invalid ID tokens are refused.
func TestLoginBadTokens(t *testing.T) {
	p := newIDP(t)
	_, newBrowser := newShop(t, p, nil)
	set := func(name string, value any) func(jwt.MapClaims) {
		return func(c jwt.MapClaims) {
			if value == nil {
				delete(c, name)
			} else {
				c[name] = value
			}
		}
	}
	attempt := func(t *testing.T, status int) {
		t.Helper()
		browser := newBrowser()
		resp, body := visitPage(t, browser, shop+"/login")
		if resp.StatusCode != status || session(browser) != "" {
			t.Errorf("got %d %s", resp.StatusCode, body)
		}
	}
	for name, claims := range map[string]func(jwt.MapClaims){
		"another nonce": set("nonce", "x"), "no nonce": set("nonce", nil), "another issuer": set("iss", "https://evil.example"), "no issuer": set("iss", nil),
		"other audience": set("aud", "other"), "no audience": set("aud", nil), "expired": set("exp", time.Now().Add(-time.Minute).Unix()), "never expires": set("exp", nil),
		"not yet": set("nbf", time.Now().Add(time.Hour).Unix()), "issued in the future": set("iat", time.Now().Add(time.Hour).Unix()), "no subject": set("sub", nil),
		"other spelling of sub": set("ſub", "root"), "other spelling of nonce": set("NONCE", "x"),
		"issued to another client": set("azp", "other"), "several audiences without azp": set("aud", []string{"shop", "other"}), "other access token": set("at_hash", "AAAAAAAAAAAAAAAAAAAAAA"),
	} {
		t.Run(name, func(t *testing.T) { p.claims = claims; attempt(t, 502) })
	}
	p.claims = nil
	for name, forge := range map[string]func(*testing.T, jwt.MapClaims) string{
		"alg none": func(t *testing.T, c jwt.MapClaims) string {
			return sign(t, jwt.SigningMethodNone, "ec", jwt.UnsafeAllowNoneSignatureType, c)
		},
		"HMAC by the client's secret": func(t *testing.T, c jwt.MapClaims) string {
			return sign(t, jwt.SigningMethodHS256, "ec", []byte("secret"), c)
		},
		"a stranger's key": func(t *testing.T, c jwt.MapClaims) string {
			return sign(t, jwt.SigningMethodES256, "ec", strangerKey, c)
		},
		"an unknown key": func(t *testing.T, c jwt.MapClaims) string {
			return sign(t, jwt.SigningMethodES256, "none", strangerKey, c)
		},
		"an unlisted method":   func(t *testing.T, c jwt.MapClaims) string { return sign(t, jwt.SigningMethodRS256, "rsa", rsaKey, c) },
		"no token":             func(*testing.T, jwt.MapClaims) string { return "" },
		"malformed token":      func(*testing.T, jwt.MapClaims) string { return "a.b.c" },
		"one that is too long": func(*testing.T, jwt.MapClaims) string { return strings.Repeat("a", 20_000) },
	} {
		t.Run(name, func(t *testing.T) { p.sign = forge; attempt(t, 502) })
	}
	p.sign = nil
	for name, answer := range map[string]struct {
		status int
		say    http.HandlerFunc
	}{
		"invalid client":    {502, func(w http.ResponseWriter, r *http.Request) { tell(w, 401, `{"error":"invalid_client"}`) }},
		"it is broken":      {503, func(w http.ResponseWriter, r *http.Request) { tell(w, 500, `oops`) }},
		"invalid JSON":      {503, func(w http.ResponseWriter, r *http.Request) { tell(w, 200, `{`) }},
		"response too long": {503, func(w http.ResponseWriter, r *http.Request) { tell(w, 200, `{"x":"`+strings.Repeat("x", 3<<20)+`"}`) }},
		"it redirects": {502, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://evil.example", http.StatusTemporaryRedirect)
		}},
		"it hangs up": {503, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	} {
		t.Run(name, func(t *testing.T) { p.token = answer.say; attempt(t, answer.status) })
	}
	p.token = nil
	p.claims = func(c jwt.MapClaims) { c["aud"], c["azp"] = []string{"shop", "other"}, "shop" }
	if resp, _ := visitPage(t, newBrowser(), shop+"/login"); resp.StatusCode != 200 {
		t.Errorf("several audiences, issued to this client: got %d", resp.StatusCode)
	}
}

func tell(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// A provider that hangs or is down during a callback delays the user only briefly, and the login is not lost: the same URL
// works when the provider answers again.
func TestLoginWhileProviderIsUnavailable(t *testing.T) {
	p := newIDP(t)
	_, newBrowser := newShop(t, p, func(c *auth.LoginConfig[visit]) { c.Timeout = 200 * time.Millisecond })
	var says atomic.Pointer[http.HandlerFunc] // nil: the usual response
	p.token = func(w http.ResponseWriter, r *http.Request) {
		if say := says.Load(); say != nil {
			(*say)(w, r)
			return
		}
		p.exchange(t, w, r)
	}
	for name, away := range map[string]http.HandlerFunc{
		"hangs": func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() },
		"down":  func(w http.ResponseWriter, _ *http.Request) { tell(w, 503, "no") },
		"slow to end": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // otherwise the server would not notice that the client closes the connection
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		browser := newBrowser()
		back := callback(t, browser, shop+"/login?to=/me")
		says.Store(&away)
		if resp, _ := visitPage(t, browser, back); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || session(browser) != "" {
			t.Errorf("%s: got %d %v", name, resp.StatusCode, resp.Header)
		}
		says.Store(nil)
		deadline := time.Now().Add(time.Minute)
		resp, body := visitPage(t, browser, back)
		for resp.StatusCode == 503 && time.Now().Before(deadline) { // a slow machine may need several attempts
			resp, body = visitPage(t, browser, back)
		}
		if resp.Request.URL.String() != shop+"/me" || !strings.HasPrefix(body, "ada") {
			t.Errorf("%s, and back: got %s, %d %s", name, resp.Request.URL, resp.StatusCode, body)
		}
		if resp, _ := visitPage(t, newBrowserWith(t, newBrowser, browser), back); resp.StatusCode != 400 {
			t.Errorf("%s, third attempt: got %d", name, resp.StatusCode)
		}
	}
}

// A provider may change its key between two logins without notice.
func TestLoginKeyRotation(t *testing.T) {
	p := newIDP(t)
	fresh, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, newBrowser := newShop(t, p, nil)
	if _, body := visitPage(t, newBrowser(), shop+"/login?to=/me"); !strings.HasPrefix(body, "ada") {
		t.Fatal(body)
	}
	p.keys.Store(new(webKeys(map[string]crypto.PublicKey{"next": &fresh.PublicKey})))
	p.sign = func(t *testing.T, c jwt.MapClaims) string { return sign(t, jwt.SigningMethodES256, "next", fresh, c) }
	if _, body := visitPage(t, newBrowser(), shop+"/login?to=/me"); !strings.HasPrefix(body, "ada") {
		t.Errorf("token of the new key: got %s", body)
	}
	p.sign = nil
	if resp, _ := visitPage(t, newBrowser(), shop+"/login"); resp.StatusCode != 502 {
		t.Errorf("token of the removed key: got %d", resp.StatusCode)
	}
}

// A provider with invalid metadata is refused, and is called again after a second at the earliest.
func TestLoginDiscovery(t *testing.T) {
	for name, metadata := range map[string]map[string]any{
		"another issuer":       {"issuer": "https://evil.example"},
		"keys in clear text":   {"jwks_uri": "http://id.example.com/keys"},
		"no token endpoint":    {"token_endpoint": ""},
		"invalid endpoint":     {"authorization_endpoint": "javascript:alert(1)"},
		"an odd end":           {"end_session_endpoint": "//evil"},
		"no PKCE":              {"code_challenge_methods_supported": []string{"plain"}},
		"too much":             {"x": strings.Repeat("x", 2<<20)},
		"wrong type of a list": {"token_endpoint_auth_methods_supported": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newIDP(t)
			p.metadata = metadata
			app, _ := newShop(t, p, nil)
			for range 3 {
				w := httptest.NewRecorder()
				app.ServeHTTP(w, httptest.NewRequest("GET", "/login", nil))
				if w.Code != 503 || w.Header().Get("Retry-After") == "" || w.Header().Get("Set-Cookie") != "" {
					t.Errorf("got %d %v", w.Code, w.Header())
				}
			}
		})
	}
}

// Concurrent logins share one fetch of the metadata. They wait no longer than Timeout for a provider that does not answer.
func TestLoginOneFlight(t *testing.T) {
	p := newIDP(t)
	app, _ := newShop(t, p, nil)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			w := httptest.NewRecorder()
			if app.ServeHTTP(w, httptest.NewRequest("GET", "/login", nil)); w.Code != 303 {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
		})
	}
	all.Wait()
	if n := p.asked.Load(); n != 1 {
		t.Errorf("got %d calls of the provider", n)
	}

	silent := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	app, _ = newShop(t, p, func(c *auth.LoginConfig[visit]) {
		c.Issuer, c.Client, c.Timeout = silent.URL, silent.Client(), 50*time.Millisecond
	})
	w := httptest.NewRecorder()
	if app.ServeHTTP(w, httptest.NewRequest("GET", "/login", nil)); w.Code != 503 {
		t.Errorf("unresponsive provider: got %d", w.Code)
	}
	w = httptest.NewRecorder() // a logout does not need the metadata
	if app.ServeHTTP(w, httptest.NewRequest("POST", "/logout", nil)); w.Code != 303 || w.Header().Get("Location") != "/" {
		t.Errorf("logout: got %d %v", w.Code, w.Header())
	}
}

// Logins in several tabs do not conflict. The number of cookies stays small, however many logins a browser begins.
func TestLoginTabs(t *testing.T) {
	p := newIDP(t)
	_, newBrowser := newShop(t, p, nil)
	at, _ := url.Parse(shop)
	for range 20 {
		browser := newBrowser()
		var back []string
		for i := range 8 {
			back = append(back, callback(t, browser, fmt.Sprint(shop, "/login?to=/me?tab=", i)))
		}
		for _, i := range []int{3, 0, 7, 1, 2, 6, 5, 4} {
			if resp, body := visitPage(t, browser, back[i]); resp.Request.URL.String() != fmt.Sprint(shop, "/me?tab=", i) || !strings.HasPrefix(body, "ada") {
				t.Errorf("tab %d is at %s: got %s", i, resp.Request.URL, body)
			}
		}
		if n := len(browser.Jar.Cookies(at)); n != 1 {
			t.Errorf("got %d remaining cookies", n)
		}
	}
	browser := newBrowser()
	var back []string
	for range 50 {
		back = append(back, callback(t, browser, shop+"/login?to=/"+strings.Repeat("a", 500)))
	}
	size := 0
	for _, c := range browser.Jar.Cookies(at) {
		size += len(c.Name) + len(c.Value)
	}
	if n := len(browser.Jar.Cookies(at)); n != 8 || size > 8<<10 {
		t.Errorf("got %d cookies of %d bytes", n, size)
	}
	if _, body := visitPage(t, browser, back[49]); !strings.Contains(body, "404") {
		t.Errorf("last tab: got %s", body)
	}
	if session(browser) == "" {
		t.Error("the last tab has no session")
	}
}

// A login that took too long is refused, and an error of SignIn is the response.
func TestLoginEnds(t *testing.T) {
	p := newIDP(t)
	_, newBrowser := newShop(t, p, func(c *auth.LoginConfig[visit]) { c.Within = time.Nanosecond })
	if resp, body := visitPage(t, newBrowser(), shop+"/login"); resp.StatusCode != 400 || !strings.Contains(body, "begin it again") {
		t.Errorf("login after the time limit: got %d %s", resp.StatusCode, body)
	}
	_, newBrowser = newShop(t, p, func(c *auth.LoginConfig[visit]) {
		c.SignIn = func(*dunlin.Request, *visit, *auth.Identity) error {
			return &dunlin.ProblemDetails{Status: 403, Detail: "not a member"}
		}
	})
	browser := newBrowser()
	if resp, body := visitPage(t, browser, shop+"/login"); resp.StatusCode != 403 || !strings.Contains(body, "not a member") || session(browser) != "" {
		t.Errorf("not a member: got %d %s", resp.StatusCode, body)
	}
}

// The secret is sent where the provider accepts it.
func TestLoginSecret(t *testing.T) {
	for name, test := range map[string]struct {
		metadata map[string]any
		change   func(*auth.LoginConfig[visit])
		inBody   string
	}{
		"post, in metadata":    {map[string]any{"token_endpoint_auth_methods_supported": []string{"client_secret_post"}}, nil, "secret"},
		"post, in LoginConfig": {nil, func(c *auth.LoginConfig[visit]) { c.SecretInBody = true }, "secret"},
		"no secret":            {nil, func(c *auth.LoginConfig[visit]) { c.ClientSecret = "" }, ""},
		"as is standard":       {nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := newIDP(t)
			p.metadata = test.metadata
			asked := false
			p.token = func(w http.ResponseWriter, r *http.Request) {
				asked = true
				_, _, inHeader := r.BasicAuth()
				if standard := name == "as is standard"; inHeader != standard || r.FormValue("client_secret") != test.inBody || (r.FormValue("client_id") == "shop") == standard {
					t.Errorf("got %v %v", r.Header, r.Form)
				}
				tell(w, 400, `{"error":"invalid_grant"}`)
			}
			_, newBrowser := newShop(t, p, test.change)
			if resp, body := visitPage(t, newBrowser(), shop+"/login"); resp.StatusCode != 400 || !asked {
				t.Errorf("got %d %s", resp.StatusCode, body)
			}
		})
	}
}

func TestLoginSettings(t *testing.T) {
	p := newIDP(t)
	sessions := middleware.NewSessions[visit](middleware.SessionConfig{Store: store.NewMemory(store.MemoryConfig{})})
	for want, change := range map[string]func(*auth.LoginConfig[visit]){
		"Issuer, ClientID and Callback must be given":                        func(c *auth.LoginConfig[visit]) { c.ClientID = "" },
		"Sessions, SignIn and Keys must be set":                              func(c *auth.LoginConfig[visit]) { c.Keys = nil },
		"must not be negative":                                               func(c *auth.LoginConfig[visit]) { c.Within = -1 },
		"LoginConfig.Home is":                                                func(c *auth.LoginConfig[visit]) { c.Home = "//evil.example" },
		"Params has state":                                                   func(c *auth.LoginConfig[visit]) { c.Params = map[string]string{"state": "x"} },
		"Issuer: \"http://id.example.com\" does not use https":               func(c *auth.LoginConfig[visit]) { c.Issuer = "http://id.example.com" },
		"an issuer has no query":                                             func(c *auth.LoginConfig[visit]) { c.Issuer += "?x" },
		"Callback: \"/login/callback\" is not an absolute https URL":         func(c *auth.LoginConfig[visit]) { c.Callback = "/login/callback" },
		"Callback: \"http://shop.example.com/\" does not use https":          func(c *auth.LoginConfig[visit]) { c.Callback = "http://shop.example.com/" },
		"Callback: \"https://shop.example.com/#x\" has a fragment or a user": func(c *auth.LoginConfig[visit]) { c.Callback = "https://shop.example.com/#x" },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("got %s, not %s", got, want)
				}
			}()
			config := loginConfig(p, sessions)
			change(&config)
			auth.NewLogin(config)
		}()
	}
	config := loginConfig(p, sessions)
	config.Issuer, config.Callback, config.Insecure = "http://localhost:8080", "http://localhost:3000/login/callback", true
	auth.NewLogin(config)
}

func ExampleNewLogin() {
	type visit struct{ User string }
	sessions := middleware.NewSessions[visit](middleware.SessionConfig{Store: store.NewMemory(store.MemoryConfig{})})
	secret, keys := "from the environment", middleware.NewKeyRing([]byte("32 random bytes of the service's"))
	app := dunlin.New(dunlin.Config{})

	login := auth.NewLogin(auth.LoginConfig[visit]{
		Issuer: "https://id.example.com", ClientID: "shop", ClientSecret: secret,
		Callback: "https://shop.example.com/login/callback", // as registered with the provider
		Sessions: sessions, Keys: keys,
		SignIn: func(_ *dunlin.Request, v *visit, who *auth.Identity) error {
			v.User = who.Subject
			return nil
		},
	})
	app.Use(middleware.CrossOrigin(), sessions.Middleware())
	app.Get("/login", login.Begin)
	app.Get("/login/callback", login.Finish)
	app.Post("/logout", login.Logout)

	// A callback of a login that did not begin here is refused.
	resp, err := dunlintest.NewClient(app).Get("https://shop.example.com/login/callback?code=x&state=y")
	if err != nil {
		panic(err)
	}
	fmt.Println(resp.Status)
	// Output: 400 Bad Request
}
