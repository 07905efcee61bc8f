package middleware_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
)

// Responses to clients identified by means other than Authorization and cookies are shared only if they are marked public.
func TestCacheSeparatesIdentifiedClients(t *testing.T) {
	check := func(r *dunlin.Request, key string) (user string, ok bool) { return key, key != "nobody" }
	byKey := middleware.KeyAuth(middleware.KeyAuthConfig{Header: "X-Api-Key", Check: check})
	sessions := func() *middleware.Sessions[int] {
		return middleware.NewSessions[int](middleware.SessionConfig{Store: store.NewMemory(store.MemoryConfig{}), Cookie: "s", Insecure: true})
	}
	for name, around := range map[string]func(app *dunlin.App, cache dunlin.Middleware) (act func(*dunlin.Request) error){
		"API key before the cache": func(app *dunlin.App, cache dunlin.Middleware) func(*dunlin.Request) error {
			app.Use(byKey, cache)
			return nil
		},
		"API key after the cache": func(app *dunlin.App, cache dunlin.Middleware) func(*dunlin.Request) error {
			app.Use(cache, func(next dunlin.Action) dunlin.Action {
				return func(r *dunlin.Request) dunlin.Response { // an application may remove a protective Vary
					return byKey(next)(r).Header("Vary", "X-Nothing")
				}
			})
			return nil
		},
		"session that begins after the cache": func(app *dunlin.App, cache dunlin.Middleware) func(*dunlin.Request) error {
			s := sessions()
			app.Use(s.Middleware(), cache)
			return func(r *dunlin.Request) error { return s.Update(r, func(n *int) error { *n++; return nil }) }
		},
		"session that begins after standard middleware": func(app *dunlin.App, cache dunlin.Middleware) func(*dunlin.Request) error {
			s := sessions()
			app.Use(s.Middleware(), cache)
			app.UseStd(func(next http.Handler) http.Handler { return next })
			return func(r *dunlin.Request) error { return s.Update(r, func(n *int) error { *n++; return nil }) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
				act := around(app, middleware.NewCache(middleware.CacheConfig{}).Middleware())
				for path, says := range map[string]string{"/own": "max-age=60", "/all": "public, max-age=60", "/stream": "max-age=60"} {
					app.Get(path, func(r *dunlin.Request) dunlin.Response {
						if act != nil {
							if err := act(r); err != nil {
								return dunlin.Error(err)
							}
						}
						text := "for " + r.Header("X-Api-Key")
						resp := dunlin.Text(text)
						if path == "/stream" {
							resp = dunlin.Stream("text/plain", func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
						}
						return resp.Header("Cache-Control", says)
					})
				}
				addr := serve()
				ask := func(path, user string) string {
					resp, body := exchangeRaw(t, addr, "GET "+path+" HTTP/1.1\r\nHost: example.com\r\nX-Api-Key: "+user+"\r\nConnection: close\r\n\r\n")
					if resp.StatusCode != 200 {
						t.Fatalf("%s: got %d %s", path, resp.StatusCode, body)
					}
					return body
				}
				for _, path := range []string{"/own", "/stream"} {
					for _, user := range []string{"alice", "bob", "bob", "alice"} {
						if body := ask(path, user); body != "for "+user {
							t.Errorf("%s: user %s got the response %s", path, user, body)
						}
					}
				}
				for _, user := range []string{"alice", "bob"} {
					if body := ask("/all", user); body != "for alice" {
						t.Errorf("%s: public response was not served from the cache: got %q", user, body)
					}
				}
			})
		})
	}
}

func TestCacheSeparatesClientCertificates(t *testing.T) {
	cert, pool := tlstest.Certificate()
	onEngines(t, func(t *testing.T, app *dunlin.App, _ func() string) {
		runs := 0 // requests are sequential
		app.Get("/{path}", func(r *dunlin.Request) dunlin.Response {
			runs++
			resp := dunlin.Text(fmt.Sprint(runs))
			if r.Param("path") == "all" {
				return resp.CachePublic(time.Minute)
			}
			return resp.Header("Cache-Control", "max-age=60")
		}, middleware.NewCache(middleware.CacheConfig{}).Middleware())
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		config := tlstest.Server()
		config.ClientAuth, config.ClientCAs = tls.VerifyClientCertIfGiven, pool
		done := make(chan error, 1)
		go func() { done <- app.ServeTLS(ln, config) }()
		defer func() {
			_ = app.Shutdown(context.Background())
			<-done
		}()
		ask := func(path string, known bool, protocols ...string) string {
			own := tlstest.Client()
			if own.NextProtos = protocols; known {
				own.Certificates = []tls.Certificate{cert}
			}
			transport := &http.Transport{TLSClientConfig: own, DisableKeepAlives: true, ForceAttemptHTTP2: len(protocols) > 0 && protocols[0] == "h2"}
			defer transport.CloseIdleConnections()
			resp, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Get("https://" + ln.Addr().String() + path)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
		for i, c := range []struct {
			path, protocol string
			known          bool
			want           string
		}{
			{"/own", "http/1.1", true, "1"}, {"/own", "http/1.1", true, "2"}, {"/own", "h2", true, "3"}, {"/own", "http/1.1", false, "4"},
			{"/own", "h2", false, "4"}, {"/own", "h2", true, "5"}, {"/all", "http/1.1", true, "6"}, {"/all", "h2", true, "6"},
		} {
			if got := ask(c.path, c.known, c.protocol); got != c.want {
				t.Errorf("request %d, %+v: got response %s, want %s", i, c, got, c.want)
			}
		}
	})
}

// The cache bypasses requests whose Connection names fields for a Proxy to remove.
func TestCacheWithConnectionFields(t *testing.T) {
	target := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept-Language, X-Tenant")
		w.Header().Set("Cache-Control", "max-age=60")
		_, _ = fmt.Fprintf(w, "%s %s", r.Header.Get("Accept-Language"), r.Header.Get("X-Tenant"))
	})
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		cache := middleware.NewCache(middleware.CacheConfig{})
		app.Get("/", middleware.Proxy(middleware.ProxyConfig{Target: target}), cache.Middleware())
		addr := serve()
		ask := func(connection string) (body, status string) {
			resp, body := exchangeRaw(t, addr, "GET / HTTP/1.1\r\nHost: example.com\r\nAccept-Language: de\r\nX-Tenant: t1\r\n"+connection+"\r\n")
			return body, resp.Header.Get("Cache-Status")
		}
		for _, connection := range []string{"Connection: close, Accept-Language, X-Tenant\r\n", "Connection: X-Tenant\r\nConnection: close\r\n", "connection: close\r\nCONNECTION: accept-language\r\n"} {
			if _, status := ask(connection); status != "" {
				t.Errorf("%q: got Cache-Status %s", connection, status)
			}
		}
		for i, connection := range []string{"Connection: close\r\n", "Connection: keep-alive\r\n", "", "Connection: keep-alive, TE\r\n"} {
			want := "Dunlin; hit"
			if i == 0 {
				want = "Dunlin; fwd=miss; stored"
			}
			if body, status := ask(connection); body != "de t1" || status != want {
				t.Errorf("%q: got body %q, Cache-Status %s, want %s", connection, body, status, want)
			}
		}
		if s := cache.Stats(); s.Passed != 3 || s.Hits != 3 {
			t.Errorf("got %+v", s)
		}
	})
}
