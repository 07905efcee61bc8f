package middleware_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
)

// A key belongs to the authenticated user, with any kind of credentials. Users do not share keys, and a renewed token does
// not run a request twice.
func TestIdempotencyUser(t *testing.T) {
	check := func(_ *dunlin.Request, key string) (user string, ok bool) {
		user, _, ok = strings.Cut(key, "/")
		return user, ok
	}
	for _, header := range []string{"X-Api-Key", "Authorization"} {
		onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
			runs := new(atomic.Int64)
			app.Use(middleware.KeyAuth(middleware.KeyAuthConfig{Header: header, Check: check}))
			app.Use(middleware.Idempotency(middleware.IdempotencyConfig{Store: store.NewMemory(store.MemoryConfig{}), User: middleware.User}))
			app.Post("/", func(r *dunlin.Request) dunlin.Response {
				return dunlin.Text(fmt.Sprint(runs.Add(1), " for ", middleware.User(r)))
			})
			addr := serve()
			for i, c := range []struct{ key, want string }{
				{"alice/token1", "1 for alice"}, {"bob/token1", "2 for bob"}, {"alice/token2", "1 for alice"}, {"bob/token2", "2 for bob"},
			} {
				if header == "Authorization" {
					c.key = "Bearer " + c.key
				}
				resp, body := exchangeRaw(t, addr, "POST / HTTP/1.1\r\nHost: x\r\nIdempotency-Key: order-1\r\n"+header+": "+c.key+"\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx")
				if resp.StatusCode != 200 || body != c.want {
					t.Errorf("request %d with %s %s: got %d %q, want %q", i, header, c.key, resp.StatusCode, body, c.want)
				}
			}
		})
	}
	// Requests with a key and without a user are refused.
	app, runs := orders(middleware.IdempotencyConfig{User: middleware.User}, created)
	if w := post(app, "/orders/7", "x", "Idempotency-Key", "k", "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("a:b"))); w.Code != 403 || runs.Load() != 0 {
		t.Errorf("without a user: got %d %s and %d runs", w.Code, w.Body, runs.Load())
	}
	if w := post(app, "/orders/7", "x"); w.Code != 201 {
		t.Errorf("without a user and a key: got %d %s", w.Code, w.Body)
	}
}

// A flood of requests with keys, refused or not, leaves memory in the store for sessions and for the keys of other users.
func TestIdempotencyFloodDoesNotFillStore(t *testing.T) {
	for name, act := range map[string]func(*dunlin.Request, int64) dunlin.Response{
		"refused": func(*dunlin.Request, int64) dunlin.Response { return dunlin.Error(&dunlin.ProblemDetails{Status: 400}) },
		"served":  created,
		"large":   func(*dunlin.Request, int64) dunlin.Response { return dunlin.Text(strings.Repeat("x", 30_000)) },
	} {
		const all = 1 << 20
		m := store.NewMemory(store.MemoryConfig{MaxBytes: all, Logger: slog.New(slog.DiscardHandler)})
		app, runs := orders(middleware.IdempotencyConfig{Store: m, User: func(r *dunlin.Request) string { return r.Header("X-User") }}, act)
		codes := map[int]int{}
		for i := range 5000 {
			w := post(app, "/orders/7", "x", "Idempotency-Key", strconv.Itoa(i), "X-User", "eve")
			codes[w.Code]++
			if w.Code == 429 && w.Header().Get("Retry-After") == "" {
				t.Fatalf("%s: got no Retry-After: %v", name, w.Header())
			}
		}
		if held := m.Held(); held > all/8+all/64 || name == "refused" && held > 0 {
			t.Errorf("%s: the keys of one user occupy %d bytes of %d", name, held, all)
		}
		if refused := codes[429] > 0; refused != (name != "refused") || int64(codes[429]) != 5000-runs.Load() {
			t.Errorf("%s: got statuses %v and %d runs", name, codes, runs.Load())
		}
		if name == "served" {
			if w := post(app, "/orders/7", "x", "Idempotency-Key", "1", "X-User", "eve"); w.Code != 201 || w.Header().Get("Idempotent-Replayed") != "true" {
				t.Errorf("%s: retry of a user over the quota: got %d %s", name, w.Code, w.Body)
			}
		}
		want := act(nil, 1).StatusCode()
		if w := post(app, "/orders/7", "x", "Idempotency-Key", "1", "X-User", "ada"); w.Code != want {
			t.Errorf("%s: another user: got %d %s", name, w.Code, w.Body)
		}
		for i := range 500 { // many users
			for n := range 20 {
				post(app, "/orders/7", "x", "Idempotency-Key", strconv.Itoa(n), "X-User", "user"+strconv.Itoa(i))
			}
		}
		if held := m.Held(); held > all/4 {
			t.Errorf("%s: all keys occupy %d bytes of %d", name, held, all)
		}
		if _, err := m.Set(context.Background(), "session:x", make([]byte, all/2), store.VersionAbsent, time.Hour); err != nil {
			t.Errorf("%s: store a session: %v", name, err)
		}
	}
}

// A user's quota is restored when the keys expire in the store. Requests without a user are counted by address.
func TestIdempotencyQuotaExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app, runs := orders(middleware.IdempotencyConfig{Anonymous: true, UserBytes: 4096, TTL: time.Hour}, func(*dunlin.Request, int64) dunlin.Response { return dunlin.NoContent() })
		n := 0
		ask := func(addr string) int {
			req := httptest.NewRequest("POST", "/orders/7", strings.NewReader("x"))
			req.RemoteAddr = addr
			n++
			req.Header.Set("Idempotency-Key", strconv.Itoa(n))
			w := httptest.NewRecorder()
			app.ServeHTTP(w, req)
			return w.Code
		}
		fill := func(addr string) int64 {
			before := runs.Load()
			for range 100 {
				if code := ask(addr); code != 204 && code != 429 {
					t.Fatal(code)
				}
			}
			return runs.Load() - before
		}
		first := fill("203.0.113.1:1")
		if first < 8 || first > 16 {
			t.Errorf("got %d keys in 4096 bytes", first)
		}
		if got := fill("203.0.113.1:2"); got != 0 {
			t.Errorf("same address, other port: got %d more keys", got)
		}
		if got := fill("203.0.113.2:1"); got != first {
			t.Errorf("another address: got %d keys, want %d", got, first)
		}
		if a, b := fill("[2001:db8::1]:1"), fill("[2001:db8::2]:1"); a != first || b != 0 {
			t.Errorf("two addresses of a /64: got %d and %d keys, want %d and 0", a, b, first)
		}
		<-time.After(30 * time.Minute)
		if got := fill("203.0.113.1:1"); got < first/2-1 || got > first/2+1 {
			t.Errorf("after half of the TTL: got %d keys, want half of %d", got, first)
		}
	})
}

// A remoteStore hides the store's support for quotas, like a store on another machine.
type remoteStore struct{ store.Store }

// StoreBytes also applies to a store without support for quotas: other data keeps its memory, and known keys are still
// answered.
func TestIdempotencyStoreBytesOfRemoteStore(t *testing.T) {
	const all = 1 << 20
	m := store.NewMemory(store.MemoryConfig{MaxBytes: all, Logger: slog.New(slog.DiscardHandler)})
	config := middleware.IdempotencyConfig{Store: remoteStore{m}, User: func(r *dunlin.Request) string { return r.Header("X-User") }, StoreBytes: all / 4}
	app, runs := orders(config, func(*dunlin.Request, int64) dunlin.Response { return dunlin.Text(strings.Repeat("x", 1000)) })
	refused := 0
	for i := range 1000 {
		switch w := post(app, "/orders/7", "x", "Idempotency-Key", "k", "X-User", strconv.Itoa(i)); w.Code {
		case 200:
		case 503:
			refused++
		default:
			t.Fatalf("user %d: got %d %s", i, w.Code, w.Body)
		}
	}
	if refused == 0 || runs.Load() == 0 {
		t.Errorf("got %d of 1000 requests refused and %d runs", refused, runs.Load())
	}
	if _, err := m.Set(context.Background(), "session:x", make([]byte, all/2), store.VersionAbsent, time.Hour); err != nil {
		t.Errorf("store a session: %v", err)
	}
	if w := post(app, "/orders/7", "x", "Idempotency-Key", "k", "X-User", "0"); w.Code != 200 || w.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("retry: got %d %v", w.Code, w.Header())
	}
}

// If the store is full after a request has run, it has room for a record: retries are informed that the response was not
// stored.
func TestIdempotencyFullStore(t *testing.T) {
	m := store.NewMemory(store.MemoryConfig{MaxBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler)})
	app, runs := orders(middleware.IdempotencyConfig{Store: m, StoreBytes: 10_000, UserBytes: 1 << 20}, func(*dunlin.Request, int64) dunlin.Response {
		return dunlin.Text(strings.Repeat("x", 20_000))
	})
	for i, want := range []int{200, 409} {
		w := post(app, "/orders/7", "x", "Idempotency-Key", "k")
		if w.Code != want || want == 409 && !strings.Contains(w.Body.String(), "was executed") {
			t.Errorf("request %d: got %d %s, want %d", i, w.Code, w.Body, want)
		}
	}
	if runs.Load() != 1 || m.Stats().Full == 0 {
		t.Errorf("got %d runs, statistics %+v", runs.Load(), m.Stats())
	}
	var err error
	for i := 0; err == nil; i++ {
		_, err = m.Set(context.Background(), fmt.Sprint("idempotency:", i), nil, store.VersionAny, time.Hour)
	}
	if w := post(app, "/orders/7", "x", "Idempotency-Key", "new"); w.Code != 503 || runs.Load() != 1 || !errors.Is(err, store.ErrFull) {
		t.Errorf("without room for a claim: got %d %s and %d runs (%v)", w.Code, w.Body, runs.Load(), err)
	}
}

// The buffered response of a standard handler is charged to its request until it has been sent.
func TestIdempotencyChargesBufferedResponses(t *testing.T) {
	const long = 900 << 10
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		begun, goOn := make(chan struct{}), make(chan struct{})
		app.Use(middleware.Idempotency(middleware.IdempotencyConfig{Store: store.NewMemory(store.MemoryConfig{}), Anonymous: true}))
		app.Mount("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(long))
			_, _ = w.Write(make([]byte, 40<<10))
			begun <- struct{}{}
			<-goOn
			_, _ = w.Write(make([]byte, long-40<<10))
		}))
		addr := serve()
		held := func() int64 { return app.Stats().Memory.Held }
		before := held()
		answered := make(chan string, 1)
		go func() {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				answered <- err.Error()
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			n, err := io.Copy(io.Discard, conn)
			answered <- fmt.Sprint(n > long, err)
		}()
		<-begun
		if more := held() - before; more < long {
			t.Errorf("got %d bytes charged for a buffered response of %d bytes", more, long)
		}
		close(goOn)
		if got := <-answered; got != "true<nil>" && got != "true <nil>" {
			t.Errorf("got response %s", got)
		}
		for deadline := time.Now().Add(20 * time.Second); held() > before+100_000; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("got %d bytes charged after the response was sent, want 0", held()-before)
			}
		}
		resp, body := exchangeRaw(t, addr, "POST / HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		if resp.StatusCode != 200 || len(body) != long {
			t.Errorf("retry: got %d with %d bytes", resp.StatusCode, len(body))
		}
	})
}
