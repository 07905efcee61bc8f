//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/middleware"
	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/store/redis"
	"github.com/dunlinhttp/dunlin/store/storetest"
)

// startPair starts a master and its replica.
func startPair(t *testing.T) (master, replica *server) {
	t.Helper()
	master = startServer(t, "--repl-diskless-sync-delay", "0")
	replica = startServer(t, "--replicaof", "127.0.0.1", fmt.Sprint(master.port))
	eventually(t, "the replica has all", func() bool { return master.must(t, "WAIT", "1", "100") == ":1" && isOnline(t, replica) })
	return master, replica
}

// isOnline reports whether a replica is synchronized with its master.
func isOnline(t *testing.T, replica *server) bool {
	t.Helper()
	answer, err := replica.ask("EVAL", `"return redis.call('INFO','replication'):match('master_link_status:(%w+)')"`, "0")
	if err != nil || strings.HasPrefix(answer, "-") {
		t.Fatal(answer, err)
	}
	return strings.HasPrefix(answer, "$2") // up; down has four letters
}

// unconfirmed expects calls to fail because no replica confirms their writes. It repeats calls that reached their deadlines
// before that.
func unconfirmed(t *testing.T, what string, call func(context.Context) error) {
	t.Helper()
	eventually(t, what+" is unconfirmed", func() bool {
		bounded, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		err := call(bounded)
		if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrConflict) {
			t.Fatalf("%s: %v, though no replica confirms it", what, err)
		}
		return errors.Is(err, redis.ErrUnconfirmed)
	})
}

func TestStoreWithReplicas(t *testing.T) {
	master, _ := startPair(t)
	storetest.Run(t, func(t *testing.T) store.Store {
		return connect(t, redis.Config{Addrs: []string{master.addr}, Guard: patient, Replicas: 1})
	})
}

// A write that no replica confirms fails.
func TestUnconfirmed(t *testing.T) {
	master, replica := startPair(t)
	confirmed := connect(t, redis.Config{Addrs: []string{master.addr}, Guard: patient, Replicas: 1})
	plain := connect(t, redis.Config{Addrs: []string{master.addr}, Guard: patient})
	for key, st := range map[string]store.Store{"before": confirmed, "key": plain} {
		if _, err := st.Set(ctx, key, []byte("1"), store.VersionAbsent, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if err := replica.process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	unconfirmed(t, "Set", func(ctx context.Context) error {
		_, err := confirmed.Set(ctx, "unconfirmed", []byte("1"), store.VersionAny, time.Minute)
		return err
	})
	for _, what := range []string{"the end of a key", "the end of a key that has ended"} {
		unconfirmed(t, what, func(ctx context.Context) error { return confirmed.Expire(ctx, "before", 0) })
	}
	if _, err := confirmed.Set(ctx, "key", []byte("2"), store.VersionAbsent, time.Minute); !errors.Is(err, store.ErrConflict) {
		t.Errorf("what is refused waits for nobody: Set returns %v", err)
	}
	if _, err := plain.Set(ctx, "other", []byte("1"), store.VersionAbsent, time.Minute); err != nil {
		t.Errorf("who does not ask for replicas: %v", err)
	}
	if err := replica.process.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := confirmed.Set(ctx, "after", []byte("1"), store.VersionAbsent, time.Minute); err != nil {
		t.Errorf("with the replica Set returns %v", err)
	}
	if err := confirmed.Expire(ctx, "before", 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("with the replica Expire of what is not there returns %v", err)
	}
}

// A logout that no replica confirms fails, also when it is repeated.
func TestLogoutUnconfirmed(t *testing.T) {
	master, replica := startPair(t)
	sessions := middleware.NewSessions[string](middleware.SessionConfig{Store: connect(t, redis.Config{
		Addrs: []string{master.addr}, Replicas: 1, Guard: store.GuardConfig{Timeout: 500 * time.Millisecond, Failures: 1 << 20},
	})})
	app := dunlin.New(dunlin.Config{Logger: slog.New(slog.DiscardHandler)})
	action := func(do func(*dunlin.Request) error) dunlin.Action {
		return dunlin.Try(func(r *dunlin.Request) (dunlin.Response, error) { return dunlin.NoContent(), do(r) })
	}
	app.Post("/login", action(func(r *dunlin.Request) error {
		return sessions.Login(r, func(user *string) error { *user = "ann"; return nil })
	}), sessions.Middleware())
	app.Post("/logout", action(sessions.End), sessions.Middleware())
	post := func(path, cookie string) *httptest.ResponseRecorder {
		req := httptest.NewRequest("POST", path, nil)
		req.Header.Set("Cookie", cookie)
		w := httptest.NewRecorder()
		app.ServeHTTP(w, req)
		return w
	}
	cookie := ""
	eventually(t, "a login", func() bool {
		cookie, _, _ = strings.Cut(post("/login", "").Header().Get("Set-Cookie"), ";")
		return cookie != ""
	})
	if err := replica.process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if w := post("/logout", cookie); w.Code != 503 {
			t.Errorf("a logout that no replica confirms is answered %d", w.Code)
		}
	}
	if err := replica.process.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the logout", func() bool { return post("/logout", cookie).Code == 204 })
}

// No confirmed value is lost with a master that is killed. Its replica, as the new master, repeats no request with an
// idempotency key, and has each session.
func TestMasterKilled(t *testing.T) {
	master, replica := startPair(t)
	quiet := slog.New(slog.DiscardHandler)
	var mu sync.Mutex
	serve := func(st store.Store, ran map[string]int) func(key string) (status int) {
		app := dunlin.New(dunlin.Config{Logger: quiet})
		app.Post("/orders", func(r *dunlin.Request) dunlin.Response {
			mu.Lock()
			defer mu.Unlock()
			ran[r.Header("Idempotency-Key")]++
			return dunlin.Text(r.Header("Idempotency-Key")).Status(201)
		}, middleware.Idempotency(middleware.IdempotencyConfig{Store: st, Anonymous: true, Logger: quiet}))
		return func(key string) int {
			req := httptest.NewRequest("POST", "/orders", strings.NewReader("one"))
			req.Header.Set("Idempotency-Key", key)
			w := httptest.NewRecorder()
			app.ServeHTTP(w, req)
			return w.Code
		}
	}
	before, after := map[string]int{}, map[string]int{}
	old := connect(t, redis.Config{Addrs: []string{master.addr}, Replicas: 1, Guard: store.GuardConfig{Timeout: 5 * time.Second, Failures: 1 << 20}})
	order := serve(old, before)
	versions := map[string]store.Version{}
	var wg sync.WaitGroup
	enough, dead := make(chan struct{}), make(chan struct{})
	for w := range 8 {
		wg.Go(func() {
			for i := range 1 << 20 {
				select {
				case <-dead:
					return
				default:
				}
				key := fmt.Sprintf("%d-%d", w, i)
				order(key)
				version, err := old.Set(ctx, "session "+key, []byte(key), store.VersionAbsent, time.Hour)
				mu.Lock()
				if err == nil {
					versions["session "+key] = version
				}
				if len(before) >= 200 && len(versions) >= 200 {
					select {
					case <-enough:
					default:
						close(enough)
					}
				}
				mu.Unlock()
			}
		})
	}
	select {
	case <-enough:
	case <-time.After(30 * time.Second):
		t.Error("no two hundred orders in half a minute")
	}
	master.kill()
	close(dead)
	wg.Wait()
	replica.must(t, "REPLICAOF", "NO", "ONE")
	now := connect(t, redis.Config{Addrs: []string{replica.addr}, Guard: patient})
	again := serve(now, after)
	for key := range before {
		if status := again(key); status != 201 && status != 409 { // 409: the request has run, and its response was not stored
			t.Errorf("order %s is answered %d by the replica", key, status)
		}
	}
	if len(after) != 0 {
		t.Errorf("of %d orders that ran these ran again: got %v", len(before), after)
	}
	for key, version := range versions {
		if item, err := now.Get(ctx, key); err != nil || item.Version != version {
			t.Errorf("%s: got %v, %v", key, item, err)
		}
	}
	t.Logf("%d orders, %d sessions", len(before), len(versions))
}

// In a cluster, each key is confirmed by a replica of its own master, also after a replica has replaced a master that was
// killed.
func TestReplicasInCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: six servers take some seconds")
	}
	const lenient = "60000" // ms: a process that gets no CPU for some seconds is not considered dead
	cluster := startCluster(t, "--repl-diskless-sync-delay", "0", "--cluster-node-timeout", lenient)
	var replicas []*server
	for _, master := range cluster {
		s := startServer(t, "--cluster-enabled", "yes", "--cluster-node-timeout", lenient)
		s.must(t, "CLUSTER", "MEET", "127.0.0.1", fmt.Sprint(master.port), master.bus)
		replicas = append(replicas, s)
	}
	for i, master := range cluster {
		id := strings.TrimPrefix(master.must(t, "EVAL", `"return {ok=redis.call('CLUSTER','MYID')}"`, "0"), "+")
		eventually(t, "the replica knows its master", func() bool {
			answer, err := replicas[i].ask("CLUSTER", "REPLICATE", id)
			return err == nil && answer == "+OK"
		})
	}
	for i, master := range cluster {
		eventually(t, "the replica has all", func() bool { return isOnline(t, replicas[i]) && master.must(t, "WAIT", "1", "100") == ":1" })
	}
	for _, s := range append(replicas, cluster...) {
		eventually(t, "all know all", func() bool { return clusterKnows(s, 6) })
	}
	st := connect(t, redis.Config{Addrs: []string{cluster[0].addr, cluster[1].addr}, Guard: patient, Replicas: 1})
	versions := map[string]store.Version{}
	for i := range 60 {
		key := fmt.Sprint("key", i)
		version, err := st.Set(ctx, key, []byte("v"), store.VersionAbsent, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		versions[key] = version
	}
	moved := map[string]bool{}
	for key := range versions {
		answer, err := cluster[2].ask("EXISTS", "dunlin:v:"+key)
		if err != nil {
			t.Fatal(err)
		}
		moved[key] = answer == ":1" // otherwise the reply names the node of the key
	}
	cluster[2].kill()
	replicas[2].must(t, "CLUSTER", "FAILOVER", "TAKEOVER")
	lost, refused := 0, 0 // of the keys that have moved
	for key, version := range versions {
		eventually(t, "all keys are there", func() bool {
			item, err := st.Get(ctx, key)
			if errors.Is(err, store.ErrNotFound) || err == nil && item.Version != version {
				lost++
				return true
			}
			return err == nil
		})
		if !moved[key] {
			eventually(t, "a key that has not moved can be changed", func() bool {
				_, err := st.Set(ctx, key, []byte("again"), store.VersionAny, time.Hour)
				return err == nil
			})
		} else if refused < 3 { // the key's new master has no replica
			refused++
			unconfirmed(t, key, func(ctx context.Context) error {
				_, err := st.Set(ctx, key, []byte("again"), store.VersionAny, time.Hour)
				return err
			})
		}
	}
	if lost > 0 || refused == 0 {
		t.Errorf("of %d keys %d are lost, and %d of the master that was killed cannot be changed", len(versions), lost, refused)
	}
}
