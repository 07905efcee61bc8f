package middleware_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
)

// Concurrent logins and updates use one cookie. Each successful login leads to a session of its user. No update sets a cookie,
// because it could replace that of a login.
func TestSessionConcurrentLogins(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		s := middleware.NewSessions[visit](middleware.SessionConfig{Store: store.NewMemory(store.MemoryConfig{}), Insecure: true})
		app.Use(s.Middleware())
		answer := func(err error) dunlin.Response {
			if err != nil {
				return dunlin.Error(err)
			}
			return dunlin.NoContent()
		}
		app.Post("/add", func(r *dunlin.Request) dunlin.Response {
			return answer(s.Update(r, func(v *visit) error { v.N++; return nil }))
		})
		app.Post("/login", func(r *dunlin.Request) dunlin.Response {
			return answer(s.Login(r, func(v *visit) error { v.User = "ada"; return nil }))
		})
		app.Get("/user", func(r *dunlin.Request) dunlin.Response {
			v, _, _ := s.Get(r)
			return dunlin.Text(v.User)
		})
		addr := serve()
		send := func(method, path, cookie string) (resp *http.Response, body, set string) {
			resp, body = exchangeRaw(t, addr, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0\r\nCookie: %s\r\nConnection: close\r\n\r\n", method, path, cookie))
			set, _, _ = strings.Cut(resp.Header.Get("Set-Cookie"), ";")
			return resp, body, set
		}
		for range 5 {
			_, _, old := send("POST", "/add", "none=1")
			var all sync.WaitGroup
			for i := range 16 {
				all.Go(func() {
					if i%4 > 0 {
						if resp, body, set := send("POST", "/add", old); set != "" || resp.StatusCode != 204 && resp.StatusCode != 409 {
							t.Errorf("update: got %d %s, cookie %q", resp.StatusCode, body, set)
						}
						return
					}
					resp, body, set := send("POST", "/login", old)
					if resp.StatusCode != 204 {
						if resp.StatusCode != 409 || set != "" {
							t.Errorf("login: got %d %s, cookie %q", resp.StatusCode, body, set)
						}
					} else if _, user, _ := send("GET", "/user", set); user != "ada" {
						t.Errorf("session of a login belongs to user %q", user)
					}
				})
			}
			all.Wait()
		}
	})
}
