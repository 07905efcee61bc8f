package topic_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/topictest"
	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/topic"
)

// A twin is a topictest.Process without network, in virtual time.
type twin struct {
	topic topic.Topic
	store *lossy
	kill  context.CancelFunc
}

func startTwin(t *testing.T, s store.Store, settings topic.Settings) *twin {
	ctx, cancel := context.WithCancel(t.Context())
	hub := topic.New(dunlin.New(dunlin.Config{}), settings)
	p := &twin{hub.Topic("x"), &lossy{Store: s}, cancel}
	if err := hub.Share(ctx, p.store, "topics"); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *twin) Topic() topic.Topic { return p.topic }
func (p *twin) Kill()              { p.kill() }

func (p *twin) Join(t *testing.T, key string) (leave func()) {
	t.Helper()
	leave, err := topic.Hold(p.topic, key, key+"=+", key)
	if err != nil {
		t.Fatal(err)
	}
	return leave
}

func (p *twin) Watch(t *testing.T, last string) topictest.Watch {
	t.Helper()
	next, err := topic.Follow(p.topic, last)
	if err != nil {
		t.Fatal(err)
	}
	return func() (id, data string) {
		t.Helper()
		for range 100 {
			if id, data, ok := next(); ok {
				return id, data
			}
			time.Sleep(time.Second)
		}
		t.Fatal("no message in 100 seconds")
		return
	}
}

// breaking is a store that is unavailable at times.
type breaking struct {
	store.Store
	broken atomic.Bool
}

func (b *breaking) Publish(ctx context.Context, name string, message []byte) error {
	if b.broken.Load() {
		return store.ErrUnavailable
	}
	return b.Store.Publish(ctx, name, message)
}

// bubble runs f in virtual time. The goroutines of the store end with the test.
func bubble(t *testing.T, f func(t *testing.T, s store.Store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory(store.MemoryConfig{})
		defer func() { _ = s.Close() }()
		f(t, s)
	})
}

// Processes agree on the entries and members of keyed topics. topictest has the cases; the network tests of it have real time.
func TestKeyedTopicsOfProcesses(t *testing.T) {
	topictest.Keyed(t, func(t *testing.T, f func(t *testing.T, c topictest.Cluster)) {
		bubble(t, func(t *testing.T, s store.Store) {
			plane := &breaking{Store: s}
			f(t, topictest.Cluster{
				Start: func(t *testing.T) topictest.Process { return startTwin(t, plane, topic.Settings{Keyed: true}) },
				Cut:   func(*testing.T) { plane.broken.Store(true); time.Sleep(time.Minute) },
				Mend:  func(*testing.T) { plane.broken.Store(false) },
				Pass:  func() { time.Sleep(2 * time.Minute) },
			})
		})
	})
}

// Processes that lose packets at random, fail to send, are killed and started have the same state in the end: the members are exactly
// the keys with a connection, and each client has built the state of its process.
func TestKeyedTopicsAfterLosses(t *testing.T) {
	for seed := range uint64(40) {
		bubble(t, func(t *testing.T, s store.Store) {
			random := rand.New(rand.NewPCG(seed, 9))
			type process struct {
				*twin
				watch func() (id, data string, ok bool)
				state map[string]string
				holds map[string][]func()
			}
			start := func() *process {
				p := &process{twin: startTwin(t, s, topic.Settings{Keyed: true, MaxMessages: 24}), state: map[string]string{}, holds: map[string][]func(){}}
				watch, err := topic.Follow(p.topic, "")
				if err != nil {
					t.Fatal(err)
				}
				p.watch = watch
				return p
			}
			read := func(p *process) {
				for {
					_, data, ok := p.watch()
					key, _, isValue := strings.Cut(data, "=")
					switch {
					case !ok:
						return
					case data == "resync":
						clear(p.state)
					case isValue:
						p.state[key] = data
					case data != "at":
						delete(p.state, key)
					}
				}
			}
			all := []*process{start(), start(), start()}
			for i := range 300 {
				p := all[random.IntN(len(all))]
				key := fmt.Sprint("k", random.IntN(8))
				member := fmt.Sprint("m", random.IntN(6))
				switch random.IntN(12) {
				case 0, 1, 2:
					_ = p.topic.Put(key, fmt.Append(nil, key, "=", i))
				case 3, 4:
					_ = p.topic.Delete(key, []byte(key))
				case 5, 6:
					leave, err := topic.Hold(p.topic, member, fmt.Sprint(member, "=", i), member)
					if err == nil {
						p.holds[member] = append(p.holds[member], leave)
					}
				case 7:
					if list := p.holds[member]; len(list) > 0 {
						list[0]()
						p.holds[member] = list[1:]
					}
				case 8:
					p.store.loses.Store(random.IntN(2) == 0)
				case 9:
					p.store.fails.Store(random.IntN(3) == 0)
				case 10:
					time.Sleep(time.Duration(random.IntN(20_000)) * time.Millisecond)
				case 11:
					if random.IntN(8) == 0 {
						n := random.IntN(len(all))
						all[n].kill()
						all[n] = start()
					}
				}
				synctest.Wait()
				read(p)
			}
			members := map[string]bool{}
			for _, p := range all {
				p.store.loses.Store(false)
				p.store.fails.Store(false)
				for key, list := range p.holds {
					members[key] = members[key] || len(list) > 0
				}
			}
			maps.DeleteFunc(members, func(_ string, held bool) bool { return !held })
			time.Sleep(3 * time.Minute)
			if err := all[0].topic.Put("end", []byte("end=")); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			for n, p := range all {
				read(p)
				if !maps.Equal(p.state, all[0].state) {
					t.Errorf("seed %d: process %d has %v, process 0 has %v", seed, n, p.state, all[0].state)
				}
				got := p.topic.Members()
				for _, key := range got {
					if !members[key] || p.state[key] == "" {
						t.Errorf("seed %d: process %d: ghost %s, in the state %q", seed, n, key, p.state[key])
					}
				}
				if len(got) != len(members) {
					t.Errorf("seed %d: process %d has the members %v, want %v", seed, n, got, members)
				}
				for key := range p.state {
					if key[0] == 'm' && !members[key] {
						t.Errorf("seed %d: process %d shows the ghost %s", seed, n, key)
					}
				}
			}
		})
	}
}
