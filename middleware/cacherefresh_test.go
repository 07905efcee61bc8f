package middleware_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
	"github.com/dunlinhttp/dunlin/middleware"
)

// A cache with an app refreshes in the background: no request waits while a stale response may be sent.
func TestCacheRefreshesInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		var mode atomic.Value
		mode.Store("")
		app := dunlin.New(quiet)
		cache := middleware.NewCache(middleware.CacheConfig{App: app})
		app.Use(func(next dunlin.Action) dunlin.Action {
			return func(r *dunlin.Request) dunlin.Response {
				if mode.Load() == "refused" && r.Header("If-None-Match") == "" {
					return dunlin.Empty().Status(429)
				}
				return next(r)
			}
		})
		app.Use(cache.Middleware())
		app.Get("/items/{id}", func(r *dunlin.Request) dunlin.Response {
			n := runs.Add(1)
			if n > 1 && r.Header("If-None-Match") != "" {
				t.Error("the refresh request has the client's conditions")
			}
			<-time.After(time.Second)
			switch mode.Load() {
			case "panic":
				panic("it")
			case "abort":
				panic(http.ErrAbortHandler)
			}
			return dunlin.Text(fmt.Sprint("run ", n, " for ", r.Header("X-Client"))).Header("Cache-Control", "max-age=10, stale-while-revalidate=100").Header("Vary", "X-Client")
		})
		get := func(what, want string) {
			t.Helper()
			req := httptest.NewRequest("GET", "/items/7", nil)
			req.Header.Set("X-Client", "a")
			req.Header.Set("If-None-Match", `"x"`)
			w, began := httptest.NewRecorder(), time.Now()
			app.ServeHTTP(w, req)
			if took := time.Since(began); w.Body.String() != want || runs.Load() > 1 && took > 0 {
				t.Errorf("%s: got %d %q after %v, want %q immediately", what, w.Code, w.Body, took, want)
			}
		}
		get("first request", "run 1 for a")
		<-time.After(15 * time.Second)
		get("first request after the entry is stale", "run 1 for a")
		get("second request after the entry is stale", "run 1 for a")
		<-time.After(2 * time.Second)
		get("after the refresh", "run 2 for a")
		if n := runs.Load(); n != 2 {
			t.Errorf("got %d runs of the action", n)
		}
		for i, m := range []string{"panic", "abort", "refused"} {
			mode.Store(m)
			<-time.After(15 * time.Second)
			get(m, "run 2 for a")
			<-time.After(2 * time.Second)
			get(m+", again", "run 2 for a")
			<-time.After(2 * time.Second)
			if n := runs.Load(); m != "refused" && n != int64(4+2*i) {
				t.Errorf("%s: got %d runs of the action", m, n)
			}
		}
		mode.Store("")
		get("first request after the action has recovered", "run 2 for a")
		<-time.After(2 * time.Second)
		get("after the second refresh", fmt.Sprintf("run %d for a", runs.Load()))
		if s := cache.Stats(); s.Entries != 1 {
			t.Errorf("got %+v", s)
		}
	})
}

// Background refreshes work on every engine.
func TestCacheRefreshesOnEngines(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		var runs atomic.Int64
		release := make(chan bool)
		cache := middleware.NewCache(middleware.CacheConfig{App: app})
		app.Get("/", func(r *dunlin.Request) dunlin.Response {
			n := runs.Add(1)
			if n == 2 {
				<-release
			}
			return dunlin.Text(fmt.Sprint("run ", n)).Header("Cache-Control", "max-age=1, stale-while-revalidate=600")
		}, cache.Middleware())
		addr := serve()
		until := time.Now().Add(30 * time.Second)
		ask := func() (body, status string) {
			t.Helper()
			if time.Now().After(until) {
				t.Fatal("timed out waiting for a refresh")
			}
			resp := get(t, "GET", addr, "/")
			body = suite.Body(t, resp)
			<-time.After(10 * time.Millisecond)
			return body, resp.Header.Get("Cache-Status")
		}
		body, status := ask()
		for ; status != "Dunlin; hit; detail=stale"; body, status = ask() { // the request that finds the entry stale also gets it
			if body != "run 1" {
				t.Fatalf("got %s, %s", body, status)
			}
		}
		if body != "run 1" {
			t.Errorf("stale: got %s", body)
		}
		release <- true
		for body != "run 2" {
			body, _ = ask()
		}
	})
}
