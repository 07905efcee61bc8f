package redis_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/store/redis"
	"github.com/dunlinhttp/dunlin/store/storetest"
)

var ctx = context.Background()

// patient is for tests that do not depend on deadlines, on busy machines.
var patient = store.GuardConfig{Timeout: 30 * time.Second, Failures: 1000}

func connect(t *testing.T, c redis.Config) *store.Guarded {
	t.Helper()
	st, err := redis.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func TestStore(t *testing.T) {
	s := startServer(t)
	storetest.Run(t, func(t *testing.T) store.Store {
		return connect(t, redis.Config{Addrs: []string{s.addr}, Guard: patient})
	})
}

func TestFullStore(t *testing.T) {
	s := startServer(t, "--maxmemory", "4mb", "--maxmemory-policy", "noeviction")
	storetest.RunFull(t, func(t *testing.T) store.Store {
		return connect(t, redis.Config{Addrs: []string{s.addr}, Guard: patient})
	})
}

func TestStoreInCluster(t *testing.T) {
	cluster := startCluster(t)
	storetest.Run(t, func(t *testing.T) store.Store {
		return connect(t, redis.Config{Addrs: []string{cluster[0].addr}, Guard: patient})
	})
	st := connect(t, redis.Config{Addrs: []string{cluster[1].addr}, Guard: patient})
	for i := range 100 {
		if _, err := st.Set(ctx, fmt.Sprint("key", i), []byte("v"), store.VersionAny, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range cluster {
		if n := s.must(t, "DBSIZE"); n == ":0" {
			t.Errorf("the node %s has no key of a hundred", s.addr)
		}
	}
}

func TestOpenURL(t *testing.T) {
	s := startServer(t, "--requirepass", "secret")
	good := "redis://:secret@" + s.addr + "/2?prefix=shop:&timeout=30s&failures=7&cooldown=2s"
	st, err := store.Open(good)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, err := st.Set(ctx, "k", []byte("v"), store.VersionAny, time.Minute); err != nil {
		t.Fatal(err)
	}
	plain, err := store.Open("redis://:secret@" + s.addr + "/2")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Get(ctx, "k"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another prefix sees the same key: %v", err)
	}
	valkey, err := store.Open("valkey" + strings.TrimPrefix(good, "redis"))
	if err != nil {
		t.Fatal(err)
	}
	defer valkey.Close()
	if item, err := valkey.Get(ctx, "k"); err != nil || string(item.Value) != "v" {
		t.Errorf("by valkey: got %q, %v", item.Value, err)
	}
	for what, u := range map[string]string{
		"a wrong password":     "redis://:topsecret@" + s.addr,
		"no password":          "redis://" + s.addr,
		"an unknown setting":   "redis://:topsecret@" + s.addr + "?timeouts=1s",
		"a malformed time":     "redis://:topsecret@" + s.addr + "?timeout=1",
		"a negative time":      "redis://:topsecret@" + s.addr + "?cooldown=-1s",
		"a malformed number":   "redis://:topsecret@" + s.addr + "?failures=x",
		"a malformed pair":     "redis://:secret@" + s.addr + "?prefix=a%zz",
		"a semicolon":          "redis://:secret@" + s.addr + "?prefix=a;failures=5",
		"two prefixes":         "redis://:secret@" + s.addr + "?prefix=a&prefix=b",
		"no such protocol":     "redis://:secret@" + s.addr + "?protocol=4",
		"a fragment":           "redis://:secret@" + s.addr + "?prefix=a#b",
		"no slashes":           "redis:" + s.addr,
		"half a number":        "redis://:secret@" + s.addr + "?failures=5x",
		"a malformed database": "redis://:topsecret@" + s.addr + "/x",
		"nobody there":         "redis://:topsecret@127.0.0.1:1",
	} {
		st, err := store.Open(u)
		if err == nil {
			_ = st.Close()
			t.Errorf("a URL with %s is opened", what)
		} else if strings.Contains(err.Error(), "topsecret") {
			t.Errorf("a URL with %s: the error says the password: %v", what, err)
		} else if st != nil {
			t.Errorf("a URL with %s: a Store that is not nil beside the error", what)
		}
	}
}

// A Redis that restarts has lost all data. The store and its subscriptions continue.
func TestRedisRestarts(t *testing.T) {
	s := startServer(t)
	st := connect(t, redis.Config{Addrs: []string{s.addr}, Guard: store.GuardConfig{Timeout: time.Second, Failures: 2, Cooldown: 100 * time.Millisecond}})
	received := make(chan string, 1000)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	eventually(t, "a subscription is active", func() bool { // may take longer than a second on a slow machine
		return st.Subscribe(ctx, "topic", func(m store.Message) { received <- string(m.Body) }) == nil
	})
	eventually(t, "scripts run", func() bool {
		_, err := st.Add(ctx, "n", 1, time.Hour)
		return err == nil
	})
	s.kill()
	if _, err := st.Get(ctx, "k"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a call to a Redis that is gone: %v", err)
	}
	if !s.start(t) {
		t.Skip("another program has taken the port")
	}
	eventually(t, "scripts run again", func() bool {
		n, err := st.Add(ctx, "n", 1, time.Hour)
		return err == nil && n > 0
	})
	eventually(t, "messages arrive again", func() bool {
		_ = st.Publish(ctx, "topic", []byte("hello"))
		select {
		case m := <-received:
			return m == "hello"
		default:
			return false
		}
	})
}

// Redis sends no messages to listeners that have left. Otherwise short-lived topics, such as one for each user, would use
// memory on both sides forever.
func TestTopicsEnd(t *testing.T) {
	single, cluster := startServer(t), startCluster(t)
	for name, c := range map[string]struct {
		servers []*server
		url     string
	}{
		"single":               {[]*server{single}, "redis://" + single.addr + "?timeout=30s"},
		"single, by RESP2":     {[]*server{single}, "redis://" + single.addr + "?timeout=30s&protocol=2"},
		"cluster":              {cluster, "redis://" + cluster[0].addr + "?timeout=30s"},
		"cluster, by one node": {cluster, "redis://" + cluster[1].addr + "?timeout=30s"},
	} {
		t.Run(name, func(t *testing.T) {
			st, err := store.Open(c.url)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			var wg sync.WaitGroup
			leaving, leave := context.WithCancel(ctx)
			for i := range 60 {
				for range 1 + i%3 { // listeners
					wg.Go(func() {
						if err := st.Subscribe(leaving, fmt.Sprint("user", i), func(store.Message) {}); err != nil {
							t.Error(err)
						}
					})
				}
			}
			wg.Wait()
			all := func() (n int) {
				for _, s := range c.servers {
					n += channels(t, s)
				}
				return n
			}
			if n := all(); n < 60 {
				t.Fatalf("%d channels of 60 topics", n)
			}
			leave()
			eventually(t, "Redis knows of no subscription", func() bool { return all() == 0 })
		})
	}
}

// A new listener of a busy topic delays neither its messages nor other calls on the connection.
func TestBusyTopic(t *testing.T) {
	s := startServer(t)
	st, other := connect(t, redis.Config{Addrs: []string{s.addr}, Guard: patient}), connect(t, redis.Config{Addrs: []string{s.addr}, Guard: patient})
	if err := st.Subscribe(t.Context(), "topic", func(store.Message) {}); err != nil {
		t.Fatal(err)
	}
	publishing, stop := context.WithCancel(ctx)
	var publishers sync.WaitGroup
	for range 32 {
		publishers.Go(func() {
			for publishing.Err() == nil {
				_ = other.Publish(publishing, "topic", []byte("message"))
			}
		})
	}
	for range 300 {
		listening, leave := context.WithCancel(ctx)
		got := make(chan struct{}, 1)
		err := st.Subscribe(listening, "topic", func(store.Message) {
			select {
			case got <- struct{}{}:
			default:
			}
		})
		if err == nil {
			<-got
			_, err = st.Get(ctx, "k")
		}
		leave()
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a busy topic: %v", err)
			break
		}
	}
	stop()
	publishers.Wait()
}

// A Redis without room reports that, which is not counted as a failure.
func TestFullRedis(t *testing.T) {
	s := startServer(t, "--maxmemory", "3mb", "--maxmemory-policy", "noeviction")
	st := connect(t, redis.Config{Addrs: []string{s.addr}, Guard: patient})
	var err error
	for i := 0; err == nil && i < 100; i++ {
		_, err = st.Set(ctx, fmt.Sprint("k", i), make([]byte, 1<<20), store.VersionAny, time.Hour)
	}
	if !errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a full Redis: %v", err)
	}
	if st.Stats().Failures > 0 {
		t.Errorf("got %+v", st.Stats())
	}
}

// Data of a Redis whose clock was ahead by an hour uses at most an entire limit.
func TestRateLimitClockSetBack(t *testing.T) {
	s := startServer(t)
	st := connect(t, redis.Config{Addrs: []string{s.addr}, Guard: patient})
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() }, middleware.RateLimit(middleware.RateLimitConfig{
		Limit: 4, Window: 4 * time.Hour, Key: func(*dunlin.Request) string { return "a" }, Store: st, Away: middleware.RateAwayRefuse,
	}).Middleware())
	const key = "dunlin:n:rate:default:a"
	s.must(t, "SET", key, fmt.Sprint(time.Now().Add(24*time.Hour).UnixMicro()), "PX", fmt.Sprint((24 * time.Hour).Milliseconds()))
	w := httptest.NewRecorder()
	app.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if after, err := strconv.Atoi(w.Header().Get("Retry-After")); w.Code != 429 || err != nil || after > 3600 {
		t.Errorf("%d, and again after %s s, want 429 and an hour", w.Code, w.Header().Get("Retry-After"))
	}
	left := 0
	if _, err := fmt.Sscanf(s.must(t, "PTTL", key), ":%d", &left); err != nil || time.Duration(left)*time.Millisecond > 4*time.Hour {
		t.Errorf("the key is kept for %d ms, %v, want 4 hours", left, err)
	}
}

// A request with the cookie from before a login begins no session, since that would replace the session of the login.
func TestOldCookieAfterLogin(t *testing.T) {
	st := connect(t, redis.Config{Addrs: []string{startServer(t).addr}, Guard: patient})
	sessions := middleware.NewSessions[int](middleware.SessionConfig{Store: st})
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	app.Use(sessions.Middleware())
	for path, change := range map[string]func(*dunlin.Request, func(*int) error) error{"/add": sessions.Update, "/login": sessions.Login} {
		app.Post(path, dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) {
			return dunlin.NoContent(), change(r, func(n *int) error { *n++; return nil })
		}))
	}
	send := func(path, cookie string) *httptest.ResponseRecorder {
		req := httptest.NewRequest("POST", path, nil)
		req.Header.Set("Cookie", cookie)
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		return w
	}
	old, _, _ := strings.Cut(send("/add", "").Header().Get("Set-Cookie"), ";")
	if w := send("/login", old); w.Code != 204 {
		t.Fatalf("login: got %d %s", w.Code, w.Body)
	}
	if w := send("/add", old); w.Code != 409 || w.Header().Get("Set-Cookie") != "" {
		t.Errorf("an update with the old cookie: got %d %v, want 409 without a cookie", w.Code, w.Header())
	}
}

// Three machines share one Redis: limits, sessions and idempotency keys apply to all of them.
func TestMachinesShareStore(t *testing.T) {
	for name, addrs := range map[string][]string{"single": {startServer(t).addr}, "cluster": {startCluster(t)[0].addr}} {
		t.Run(name, func(t *testing.T) { machinesTogether(t, addrs) })
	}
}

func machinesTogether(t *testing.T, addrs []string) {
	const machines, limit = 3, 20
	type visit struct{ N int }
	var payments atomic.Int64
	var apps []*dunlin.App
	quiet := slog.New(slog.DiscardHandler)
	for range machines {
		st := connect(t, redis.Config{Addrs: addrs, Guard: patient})
		app := dunlin.New(dunlin.Config{Logger: quiet})
		key := func(r *dunlin.Request) string { return r.Header("X-Key") }
		app.Get("/limited", func(*dunlin.Request) dunlin.Response { return dunlin.NoContent() },
			middleware.RateLimit(middleware.RateLimitConfig{Limit: limit, Window: 24 * time.Hour, Key: key, Store: st, Away: middleware.RateAwayRefuse, Logger: quiet}).Middleware())
		app.Post("/pay", func(*dunlin.Request) dunlin.Response { return dunlin.Text(fmt.Sprint(payments.Add(1))) },
			middleware.Idempotency(middleware.IdempotencyConfig{Store: st, Anonymous: true, Logger: quiet}))
		sessions := middleware.NewSessions[visit](middleware.SessionConfig{Store: st})
		app.Post("/visit", dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) {
			var n int
			err := sessions.Update(r, func(v *visit) error { v.N++; n = v.N; return nil })
			return dunlin.Text(fmt.Sprint(n)), err
		}), sessions.Middleware())
		apps = append(apps, app)
	}
	send := func(i int, method, path, body string, headers ...string) *httptest.ResponseRecorder {
		req := httptest.NewRequest(method, path, strings.NewReader(body))
		for n := 0; n < len(headers); n += 2 {
			req.Header.Set(headers[n], headers[n+1])
		}
		w := httptest.NewRecorder()
		apps[i%machines].ServeHTTP(w, req)
		return w
	}
	atOnce := func(n int, f func(i int)) {
		var wg sync.WaitGroup
		for w := range 12 {
			wg.Go(func() {
				for i := w; i < n; i += 12 {
					f(i)
				}
			})
		}
		wg.Wait()
	}

	var admitted [10]atomic.Int64
	atOnce(600, func(i int) {
		if send(i, "GET", "/limited", "", "X-Key", fmt.Sprint(i/3%10)).Code == 204 {
			admitted[i/3%10].Add(1)
		}
	})
	for key := range admitted {
		if n := admitted[key].Load(); n != limit {
			t.Errorf("key %d: got %d requests were admitted by all machines, want %d", key, n, limit)
		}
	}

	var paid, conflicts atomic.Int64
	atOnce(1000, func(i int) {
		switch send(i, "POST", "/pay", "10", "Idempotency-Key", `"k"`).Code {
		case 200:
			paid.Add(1)
		case 409:
			conflicts.Add(1)
		}
	})
	if payments.Load() != 1 || paid.Load()+conflicts.Load() != 1000 {
		t.Errorf("%d payments of 1000 requests with one key; %d were answered with it, %d with 409", payments.Load(), paid.Load(), conflicts.Load())
	}
	if w := send(1, "POST", "/pay", "11", "Idempotency-Key", `"k"`); w.Code != 422 {
		t.Errorf("another body: got %d", w.Code)
	}

	cookie := send(0, "POST", "/visit", "").Result().Cookies()[0]
	const updates = 300
	atOnce(updates, func(i int) {
		if w := send(i, "POST", "/visit", "", "Cookie", cookie.Name+"="+cookie.Value); w.Code != 200 {
			t.Errorf("an update: got %d %s", w.Code, w.Body)
		}
	})
	if w := send(0, "POST", "/visit", "", "Cookie", cookie.Name+"="+cookie.Value); w.Body.String() != fmt.Sprint(updates+2) {
		t.Errorf("after %d updates at once the session counts %s", updates+2, w.Body)
	}
}

func Example() {
	st, err := store.Open(os.Getenv("DUNLIN_STORE")) // "" is memory, redis://10.0.0.1:6379 one for all
	if err != nil {
		fmt.Println(err)
		return
	}
	defer st.Close()
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	app.Install(middleware.RateLimit(middleware.RateLimitConfig{Limit: 100, Window: time.Minute, Store: st}))
	// Output:
}
