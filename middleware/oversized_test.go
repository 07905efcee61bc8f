package middleware_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
)

// registerAll registers routes that read every header known to Dunlin and its middleware.
func registerAll(app *dunlin.App) {
	st := store.NewMemory(store.MemoryConfig{})
	ring := middleware.NewKeyRing(secret(1))
	type visit struct{ N int }
	kept, sealed := middleware.NewSessions[visit](middleware.SessionConfig{Store: st, Cookie: "kept"}), middleware.NewSessions[visit](middleware.SessionConfig{Keys: ring, Cookie: "sealed"})
	cors := middleware.CORSConfig{Origins: []string{"https://app.example.com"}, Headers: []string{"X-Key"}, Credentials: true}
	app.Install(middleware.RequestID("X-Request-ID"), middleware.CORS(cors), middleware.SecureHeaders(middleware.SecureHeadersConfig{HSTS: time.Hour}),
		middleware.RateLimit(middleware.RateLimitConfig{Limit: 100_000, Window: time.Minute}))
	app.Use(middleware.CrossOrigin(), kept.Middleware(), sealed.Middleware())
	say := func(r *dunlin.Request) dunlin.Response {
		if _, _, err := kept.Get(r); err != nil {
			return dunlin.Error(err)
		}
		if _, _, err := sealed.Get(r); err != nil {
			return dunlin.Error(err)
		}
		_, err := r.Bytes()
		if err != nil {
			return dunlin.Error(err)
		}
		return dunlin.Text(strings.Repeat("well ", 400))
	}
	app.Post("/", say, middleware.Idempotency(middleware.IdempotencyConfig{Store: st, Anonymous: true}), middleware.ContentTypes("text/plain"),
		middleware.Decompress(middleware.DecompressConfig{}), middleware.ContentDigest(middleware.ContentDigestConfig{}), middleware.Compress(middleware.CompressConfig{}), middleware.ETag())
	app.Get("/", say, middleware.NewCache(middleware.CacheConfig{}).Middleware(), middleware.Compress(middleware.CompressConfig{}), middleware.ETag())
	app.Get("/login", say, middleware.BasicAuth(middleware.BasicAuthConfig{Realm: "r", Check: func(_ *dunlin.Request, _, _ string) bool { return false }}))
}

// Headers may be as long as Config.Limits.MaxHead and contain nonsense. The client gets the same response as for any other invalid
// value. A longer head gets 431.
func TestOversizedHeaders(t *testing.T) {
	config := quiet
	config.Proxy.Trusted = []string{"127.0.0.1"}
	config.H2C = dunlin.H2CPriorKnowledge
	onEnginesWith(t, config, func(t *testing.T, app *dunlin.App, serve func() string) {
		registerAll(app)
		addr := serve()
		for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
			var protocols http.Protocols
			protocols.SetHTTP1(proto == "HTTP/1.1")
			protocols.SetUnencryptedHTTP2(proto == "HTTP/2.0")
			client := &http.Client{Transport: &http.Transport{Protocols: &protocols}, Timeout: 20 * time.Second}
			defer client.CloseIdleConnections()
			ask := func(method, path, name, value string) int {
				var body io.Reader
				if method == "POST" {
					body = bytes.NewReader([]byte("text"))
				}
				req, err := http.NewRequest(method, "http://"+addr+path, body)
				if err != nil {
					t.Fatal(err)
				}
				if body != nil {
					req.Header.Set("Content-Type", "text/plain")
				}
				req.Header.Set(name, value)
				resp, err := client.Do(req)
				if err != nil {
					t.Fatalf("%s %s with a long %s: %v", proto, method, name, err)
				}
				defer resp.Body.Close()
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.Proto != proto {
					t.Errorf("%s %s with a long %s: got %s, %v", proto, method, name, resp.Proto, err)
				}
				return resp.StatusCode
			}
			for name, want := range map[string]struct{ get, post int }{
				"Accept": {200, 200}, "Accept-Encoding": {200, 200}, "Cookie": {200, 200}, "Origin": {200, 403}, "Range": {200, 200}, "If-None-Match": {200, 200},
				"If-Modified-Since": {200, 200}, "Cache-Control": {200, 200}, "Authorization": {200, 200}, "Content-Type": {200, 415}, "Content-Encoding": {200, 415},
				"Content-Digest": {200, 400}, "Idempotency-Key": {200, 400}, "X-Request-ID": {200, 200}, "X-Forwarded-For": {200, 200}, "X-Forwarded-Proto": {200, 200},
				"Forwarded": {200, 200}, "Traceparent": {200, 200}, "Sec-Fetch-Site": {200, 403}, "Vary": {200, 200}, "Referer": {200, 200}, "User-Agent": {200, 200},
				"Access-Control-Request-Method": {200, 200}, "Access-Control-Request-Headers": {200, 200}, "X-HTTP-Method-Override": {200, 200}, "Prefer": {200, 200},
			} {
				for what, value := range map[string]string{
					"letters": strings.Repeat("a", 10_000), "a list": strings.Repeat(`"a",`, 4_000), "cookies": strings.Repeat("kept=A;", 400),
				} {
					get, post := ask("GET", "/", name, value), ask("POST", "/", name, value)
					if get != want.get || post != want.post {
						t.Errorf("%s, %s of %s: got %d for GET and %d for POST, want %v", proto, name, what, get, post, want)
					}
				}
			}
			for _, value := range []string{"Basic " + strings.Repeat("QUFB", 7_000), "Basic " + strings.Repeat("!", 30_000), "Bearer " + strings.Repeat("a.", 15_000)} {
				if status := ask("GET", "/login", "Authorization", value); status != 401 {
					t.Errorf("%s: %.20s...: got status %d", proto, value, status)
				}
			}
			if proto == "HTTP/1.1" {
				for _, name := range []string{"Cookie", "X-Forwarded-For", "Authorization"} {
					if resp, _ := exchangeRaw(t, addr, "GET / HTTP/1.1\r\nHost: a.example\r\n"+name+": "+strings.Repeat("a", 70_000)+"\r\n\r\n"); resp.StatusCode != 431 {
						t.Errorf("a %s above MaxHead: got status %d, want 431", name, resp.StatusCode)
					}
				}
			}
		}
	})
}
