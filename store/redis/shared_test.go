package redis_test

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/internal/topictest"
	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/store/redis"
	"github.com/dunlinhttp/dunlin/topic"
)

// follow opens an event stream of topics "x" and "y", and returns a function that returns its next event, as its ID, type and data.
func follow(t *testing.T, addr, last string) (next func() (id, event string)) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+addr+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Last-Event-ID", last)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	return func() (id, event string) {
		t.Helper()
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch {
			case name == "id":
				id = value
			case name == "event" || name == "data":
				event += value + " "
			case name == "" && value == "" && id != "":
				return id, event
			}
		}
		t.Fatal("the stream ended: ", lines.Err())
		return
	}
}

// The topics of several processes are the same over Redis, single and as a cluster: one order, IDs that each process knows, and a new
// start for the subscribers of a process that has lost its connection and with it a message.
func TestSharedTopics(t *testing.T) {
	for name, servers := range map[string][]*server{"single": {startServer(t)}, "cluster": startCluster(t)} {
		t.Run(name, func(t *testing.T) { shareTopics(t, servers) })
	}
}

func shareTopics(t *testing.T, servers []*server) {
	const processes, rounds, each = 3, 20, 10
	var hubs []*topic.Hub
	var addrs []string
	var streams []func() (id, event string)
	for n := range processes {
		app := dunlin.New(dunlin.Config{})
		hub := topic.New(app, topic.Settings{MaxMessages: 2 * rounds * each})
		err := hub.Share(t.Context(), connect(t, redis.Config{Addrs: []string{servers[n%len(servers)].addr}, Guard: patient}), "topics")
		if err != nil {
			t.Fatal(err)
		}
		app.Get("/events", func(r *dunlin.Request) dunlin.Response { return topic.Events(r, hub.Topic("x"), hub.Topic("y")) })
		addrs = append(addrs, dunlintest.Serve(t, app))
		next := follow(t, addrs[n], "")
		next()
		hubs, streams = append(hubs, hub), append(streams, next)
	}
	var first []string
	for i := range rounds {
		var wait []chan error
		for n, hub := range hubs { // at once
			done := make(chan error, 1)
			wait = append(wait, done)
			go func() {
				var list [][]byte
				for k := range each {
					list = append(list, fmt.Appendf(nil, "%d/%d/%d", i, n, k))
				}
				done <- hub.Topic([]string{"x", "y"}[n%2]).Publish(list...)
			}()
		}
		for _, done := range wait {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		for n, next := range streams {
			for k := range processes * each {
				id, event := next()
				if got := id + " " + event; n == 0 {
					first = append(first, got)
				} else if want := first[i*processes*each+k]; got != want {
					t.Fatalf("process %d has %q, another %q", n, got, want)
				}
			}
		}
	}
	middle, _, _ := strings.Cut(first[len(first)/2], " ")
	for n := range hubs {
		next := follow(t, addrs[n], middle)
		next()
		for _, want := range first[len(first)/2+1:] {
			if id, event := next(); id+" "+event != want {
				t.Fatalf("process %d resumes with %s %s, want %s", n, id, event, want)
			}
		}
	}
	resynced := make([]bool, processes)
	for i := 0; slices.Contains(resynced, false); i++ {
		if i > 0 && i%10 == 0 { // the subscriptions stand again
			for _, s := range servers {
				s.must(t, "CLIENT", "KILL", "TYPE", "pubsub")
			}
		}
		for n, hub := range hubs {
			if err := hub.Topic("x").Publish(fmt.Appendf(nil, "after %d", i)); err != nil {
				continue // the connection is lost
			}
			if i%10 != 9 || resynced[n] {
				continue
			}
			for want := fmt.Sprintf("x after %d ", i); ; {
				_, event := streams[n]()
				if strings.HasPrefix(event, "resync") {
					resynced[n] = true
					break
				}
				if event == want {
					break
				}
			}
		}
	}
}

// Clients of processes that share a Redis resume as those over a store in memory.
func TestResumeBetweenProcesses(t *testing.T) {
	s := startServer(t)
	topictest.Resume(t, topictest.Backplane{
		Store: func(t *testing.T) store.Store {
			guard := store.GuardConfig{Timeout: 10 * time.Second, Failures: 1000}
			return connect(t, redis.Config{Addrs: []string{s.addr}, Guard: guard})
		},
		Stop: func(*testing.T) { s.kill() },
		Start: func(t *testing.T) {
			if !s.start(t) {
				t.Skip("another program has taken the port")
			}
		},
	})
}

// Processes that share keyed topics over a Redis agree on their entries and members, also after the end of a process or of the Redis.
func TestKeyedTopics(t *testing.T) {
	topictest.Keyed(t, func(t *testing.T, f func(t *testing.T, c topictest.Cluster)) {
		s := startServer(t)
		f(t, topictest.Serve(t, topictest.Backplane{
			Store: func(t *testing.T) store.Store {
				guard := store.GuardConfig{Timeout: 10 * time.Second, Failures: 1000}
				return connect(t, redis.Config{Addrs: []string{s.addr}, Guard: guard})
			},
			Stop: func(*testing.T) { s.kill() },
			Start: func(t *testing.T) {
				if !s.start(t) {
					t.Skip("another program has taken the port")
				}
			},
		}))
	})
}
