package redis_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/store/redis"
)

// A name stands for one Redis, and later for another one. Existing connections remain connected to the first one.
type name struct {
	net.Listener
	now  atomic.Pointer[server]
	made atomic.Int64 // number of connections
}

func startName(t *testing.T, first *server) *name {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	n := &name{Listener: ln}
	n.now.Store(first)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			n.made.Add(1)
			s := n.now.Load()
			there, err := net.Dial("tcp", s.addr)
			if err != nil {
				_ = conn.Close()
				continue
			}
			go func() { _, _ = io.Copy(there, conn); _ = there.Close() }()
			go func() { _, _ = io.Copy(conn, there); _ = conn.Close() }()
		}
	}()
	return n
}

func (n *name) config() redis.Config {
	return redis.Config{Addrs: []string{n.Addr().String()}, Guard: patient}
}

// channels returns the number of channels with subscribers.
func channels(t *testing.T, s *server) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(s.must(t, "PUBSUB", "CHANNELS", "dunlin:*"), "*%d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// clients returns the number of client connections to a Redis, without the connection of the query itself. Connections of the
// master and of replicas are not counted.
func clients(t *testing.T, s *server) int {
	t.Helper()
	conn, err := net.DialTimeout("tcp", s.addr, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(conn, "CLIENT LIST TYPE normal\r\nQUIT\r\n")
	list, _ := io.ReadAll(conn)
	return strings.Count(string(list), "\nid=") - 1
}

// If another Redis becomes the master behind the name of a single Redis, then writes, messages and subscriptions move to it,
// although the connections to the first one would last.
func TestMasterNameChangesServer(t *testing.T) {
	old, now := startServer(t), startServer(t)
	master := startName(t, old)
	values, times, numbers, publisher := connect(t, master.config()), connect(t, master.config()), connect(t, master.config()), connect(t, master.config())
	c := master.config()
	c.Guard, c.Replicas = store.GuardConfig{Timeout: time.Second, Failures: 1 << 20}, 1
	confirmed := connect(t, c)
	received := make(chan string, 1000)
	if err := values.Subscribe(t.Context(), "topic", func(m store.Message) { received <- string(m.Body) }); err != nil {
		t.Fatal(err)
	}
	set := func(st store.Store) func() bool {
		return func() bool {
			_, err := st.Set(ctx, "k", []byte("v"), store.VersionAny, time.Hour)
			return err == nil
		}
	}
	writes := map[string]func() bool{
		"values":           set(values),
		"confirmed values": set(confirmed),
		"times": func() bool {
			err := times.Expire(ctx, "k", time.Hour)
			return err == nil || errors.Is(err, store.ErrNotFound)
		},
		"numbers": func() bool {
			_, err := numbers.Add(ctx, "n", 1, time.Hour)
			return err == nil
		},
	}
	hears := func(text string) func() bool {
		return func() bool {
			_ = publisher.Publish(ctx, "topic", []byte(text))
			for {
				select {
				case m := <-received:
					if m == text {
						return true
					}
				default:
					return false
				}
			}
		}
	}
	now.must(t, "REPLICAOF", "127.0.0.1", fmt.Sprint(old.port))
	for what, write := range writes {
		eventually(t, what+" are written", write)
	}
	eventually(t, "messages arrive", hears("before"))
	now.must(t, "REPLICAOF", "NO", "ONE")
	old.must(t, "REPLICAOF", "127.0.0.1", fmt.Sprint(now.port))
	master.now.Store(now)
	for what, write := range writes {
		eventually(t, what+" are written to the new master", write)
	}
	eventually(t, "the subscription has moved", func() bool { return channels(t, now) == 1 && channels(t, old) == 0 })
	eventually(t, "messages of one who writes nothing arrive", hears("after"))
	eventually(t, "the old connections are closed", func() bool {
		for _, write := range writes {
			_ = write() // one of the client's two connections may be new
		}
		_ = publisher.Publish(ctx, "topic", nil)
		return clients(t, old) == 0
	})
}

// While there is no other master, a replica continues to serve reads, and its breaker stays closed.
func TestReplicaWithoutMaster(t *testing.T) {
	gone, s := startServer(t), startServer(t)
	master := startName(t, s)
	c := master.config()
	c.Guard.Failures = 3
	st := connect(t, c)
	if _, err := st.Set(ctx, "k", []byte("v"), store.VersionAny, time.Hour); err != nil {
		t.Fatal(err)
	}
	gone.kill()
	s.must(t, "REPLICAOF", "127.0.0.1", fmt.Sprint(gone.port))
	before := master.made.Load()
	eventually(t, "a master was looked for several times", func() bool {
		if _, err := st.Set(ctx, "other", []byte("v"), store.VersionAny, time.Hour); !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("a write to a replica: %v", err)
		}
		if item, err := st.Get(ctx, "k"); err != nil || string(item.Value) != "v" {
			t.Fatalf("a read from a replica: got %v, %v", item, err)
		}
		return master.made.Load() >= before+8
	})
	if stats := st.Stats(); stats.Openings > 0 || stats.Failures == 0 {
		t.Errorf("got %+v", stats)
	}
	eventually(t, "connections that were made for that are closed", func() bool { return clients(t, s) <= 2 })
}

// A call that Redis refuses does not impede other calls. Redis may refuse it for its key, its value or the permissions of the
// user, or because it does not accept writes.
func TestRefusals(t *testing.T) {
	set := func(st store.Store, key string) error {
		_, err := st.Set(ctx, key, []byte("v"), store.VersionAny, time.Hour)
		return err
	}
	for what, c := range map[string]struct {
		begin []string // a command for Redis
		call  func(store.Store) error
	}{
		"a key of another type":    {[]string{"SET", "dunlin:v:other", "1"}, func(st store.Store) error { return set(st, "other") }},
		"a read of another type":   {[]string{"SET", "dunlin:v:other", "1"}, func(st store.Store) error { _, err := st.Get(ctx, "other"); return err }},
		"a number of another type": {[]string{"HSET", "dunlin:n:other", "a", "b"}, func(st store.Store) error { _, err := st.Add(ctx, "other", 1, time.Hour); return err }},
		"a number that is none":    {[]string{"SET", "dunlin:n:other", "x"}, func(st store.Store) error { _, err := st.Add(ctx, "other", 1, time.Hour); return err }},
		"a lack of replicas":       {[]string{"CONFIG", "SET", "min-replicas-to-write", "1"}, func(st store.Store) error { return set(st, "other") }},
		"a command without rights": {[]string{"ACL", "SETUSER", "default", "-pexpire"}, func(st store.Store) error { return st.Expire(ctx, "k", time.Hour) }},
		"a key without rights":     {[]string{"ACL", "SETUSER", "default", "resetkeys", "~dunlin:v:k"}, func(st store.Store) error { return set(st, "other") }},
		"a topic without rights":   {[]string{"ACL", "SETUSER", "default", "resetchannels"}, func(st store.Store) error { return st.Publish(ctx, "topic", nil) }},
	} {
		t.Run(what, func(t *testing.T) {
			s := startServer(t)
			st := connect(t, redis.Config{Addrs: []string{s.addr}, Guard: store.GuardConfig{Timeout: patient.Timeout, Failures: 2, Cooldown: time.Hour}})
			if err := set(st, "k"); err != nil {
				t.Fatal(err)
			}
			if c.begin != nil {
				s.must(t, c.begin...)
			}
			for range 5 {
				if err := c.call(st); !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("the call: %v", err)
				}
				if item, err := st.Get(ctx, "k"); err != nil || string(item.Value) != "v" {
					t.Errorf("another call: got %v, %v", item, err)
				}
			}
			for range 5 {
				_ = c.call(st)
			}
			if stats := st.Stats(); stats.Failures != 10 || stats.Openings != 0 {
				t.Errorf("got %+v", stats)
			}
		})
	}
}
