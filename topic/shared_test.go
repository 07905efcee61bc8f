package topic_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/topic"
)

// lossy is a store that loses messages and fails.
type lossy struct {
	store.Store
	loses, fails atomic.Bool
	lost         atomic.Int32
}

func (l *lossy) Publish(ctx context.Context, name string, message []byte) error {
	if l.fails.Load() {
		return errors.New("no store")
	}
	return l.Store.Publish(ctx, name, message)
}

func (l *lossy) Subscribe(ctx context.Context, name string, receive func(store.Message)) error {
	return l.Store.Subscribe(ctx, name, func(m store.Message) {
		if l.loses.Load() {
			l.lost.Add(1)
		} else {
			receive(m)
		}
	})
}

// A process is a hub that shares the topics of others.
type process struct {
	*topic.Hub
	store *lossy
	open  func() *socket
}

// share runs f on both engines with two processes.
func share(t *testing.T, s topic.Settings, f func(t *testing.T, a, b *process)) {
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		engine := dunlin.EngineLoop
		if strings.HasSuffix(t.Name(), "/std") {
			engine = dunlin.EngineStd
		}
		common := store.NewMemory(store.MemoryConfig{})
		start := func(app *dunlin.App) *process {
			p := &process{Hub: topic.New(app, s), store: &lossy{Store: common}}
			p.Set("keyed", topic.Settings{Keyed: true})
			if err := p.Share(t.Context(), p.store, "topics"); err != nil {
				t.Fatal(err)
			}
			p.open = sockets(t, app, p.Hub)
			return p
		}
		f(t, start(app), start(dunlin.New(dunlin.Config{Engine: engine})))
	})
}

// The subscribers of all processes get the messages of all processes.
func TestSharedTopics(t *testing.T) {
	share(t, topic.Settings{}, func(t *testing.T, a, b *process) {
		inA, inB := a.open(), b.open()
		for _, s := range []*socket{inA, inB} {
			s.say("!subscribe - x keyed")
			s.position("!at")
		}
		publish(t, a.Topic("x"), "1", "2")
		for _, s := range []*socket{inA, inB} {
			s.expect("x", "1")
			s.expect("x", "2")
		}
		put(t, b.Topic("keyed"), "k", "v")
		inA.expect("keyed", "v")
		inB.expect("keyed", "v")
		publish(t, b.Topic("x"), "3")
		id := inA.expect("x", "3")
		if inB.expect("x", "3") != id {
			t.Error("a message has two IDs")
		}
		publish(t, b.Topic("x"), "4")
		inA.expect("x", "4")
		moved := a.open()
		moved.say("!subscribe %s x", id)
		moved.position("!at")
		moved.expect("x", "4")
		if err := a.Share(t.Context(), a.store, "again"); err == nil {
			t.Error("a hub is shared twice")
		}
		for _, name := range []string{"", "a b", "resync"} {
			if err := a.Topic(name).Publish([]byte("x")); err != topic.ErrName {
				t.Errorf("a message to %q: %v", name, err)
			}
		}
	})
}

// A process that has lost a message tells its subscribers once. All processes do so when it is unknown whether a message was
// published.
func TestLossBetweenProcesses(t *testing.T) {
	share(t, topic.Settings{}, func(t *testing.T, a, b *process) {
		inA, inB := a.open(), b.open()
		for _, s := range []*socket{inA, inB} {
			s.say("!subscribe - x y")
			s.position("!at")
		}
		publish(t, a.Topic("x"), "1")
		inA.expect("x", "1")
		id := inB.expect("x", "1")
		b.store.loses.Store(true)
		publish(t, a.Topic("x"), "lost")
		lost := inA.expect("x", "lost")
		publish(t, a.Topic("y"), "also lost")
		inA.expect("y", "also lost")
		within(t, "both are lost", func() bool { return b.store.lost.Load() == 2 })
		b.store.loses.Store(false)
		publish(t, a.Topic("x"), "2")
		inA.expect("x", "2")
		inB.position("!resync")
		for _, last := range []string{id, lost} { // IDs from before the loss, and of a message that only the other process has
			late := b.open()
			late.say("!subscribe %s x", last)
			late.position("!resync")
		}
		a.store.fails.Store(true)
		if err := a.Topic("x").Publish([]byte("no")); err == nil || !strings.Contains(err.Error(), "no store") {
			t.Errorf("a message that the store refuses: %v", err)
		}
		a.store.fails.Store(false)
		publish(t, a.Topic("x"), "3")
		for _, s := range []*socket{inA, inB} {
			for !strings.HasPrefix(s.hear(), "!resync ") { // the message after the loss may arrive first
			}
		}
		publish(t, a.Topic("x"), "4")
		for _, s := range []*socket{inA, inB} {
			for text := ""; !strings.HasSuffix(text, " x\n4"); {
				text = s.hear()
			}
		}
	})
}

// A client whose connection breaks at random, and that reconnects to either process, gets each message once.
func TestCutsBetweenProcesses(t *testing.T) {
	share(t, topic.Settings{MaxMessages: 1 << 20, MaxBytes: 1 << 30}, func(t *testing.T, a, b *process) {
		const rounds, each, clients = 40, 8, 3
		processes := []*process{a, b}
		starts := make(chan struct{}, clients)
		var wg sync.WaitGroup
		for n := range clients {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(n), 7))
				last, next := "-", 0
				for next < rounds*each {
					s := processes[random.IntN(2)].open()
					s.say("!subscribe %s t0 t1 t2", last)
					for left := random.IntN(40); next < rounds*each; left-- {
						text, err := s.next()
						if err != nil || strings.HasPrefix(text, "!resync") {
							t.Errorf("got %q, %v after %d messages", text, err, next)
							return
						}
						head, data, isMessage := strings.Cut(text, "\n")
						switch {
						case !isMessage && last == "-" && next == 0:
							last = strings.TrimPrefix(head, "!at ")
							starts <- struct{}{}
							continue
						case !isMessage:
							continue
						case left < 0 && next > 0: // the connection breaks, and this message is lost
						case data != fmt.Sprint(next):
							t.Errorf("got %q, want message %d", text, next)
							return
						default:
							last, _, _ = strings.Cut(head, " ")
							next++
							continue
						}
						break
					}
					_ = s.Close()
				}
			})
		}
		go func() {
			for range clients {
				<-starts
			}
			n := 0
			for round := range rounds {
				from := processes[round%2]
				for range each {
					if err := from.Topic(fmt.Sprint("t", n%3)).Publish(fmt.Append(nil, n)); err != nil {
						t.Error(err)
					}
					n++
				}
				// The next process publishes after all subscribers have these messages.
				within(t, "both processes have the messages", func() bool {
					return a.Stats().Messages == int64(n) && b.Stats().Messages == int64(n)
				})
			}
		}()
		wg.Wait()
	})
}
