package topic_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/topic"
	"github.com/dunlinhttp/dunlin/websocket"
)

// Messages of topics reach a client while a function of its connection blocks.
func TestMessagesWhileFunctionBlocks(t *testing.T) {
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		hub := topic.New(app, topic.Settings{})
		release := make(chan struct{})
		handler := websocket.New(websocket.Options{
			Open: func(c *websocket.Conn) {
				if err := hub.Subscribe(c, "", "x"); err != nil {
					t.Error(err)
				}
			},
			Message: func(c *websocket.Conn, m websocket.Message) {
				<-release
				_ = c.Send(m.Kind, m.Data)
			},
		})
		app.Get("/socket", func(r *dunlin.Request) dunlin.Response { return handler.Accept(r, nil) })
		s := dial(t, dunlintest.Serve(t, app))
		s.position("!at")
		for round := range 3 { // from the second round on the function may be known to block
			s.say("hello")
			for i := range 50 {
				text := fmt.Sprint(round, " ", i)
				publish(t, hub.Topic("x"), text)
				s.expect("x", text)
			}
			release <- struct{}{}
			if got := s.hear(); got != "hello" {
				t.Errorf("got %q", got)
			}
		}
	})
}

// Clients connect, disconnect, change their topics, read slowly and are closed, while messages are published and dropped and the
// server drains. Each client gets the messages of a topic in order.
func TestEverythingAtOnce(t *testing.T) {
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		hub := topic.New(app, topic.Settings{MaxMessages: 30})
		hub.Set("k", topic.Settings{Keyed: true, MaxMessages: 10})
		hub.Set("skip", topic.Settings{MaxMessages: 5, Slow: topic.Skip})
		hub.Set("cut", topic.Settings{MaxMessages: 5, Slow: topic.Cut})
		hub.Set("w/", topic.Settings{Wildcards: true, MaxMessages: 10})
		hub.Set("members", topic.Settings{Keyed: true, MaxMessages: 12})
		names := []string{"a", "members", "b", "k", "skip", "w/*", "cut"}
		addr := serve(t, app, hub)
		open := func(n int) *socket {
			if n%2 == 0 {
				return dialDeflate(t, addr)
			}
			return dial(t, addr)
		}
		var clients, publishers sync.WaitGroup
		done := make(chan struct{})
		rounds := 5
		if invariants.Enabled {
			rounds = 2
		}
		for n := range 2 {
			publishers.Go(func() {
				random := rand.New(rand.NewPCG(uint64(n), 1))
				for i := 0; ; i++ {
					select {
					case <-done:
						return
					default:
					}
					var err error
					name := names[random.IntN(len(names))]
					data := []byte(strings.Repeat("x", random.IntN(2000)+1))
					key := fmt.Sprint(random.IntN(20))
					switch {
					case name == "members":
					case name == "k" && random.IntN(3) == 0:
						err = hub.Topic(name).Delete(key, data)
					case name == "k":
						err = hub.Topic(name).Put(key, data)
					case name == "w/*":
						err = hub.Topic("w/"+key).Publish(data, data)
					default:
						err = hub.Topic(name).Publish(data, data)
					}
					if err != nil {
						t.Error(err)
						return
					}
					for range 20 {
						runtime.Gosched() // give the clients time
					}
				}
			})
		}
		for n := range 8 {
			clients.Go(func() {
				random := rand.New(rand.NewPCG(uint64(n), 2))
				for range rounds {
					s := open(n)
					s.say("!join %d", n)
					s.say("!subscribe - %s", strings.Join(names[:1+random.IntN(len(names))], " "))
					last := map[string]string{}
					for range random.IntN(300) {
						text, err := s.next()
						if text == "close 1008" {
							break
						}
						if err != nil {
							t.Error(err)
							break
						}
						head, _, ok := strings.Cut(text, "\n")
						if !ok {
							if strings.HasPrefix(text, "!resync") {
								clear(last)
							}
							continue
						}
						id, name, _ := strings.Cut(head, " ")
						if before := last[name]; len(id) < len(before) || len(id) == len(before) && id <= before {
							t.Errorf("%s of %s after %s", id, name, before)
						}
						last[name] = id
						if random.IntN(50) == 0 {
							name := []string{"a", "b", "skip", "cut"}[random.IntN(4)] // keyed topics begin anew
							s.say("!unsubscribe %s", name)
							s.say("!subscribe - %s", name)
						}
					}
					_ = s.Close()
				}
			})
		}
		clients.Wait()
		shutdown(t, app)
		close(done)
		publishers.Wait()
		if n := hub.Stats(); n.Subscribers != 0 {
			t.Errorf("%+v", n)
		}
		if ghosts := hub.Topic("members").Members(); len(ghosts) > 0 {
			t.Errorf("ghosts %v", ghosts)
		}
	})
}
