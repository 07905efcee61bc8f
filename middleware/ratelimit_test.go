package middleware_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/gcra"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
)

func byToken(r *dunlin.Request) string { return r.Header("X-Token") }

// limited returns the status, RateLimit and Retry-After of a response.
func limited(w *httptest.ResponseRecorder) string {
	h := w.Header()
	return strings.TrimSpace(fmt.Sprintf("%d %s %s", w.Code, strings.Join(h.Values("RateLimit"), ", "), h.Get("Retry-After")))
}

func TestRateLimit(t *testing.T) {
	for name, st := range map[string]func() store.Store{
		"in memory":  func() store.Store { return nil },
		"by a store": func() store.Store { return store.NewMemory(store.MemoryConfig{}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				app := installed(text("hello"), middleware.RateLimit(middleware.RateLimitConfig{Limit: 4, Window: 8 * time.Second, Burst: 3, Key: byToken, Store: st()}))
				for i, step := range []struct {
					after time.Duration
					token string
					want  string
				}{
					{0, "a", `200 "default";r=2;t=2`},
					{0, "a", `200 "default";r=1;t=4`},
					{0, "a", `200 "default";r=0;t=6`},
					{0, "a", `429 "default";r=0;t=6 2`},
					{0, "b", `200 "default";r=2;t=2`},
					{0, "", `200 "default";r=2;t=2`}, // counted by address
					{1500 * time.Millisecond, "a", `429 "default";r=0;t=5 1`},
					{500 * time.Millisecond, "a", `200 "default";r=0;t=6`},
					{0, "a", `429 "default";r=0;t=6 2`},
					{6 * time.Second, "a", `200 "default";r=2;t=2`},
				} {
					<-time.After(step.after)
					w := send(app, "GET", "X-Token", step.token)
					if got := limited(w); got != step.want {
						t.Errorf("step %d: got %s, want %s", i, got, step.want)
					}
					if policy := w.Header().Get("RateLimit-Policy"); policy != `"default";q=4;w=8` {
						t.Errorf("step %d: got RateLimit-Policy %s", i, policy)
					}
				}
				w := send(app, "GET", "X-Token", "c")
				for w.Code == 200 {
					w = send(app, "GET", "X-Token", "c")
				}
				const problem = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,` +
					`"detail":"the limit of 3 requests at once, and of 4 requests in 8s, is reached","violated-policies":["default"]}`
				if ct := w.Header().Get("Content-Type"); ct != "application/problem+json" || w.Body.String() != problem {
					t.Errorf("response to a refused request: got %s\n%s\nwant\n%s", ct, w.Body, problem)
				}
			})
		})
	}
}

// For every limit, a store admits as many requests as a limit in the memory of the process.
func TestRateLimitOddLimits(t *testing.T) {
	for _, limit := range []int{1, 3, 7, 11, 13, 999, 3333} {
		synctest.Test(t, func(t *testing.T) {
			for _, st := range []store.Store{nil, store.NewMemory(store.MemoryConfig{})} {
				app := installed(text("hello"), middleware.RateLimit(middleware.RateLimitConfig{Limit: limit, Window: time.Second, Key: byToken, Store: st}))
				admitted := 0
				for range limit + 5 {
					if send(app, "GET", "X-Token", "a").Code == 200 {
						admitted++
					}
				}
				<-time.After(time.Second)
				for range limit + 5 {
					if send(app, "GET", "X-Token", "a").Code == 200 {
						admitted++
					}
				}
				if admitted < 2*limit-1-limit/100 || admitted > 2*limit { // a store rounds its interval up
					t.Errorf("with a store: %t, limit %d: got %d admitted requests in two windows", st != nil, limit, admitted)
				}
			}
		})
	}
}

func TestRateLimitByAddress(t *testing.T) {
	app := installed(text("hello"), middleware.RateLimit(middleware.RateLimitConfig{Limit: 1, Window: time.Hour}))
	for _, step := range []struct {
		remote string
		want   int
	}{
		{"192.0.2.1:1000", 200},
		{"192.0.2.1:2000", 429},
		{"192.0.2.2:1000", 200},
		{"[::ffff:192.0.2.2]:1000", 429},
		{"[2001:db8::1]:1000", 200},
		{"[2001:db8::ffff:ffff:ffff:ffff]:1000", 429},
		{"[2001:db8:0:1::1]:1000", 200},
		{"@", 200},
		{"@", 200},
	} {
		req := httptest.NewRequest("GET", "/items/7", nil)
		req.RemoteAddr = step.remote
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		if w.Code != step.want {
			t.Errorf("from %s: got %d, want %d", step.remote, w.Code, step.want)
		}
	}
}

// Clients are counted separately if their addresses differ in the first IPv6Prefix bits, or if an IPv6 translator maps
// different IPv4 addresses. This holds with and without a store.
func TestRateLimitNetworks(t *testing.T) {
	for name, st := range map[string]store.Store{"in memory": nil, "by a store": store.NewMemory(store.MemoryConfig{})} {
		for _, c := range []struct {
			bits int
			a, b string
			same bool
		}{
			{0, "64:ff9b::192.0.2.1", "64:ff9b::192.0.2.2", false},
			{0, "64:ff9b::192.0.2.1", "192.0.2.1", true},
			{0, "2001:db8:1:1::1", "2001:db8:1:2::1", false},
			{48, "2001:db8:1:1::1", "2001:db8:1:2::1", true},
			{48, "2001:db8:1:1::1", "2001:db8:2:1::1", false},
			{128, "2001:db8:1:1::1", "2001:db8:1:1::2", false},
			{0, "fe80::1%eth0", "fe80::2%eth0", false},
		} {
			limit := middleware.RateLimitConfig{Name: c.a + " and " + c.b, Limit: 1, Window: time.Hour, IPv6Prefix: c.bits, Store: st}
			app := installed(text("hello"), middleware.RateLimit(limit))
			from := func(ip string) int {
				req := httptest.NewRequest("GET", "/items/7", nil)
				req.RemoteAddr = net.JoinHostPort(ip, "1000")
				w := httptest.NewRecorder()
				app.ServeHTTP(w, req)
				return w.Code
			}
			if first, second := from(c.a), from(c.b); first != 200 || (second == 429) != c.same {
				t.Errorf("%s, %d bits: got %s %d, then %s %d", name, c.bits, c.a, first, c.b, second)
			}
		}
	}
}

// A request without a key is counted by its address. A key that looks like an address is counted separately from that address.
func TestRateLimitWithoutKey(t *testing.T) {
	for name, st := range map[string]store.Store{"in memory": nil, "by a store": store.NewMemory(store.MemoryConfig{})} {
		app := installed(text("hello"), middleware.RateLimit(middleware.RateLimitConfig{Limit: 1, Window: time.Hour, Key: byToken, Store: st}))
		for _, step := range []struct {
			token string
			want  int
		}{{"192.0.2.1", 200}, {"address:192.0.2.1", 200}, {"", 200}, {"", 429}, {"192.0.2.1", 429}} {
			if w := send(app, "GET", "X-Token", step.token); w.Code != step.want {
				t.Errorf("%s, key %q: got %d, want %d", name, step.token, w.Code, step.want)
			}
		}
	}
}

// Each of several limits adds its fields. A refusal has only the fields of the limit that refused.
func TestRateLimitsNested(t *testing.T) {
	app := installed(text("hello"),
		middleware.RateLimit(middleware.RateLimitConfig{Name: "day", Limit: 100, Window: 24 * time.Hour}),
		middleware.RateLimit(middleware.RateLimitConfig{Name: "burst", Limit: 2, Window: time.Hour, Burst: 1}))
	w := send(app, "GET")
	if got := limited(w); !strings.HasPrefix(got, `200 "burst";r=0;t=1800, "day";r=99;t=864`) {
		t.Error(got)
	}
	if got := strings.Join(w.Header().Values("RateLimit-Policy"), ", "); got != `"burst";q=2;w=3600, "day";q=100;w=86400` {
		t.Error(got)
	}
	if w = send(app, "GET"); w.Code != 429 || !strings.Contains(w.Body.String(), `["burst"]`) {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// A refused client gets its response before it sends the body.
func TestRateLimitBeforeBody(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Install(middleware.RateLimit(middleware.RateLimitConfig{Limit: 1, Window: time.Hour}))
		app.Post("/", func(r *dunlin.Request) dunlin.Response {
			if _, err := r.Bytes(); err != nil {
				return dunlin.Error(err)
			}
			return dunlin.Text("ok")
		})
		addr := serve()
		if resp, body := exchangeRaw(t, addr, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"); resp.StatusCode != 200 {
			t.Fatalf("first request: got %d %s", resp.StatusCode, body)
		}
		resp, body := exchangeRaw(t, addr, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
		if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "3600" || !strings.Contains(body, "quota-exceeded") {
			t.Errorf("request without its body: got %d %v %s", resp.StatusCode, resp.Header, body)
		}
	})
}

// Machines that share a store share the limit.
func TestRateLimitSharedByMachines(t *testing.T) {
	const machines, limit = 3, 50
	shared := store.NewMemory(store.MemoryConfig{})
	defer shared.Close()
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for range machines {
		app := installed(text("hello"), middleware.RateLimit(middleware.RateLimitConfig{Limit: limit, Window: 24 * time.Hour, Key: byToken, Store: shared}))
		for range 4 {
			wg.Go(func() {
				for range limit {
					if send(app, "GET", "X-Token", "a").Code == 200 {
						admitted.Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
	if n := admitted.Load(); n != limit {
		t.Errorf("got %d admitted requests, want %d", n, limit)
	}
}

// plain has only the methods of store.Store, like a store of a third party.
type plain struct{ store.Store }

// A store without quotas admits no more than the limit, also when machines change a quota at the same time.
func TestRateLimitCompareAndSet(t *testing.T) {
	const machines, limit = 3, 50
	inner := store.NewMemory(store.MemoryConfig{})
	defer inner.Close()
	for what, shared := range map[string]store.Store{"plain": plain{inner}, "guarded": store.Guard(plain{inner}, store.GuardConfig{})} {
		var admitted atomic.Int64
		var wg sync.WaitGroup
		app := installed(text("hello"), middleware.RateLimit(middleware.RateLimitConfig{Name: what, Limit: limit, Window: 24 * time.Hour, Key: byToken, Store: shared,
			Away: middleware.RateAwayRefuse, Logger: slog.New(slog.DiscardHandler)}))
		for range machines {
			wg.Go(func() {
				for range limit / 2 {
					if send(app, "GET", "X-Token", "a").Code == 200 { // 503 after too many conflicts
						admitted.Add(1)
					}
				}
			})
		}
		wg.Wait()
		for send(app, "GET", "X-Token", "a").Code == 200 {
			admitted.Add(1)
		}
		if n := admitted.Load(); n != limit {
			t.Errorf("%s: got %d requests were admitted, want %d", what, n, limit)
		}
	}
}

// The quota of a store without quotas returns with time. It recovers within one window if the clock of a process is set back.
func TestRateLimitCompareAndSetClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := plain{store.NewMemory(store.MemoryConfig{})}
		app := installed(text("hello"), middleware.RateLimit(middleware.RateLimitConfig{Limit: 4, Window: 8 * time.Second, Key: byToken, Store: st}))
		ahead := binary.BigEndian.AppendUint64(nil, uint64(time.Now().Add(time.Hour).UnixMicro()))
		if _, err := st.Set(t.Context(), "rate:default:b", ahead, store.VersionAbsent, time.Hour); err != nil {
			t.Fatal(err)
		}
		for i, step := range []struct {
			after     time.Duration
			key, want string
		}{
			{0, "a", `200 "default";r=3;t=2`},
			{2 * time.Second, "a", `200 "default";r=3;t=2`},
			{0, "b", `429 "default";r=0;t=8 2`},
			{2 * time.Second, "b", `200 "default";r=0;t=8`},
			{7 * time.Second, "b", `200 "default";r=2;t=3`},
		} {
			<-time.After(step.after)
			if got := limited(send(app, "GET", "X-Token", step.key)); got != step.want {
				t.Errorf("step %d: got %s, want %s", i, got, step.want)
			}
		}
	})
}

// conflicting is a store in which another client changes each value first.
type conflicting struct {
	store.Store
	attempts atomic.Int64
}

func (c *conflicting) Set(context.Context, string, []byte, store.Version, time.Duration) (store.Version, error) {
	c.attempts.Add(1)
	return store.VersionAbsent, store.ErrConflict
}

// The attempts to change a quota are bounded. Afterwards the request is treated as during an outage.
func TestRateLimitConflicts(t *testing.T) {
	for away, want := range map[middleware.RateAway]int{middleware.RateAwayLimitLocally: 200, middleware.RateAwayRefuse: 503} {
		var log strings.Builder
		st := &conflicting{Store: store.NewMemory(store.MemoryConfig{})}
		app := installed(text("hello"), middleware.RateLimit(middleware.RateLimitConfig{Limit: 4, Window: time.Hour, Key: byToken, Store: st, Away: away,
			Logger: slog.New(slog.NewTextHandler(&log, nil))}))
		if w := send(app, "GET", "X-Token", "a"); w.Code != want || st.attempts.Load() != 10 || !strings.Contains(log.String(), "each of 10 attempts") {
			t.Errorf("Away %d: got %d after %d attempts, logged %q; want %d after 10", away, w.Code, st.attempts.Load(), log.String(), want)
		}
	}
}

// otherClock is a store with an adjustable clock.
type otherClock struct {
	store.Store
	now, tat int64
}

func (c *otherClock) TakeQuota(_ context.Context, _ string, rate gcra.Rate) (v gcra.Verdict, err error) {
	c.tat, v = rate.TakeStored(c.tat, c.now)
	return v, nil
}

// When the store's clock is set back, a key counts as used up at most. It recovers within one window.
func TestRateLimitClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const second = int64(time.Second / time.Microsecond)
		st := &otherClock{Store: store.NewMemory(store.MemoryConfig{}), now: 1_000_000 * second}
		app := installed(text("hello"), middleware.RateLimit(middleware.RateLimitConfig{Limit: 4, Window: 8 * time.Second, Key: byToken, Store: st}))
		for i, step := range []struct {
			after time.Duration
			clock int64 // in seconds, in addition to the elapsed time
			want  string
		}{
			{0, 0, `200 "default";r=3;t=2`},
			{0, -3600, `429 "default";r=0;t=8 2`},
			{2 * time.Second, 0, `200 "default";r=0;t=8`},
			{0, -1, `429 "default";r=0;t=8 2`},            // refused from local state, without the store
			{8 * time.Second, 0, `200 "default";r=2;t=3`}, // one second is still used, because the clock was set back
			{0, 3600, `200 "default";r=3;t=2`},
		} {
			<-time.After(step.after)
			st.now += int64(step.after/time.Microsecond) + step.clock*second
			if got := limited(send(app, "GET", "X-Token", "a")); got != step.want {
				t.Errorf("step %d: got %s, want %s", i, got, step.want)
			}
		}
	})
}

// An unresponsiveStore does not answer during an outage.
type unresponsiveStore struct {
	store.Store
	away atomic.Bool
}

func (b *unresponsiveStore) err(ctx context.Context) error {
	if b.away.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (b *unresponsiveStore) TakeQuota(ctx context.Context, key string, rate gcra.Rate) (gcra.Verdict, error) {
	if err := b.err(ctx); err != nil {
		return gcra.Verdict{}, err
	}
	return b.Store.(gcra.Store).TakeQuota(ctx, key, rate)
}

func (b *unresponsiveStore) Get(ctx context.Context, key string) (store.Item, error) {
	if err := b.err(ctx); err != nil {
		return store.Item{}, err
	}
	return b.Store.Get(ctx, key)
}

func (b *unresponsiveStore) Set(ctx context.Context, key string, value []byte, have store.Version, ttl time.Duration) (store.Version, error) {
	if err := b.err(ctx); err != nil {
		return store.VersionAbsent, err
	}
	return b.Store.Set(ctx, key, value, have, ttl)
}

// A client that disconnects while its request is counted does not count as a store outage.
func TestRateLimitClientDisconnects(t *testing.T) {
	for _, c := range []struct {
		name   string
		leaves bool
		want   string
	}{
		{"client disconnected", true, ""},
		{"store outage", false, "store is unavailable"},
	} {
		var log strings.Builder
		b := &unresponsiveStore{Store: store.NewMemory(store.MemoryConfig{})}
		b.away.Store(!c.leaves)
		app := installed(text("hello"), middleware.RateLimit(middleware.RateLimitConfig{
			Limit: 10, Window: time.Hour, Key: byToken, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Store: store.Guard(b, store.GuardConfig{Timeout: time.Millisecond}),
		}))
		ctx, leave := context.WithCancel(t.Context())
		if c.leaves {
			leave()
		}
		req := httptest.NewRequest("GET", "/", nil).WithContext(ctx)
		req.Header.Set("X-Token", "a")
		app.ServeHTTP(httptest.NewRecorder(), req)
		leave()
		if logged := log.String(); c.want == "" && logged != "" || !strings.Contains(logged, c.want) {
			t.Errorf("%s: got log %q, want it to contain %q", c.name, logged, c.want)
		}
	}
}

// Long keys made up by clients do not fill a store, and are counted like other keys.
func TestRateLimitLongKeys(t *testing.T) {
	st := store.NewMemory(store.MemoryConfig{MaxBytes: 1 << 20})
	app := installed(text("hello"), middleware.RateLimit(middleware.RateLimitConfig{Limit: 2, Window: time.Hour, Key: byToken, Store: st, Away: middleware.RateAwayRefuse}))
	for i := range 100 {
		key := fmt.Sprint(strings.Repeat("x", 40<<10), i)
		for n, want := range []int{200, 200, 429} {
			if w := send(app, "GET", "X-Token", key); w.Code != want {
				t.Fatalf("key %d, request %d: got %d %s, want %d", i, n, w.Code, w.Body, want)
			}
		}
	}
	if _, err := st.Set(t.Context(), "a session", make([]byte, 512<<10), store.VersionAbsent, time.Hour); err != nil {
		t.Errorf("store another value: %v", err)
	}
}

// Different policies never share a counter, for any names and keys.
func TestRateLimitSeparatesPolicies(t *testing.T) {
	st := store.NewMemory(store.MemoryConfig{})
	byKey := installed(text("hello"), middleware.RateLimit(middleware.RateLimitConfig{Name: "api", Limit: 1, Window: time.Hour, Key: byToken, Store: st}))
	byAddress := installed(text("hello"), middleware.RateLimit(middleware.RateLimitConfig{Name: "api:write", Limit: 1, Window: time.Hour, Store: st}))
	if w := send(byKey, "GET", "X-Token", "write:192.0.2.1"); w.Code != 200 {
		t.Fatal(w.Code)
	}
	if w := send(byAddress, "GET"); w.Code != 200 {
		t.Errorf("a key that looks like an address used the quota of that address: got %d %s", w.Code, w.Body)
	}
}

func TestRateLimitWithoutStore(t *testing.T) {
	for _, away := range []middleware.RateAway{middleware.RateAwayLimitLocally, middleware.RateAwayRefuse} {
		synctest.Test(t, func(t *testing.T) {
			b := &unresponsiveStore{Store: store.NewMemory(store.MemoryConfig{})}
			guarded := store.Guard(b, store.GuardConfig{Timeout: 50 * time.Millisecond, Failures: 2, Cooldown: time.Second})
			app := installed(text("hello"), middleware.RateLimit(middleware.RateLimitConfig{
				Limit: 10, Window: time.Hour, Key: byToken, Store: guarded, Away: away, Logger: slog.New(slog.DiscardHandler),
			}))
			for range 4 {
				if w := send(app, "GET", "X-Token", "a"); w.Code != 200 {
					t.Fatalf("got %d %s", w.Code, w.Body)
				}
			}
			b.away.Store(true)
			began := time.Now()
			var codes [3]int // 200, 429, 503
			for range 20 {
				w := send(app, "GET", "X-Token", "a")
				codes[map[int]int{200: 0, 429: 1, 503: 2}[w.Code]]++
				if w.Code == 503 && w.Header().Get("Retry-After") == "" {
					t.Error("got a 503 without Retry-After")
				}
			}
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Errorf("20 requests waited %v for the unresponsive store, want at most two timeouts of 50 ms", took)
			}
			want := [3]int{6, 14, 0} // requests admitted by the store still count
			if away == middleware.RateAwayRefuse {
				want = [3]int{0, 0, 20}
			}
			if codes != want {
				t.Errorf("Away %d: got %v responses with 200, 429 and 503, want %v", away, codes, want)
			}
			b.away.Store(false)
			<-time.After(time.Second)
			if w := send(app, "GET", "X-Token", "b"); w.Code != 200 || guarded.Stats().Open {
				t.Errorf("after the outage: got %d, %+v", w.Code, guarded.Stats())
			}
		})
	}
}

// Large numbers are rounded to reduce the number of distinct values, never to the client's disadvantage.
func TestRateLimitRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 100_000
		app := installed(text("hello"), middleware.RateLimit(middleware.RateLimitConfig{Limit: limit, Window: 24 * time.Hour}))
		seen := map[string]bool{}
		for i := range 3000 {
			w := send(app, "GET")
			var left, reset int
			if _, err := fmt.Sscanf(w.Header().Get("RateLimit"), `"default";r=%d;t=%d`, &left, &reset); err != nil {
				t.Fatal(err)
			}
			exact := limit - i - 1
			if left > exact || left < exact-exact/256 {
				t.Fatalf("after %d requests: got r=%d, want %d or slightly less", i+1, left, exact)
			}
			if used := (i + 1) * 864 / 1000; reset < used || reset > used+used/256+1 {
				t.Fatalf("after %d requests: got t=%d, want %d or slightly more", i+1, reset, used)
			}
			seen[w.Header().Get("RateLimit")] = true
		}
		if len(seen) > 1200 {
			t.Errorf("got %d different fields in 3000 responses", len(seen))
		}
	})
}

func TestRateLimitSettings(t *testing.T) {
	for what, rate := range map[string]middleware.RateLimitConfig{
		"no limit":         {Window: time.Second},
		"no window":        {Limit: 1},
		"a negative limit": {Limit: -1, Window: time.Second},
		"too fast":         {Limit: 2_000_000, Window: time.Second},
		"too long":         {Limit: 1, Window: 1 << 62},
		"negative burst":   {Limit: 1, Window: time.Second, Burst: -1},
		"excessive burst":  {Limit: 1, Window: time.Hour, Burst: 1 << 30},
		"a quote":          {Limit: 1, Window: time.Second, Name: `a"b`},
		"a line":           {Limit: 1, Window: time.Second, Name: "a\r\nb"},
		"keys":             {Limit: 1, Window: time.Second, MaxKeys: -1},
		"long prefix":      {Limit: 1, Window: time.Second, IPv6Prefix: 129},
		"no prefix":        {Limit: 1, Window: time.Second, IPv6Prefix: -1},
		"away":             {Limit: 1, Window: time.Second, Away: 9},
	} {
		mustPanic(t, "RateLimit with "+what, func() { middleware.RateLimit(rate) })
	}
}

func TestRateLimitAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates on its own")
	}
	req := httptest.NewRequest("GET", "/items/7", nil)
	json := func(*dunlin.Request) dunlin.Response { return dunlin.JSON([]int{1, 2}) }
	for name, act := range map[string]dunlin.Action{"text": text("hello"), "JSON": json} {
		measure := func(features ...dunlin.Feature) float64 {
			app, w := installed(act, features...), void{http.Header{}}
			for range 5000 { // the fields are rendered once
				app.ServeHTTP(w, req)
			}
			return testing.AllocsPerRun(2000, func() { app.ServeHTTP(w, req) })
		}
		bare := measure()
		admitting := measure(middleware.RateLimit(middleware.RateLimitConfig{Limit: 1_000_000, Window: time.Hour})) // its fields change rarely
		refusing := measure(middleware.RateLimit(middleware.RateLimitConfig{Limit: 1, Window: 24 * time.Hour}))
		if admitting > bare || refusing > bare {
			t.Errorf("%s: got %v allocations without a limit, %v with one and %v for a refused request", name, bare, admitting, refusing)
		}
	}
}

// A key costs at most 64 bytes, in the limit's own memory or in a memory store, regardless of its length.
func TestRateLimitBytesPerKey(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates on its own")
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // sweeps the garbage of the first collection
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const keys, most = 50_000, 64
	shared := store.NewMemory(store.MemoryConfig{})
	defer shared.Close()
	for name, rate := range map[string]middleware.RateLimitConfig{
		"by itself":               {Key: byToken},
		"in memory":               {Key: byToken, Store: shared, Name: "a"},
		"by address in the store": {Store: shared, Name: "b"},
	} {
		rate.Limit, rate.Window = 100, time.Hour
		app, w, req := installed(text("hello"), middleware.RateLimit(rate)), void{http.Header{}}, httptest.NewRequest("GET", "/items/7", nil)
		app.ServeHTTP(w, req)
		before := heap()
		for i := range keys {
			req.Header.Set("X-Token", fmt.Sprint("a customer of the service: ", i))
			req.RemoteAddr = fmt.Sprintf("10.0.%d.%d:1234", i>>8, i&255)
			app.ServeHTTP(w, req)
		}
		if each := (heap() - before) / keys; each > most || each < 16 {
			t.Errorf("%s: got %d bytes per key, want at most %d", name, each, most)
		}
		runtime.KeepAlive(app)
	}
}

// The fields of a limit change with each request. Adjacent middleware caches a limited number of them and renders none again.
func TestRateLimitWithOtherLimits(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector allocates on its own")
	}
	const limit = 300
	key := "a"
	c := edgeCase{headers: http.Header{"Origin": {page}}, feature: []dunlin.Feature{
		middleware.RequestID("X-Request-ID"), middleware.CORS(middleware.CORSConfig{Origins: []string{page}}), middleware.SecureHeaders(middleware.SecureHeadersConfig{}),
		middleware.RateLimit(middleware.RateLimitConfig{Limit: limit, Window: 300 * time.Hour, Key: func(*dunlin.Request) string { return key }}),
	}}
	app, _ := c.apps()
	once := pipelined(t, app, &c)
	for range limit {
		once() // renders the fields
	}
	key = "b"
	if n := testing.AllocsPerRun(limit-2, once); n > 0 {
		t.Errorf("got %v allocations for a request with five middlewares", n)
	}
}

func BenchmarkRateLimit(b *testing.B) {
	for name, features := range map[string][]dunlin.Feature{
		"without": nil,
		"with":    {middleware.RateLimit(middleware.RateLimitConfig{Limit: 1_000_000, Window: time.Second, Burst: 1_000_000})},
	} {
		b.Run(name, func(b *testing.B) {
			app, w := installed(text("hello"), features...), void{http.Header{}}
			req := httptest.NewRequest("GET", "/items/7", nil)
			b.ReportAllocs()
			for b.Loop() {
				app.ServeHTTP(w, req)
			}
		})
	}
}

func ExampleRateLimit() {
	app := dunlin.New(quiet)
	keys := middleware.KeyAuthConfig{Check: middleware.Keys(map[string]string{"billing": "0123456789abcdef"})}
	app.Use(
		middleware.KeyAuth(keys),
		middleware.RateLimit(middleware.RateLimitConfig{Limit: 2, Window: time.Hour, Key: middleware.User}).Middleware(),
	)
	app.Get("/items/{id}", text("hello"))
	for range 3 {
		w := send(app, "GET", "Authorization", "Bearer 0123456789abcdef")
		fmt.Printf("%d %s Retry-After: %q\n", w.Code, w.Header().Get("RateLimit"), w.Header().Get("Retry-After"))
	}
	// Output:
	// 200 "default";r=1;t=1800 Retry-After: ""
	// 200 "default";r=0;t=3600 Retry-After: ""
	// 429 "default";r=0;t=3600 Retry-After: "1800"
}
