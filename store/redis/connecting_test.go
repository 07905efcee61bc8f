package redis_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/store/redis"
)

// A road is a proxy to a Redis. It can delay connections, hold them forever and cut them.
type road struct {
	net.Listener
	slow atomic.Int64  // delay of new connections, in nanoseconds; negative: forever
	held chan net.Conn // connections that are held forever
	mu   sync.Mutex
	all  []net.Conn
}

func startRoad(t *testing.T, to *server) *road {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &road{Listener: ln, held: make(chan net.Conn, 1000)}
	t.Cleanup(func() { _ = ln.Close(); r.cut() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			r.mu.Lock()
			r.all = append(r.all, conn)
			r.mu.Unlock()
			slow := time.Duration(r.slow.Load())
			if slow < 0 {
				r.held <- conn
				continue
			}
			time.AfterFunc(slow, func() {
				there, err := net.Dial("tcp", to.addr)
				if err != nil {
					_ = conn.Close()
					return
				}
				go func() { _, _ = io.Copy(there, conn); _ = there.Close() }()
				go func() { _, _ = io.Copy(conn, there); _ = conn.Close() }()
			})
		}
	}()
	return r
}

func (r *road) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.all {
		_ = conn.Close()
	}
	r.all = nil
}

// The URL of a Unix socket connects to that socket.
func TestUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "redis") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "socket")
	startServer(t, "--unixsocket", socket)
	st, err := redis.OpenURL(&url.URL{Scheme: "unix", Path: socket})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	eventually(t, "Redis is used", func() bool {
		_, err := st.Set(ctx, "k", []byte("v"), store.VersionAny, time.Hour)
		return err == nil
	})
}

// A Redis, or a master of a cluster, whose connections take longer than the deadline of a call is reconnected after the loss of
// its connections.
func TestSlowReconnect(t *testing.T) {
	for _, mode := range []string{"single", "cluster"} {
		t.Run(mode, func(t *testing.T) {
			settings := []string{}
			if mode == "cluster" {
				settings = append(settings, "--cluster-enabled", "yes")
			}
			s := startServer(t, settings...)
			r := startRoad(t, s)
			if mode == "cluster" {
				s.must(t, "CONFIG", "SET", "cluster-announce-port", fmt.Sprint(r.Addr().(*net.TCPAddr).Port))
				s.must(t, "CLUSTER", "ADDSLOTSRANGE", "0", "16383")
				eventually(t, "the cluster is made", func() bool { return clusterIsUp(s, 1) })
			}
			st := connect(t, redis.Config{Addrs: []string{r.Addr().String()}, Guard: store.GuardConfig{Timeout: 200 * time.Millisecond, Cooldown: 50 * time.Millisecond}})
			used := func() bool {
				_, err := st.Set(ctx, "k", []byte("v"), store.VersionAny, time.Hour)
				return err == nil
			}
			eventually(t, "Redis is used", used)
			r.slow.Store(int64(600 * time.Millisecond))
			r.cut()
			eventually(t, "Redis is used again", used)
		})
	}
}

// A call ends at its deadline even while the connection of a subscription, which has more time, is being made.
func TestCallsDoNotWaitForConnections(t *testing.T) {
	s := startServer(t)
	r := startRoad(t, s)
	st := connect(t, redis.Config{Addrs: []string{r.Addr().String()}, Guard: store.GuardConfig{Timeout: 20 * time.Millisecond, Failures: 1 << 20}})
	eventually(t, "a subscription is active", func() bool { return st.Subscribe(t.Context(), "topic", func(store.Message) {}) == nil })
	const rounds, calls = 5, 8
	for range rounds { // on a busy machine the subscription's time may pass by itself
		r.slow.Store(-1)
		r.cut()
		conn := <-r.held
		given := make(chan struct{})
		go func() { _, _ = io.Copy(io.Discard, conn); close(given) }()
		for range calls {
			if _, err := st.Get(ctx, "k"); !errors.Is(err, store.ErrUnavailable) {
				t.Fatalf("a call that cannot be made: %v", err)
			}
		}
		select {
		case <-given:
		default:
			return
		}
		r.slow.Store(0)
		eventually(t, "Redis is used again", func() bool { _, err := st.Get(ctx, "k"); return errors.Is(err, store.ErrNotFound) })
		for len(r.held) > 0 {
			<-r.held
		}
	}
	t.Errorf("calls with a deadline of 20 ms wait until the subscription's connection is given up")
}
