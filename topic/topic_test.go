package topic_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/topic"
	"github.com/dunlinhttp/dunlin/websocket"
)

func TestSubscribersGetMessages(t *testing.T) {
	onEngines(t, topic.Settings{}, func(t *testing.T, hub *topic.Hub, open func() *socket) {
		a, b := open(), open()
		a.say("!subscribe - birds fish")
		a.position("!at")
		b.say("!subscribe - fish")
		b.position("!at")
		publish(t, hub.Topic("birds"), "a dunlin", "a knot")
		publish(t, hub.Topic("fish"), "a cod")
		publish(t, hub.Topic("mammals"), "a seal")
		a.expect("birds", "a dunlin")
		a.expect("birds", "a knot")
		a.expect("fish", "a cod")
		b.expect("fish", "a cod")
		a.say("!unsubscribe birds")
		a.say("hello")
		if got := a.hear(); got != "hello" {
			t.Errorf("got %q", got)
		}
		publish(t, hub.Topic("birds"), "unseen")
		publish(t, hub.Topic("fish"), strings.Repeat("a whale ", 10_000))
		a.expect("fish", strings.Repeat("a whale ", 10_000))
	})
}

// Each of these is a known failure of other libraries.
func TestResume(t *testing.T) {
	t.Run("after messages", func(t *testing.T) {
		onEngines(t, topic.Settings{}, func(t *testing.T, hub *topic.Hub, open func() *socket) {
			a := open()
			a.say("!subscribe - x y")
			a.position("!at")
			publish(t, hub.Topic("x"), "1", "2")
			publish(t, hub.Topic("y"), "3")
			a.expect("x", "1")
			id := a.expect("x", "2")
			_ = a.Close()
			publish(t, hub.Topic("x"), "4")
			b := open()
			b.say("!subscribe %s x y", id)
			if at := b.position("!at"); at != id {
				t.Errorf("at %s, want %s", at, id)
			}
			b.expect("y", "3")
			b.expect("x", "4")
		})
	})
	t.Run("before the first message", func(t *testing.T) {
		onEngines(t, topic.Settings{}, func(t *testing.T, hub *topic.Hub, open func() *socket) {
			publish(t, hub.Topic("x"), "old")
			a := open()
			a.say("!subscribe - x")
			id := a.position("!at")
			_ = a.Close()
			publish(t, hub.Topic("x"), "new")
			b := open()
			b.say("!subscribe %s x", id)
			b.position("!at")
			b.expect("x", "new")
		})
	})
	t.Run("second time", func(t *testing.T) {
		onEngines(t, topic.Settings{}, func(t *testing.T, hub *topic.Hub, open func() *socket) {
			a := open()
			a.say("!subscribe - x")
			id := a.position("!at")
			for i := range 3 {
				_ = a.Close()
				publish(t, hub.Topic("x"), fmt.Sprint(i))
				a = open()
				a.say("!subscribe %s x", id)
				a.position("!at")
				id = a.expect("x", fmt.Sprint(i))
			}
		})
	})
	for name, id := range map[string]string{"other epoch": "00000000-1", "no ID": "nonsense", "the future": ""} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, topic.Settings{}, func(t *testing.T, hub *topic.Hub, open func() *socket) {
				publish(t, hub.Topic("x"), "old")
				a := open()
				if id == "" {
					a.say("!subscribe - x")
					epoch, _, _ := strings.Cut(a.position("!at"), "-")
					id = epoch + "-99"
					a = open()
				}
				a.say("!subscribe %s x y", id)
				a.position("!resync")
				publish(t, hub.Topic("x"), "new")
				a.expect("x", "new")
			})
		})
	}
	t.Run("too old", func(t *testing.T) {
		onEngines(t, topic.Settings{MaxMessages: 2}, func(t *testing.T, hub *topic.Hub, open func() *socket) {
			a := open()
			a.say("!subscribe - x y")
			id := a.position("!at")
			_ = a.Close()
			publish(t, hub.Topic("y"), "0")
			publish(t, hub.Topic("x"), "1", "2", "3")
			b := open()
			b.say("!subscribe %s x y", id)
			id = b.position("!resync")
			publish(t, hub.Topic("x"), "4", "5")
			b.expect("x", "4")
			b.expect("x", "5")
			c := open() // cut after the resync
			c.say("!subscribe %s x y", id)
			c.position("!at")
			c.expect("x", "4")
			c.expect("x", "5")
		})
	})
}

func TestKeyedTopics(t *testing.T) {
	onEngines(t, topic.Settings{Keyed: true, MaxMessages: 3}, func(t *testing.T, hub *topic.Hub, open func() *socket) {
		x := hub.Topic("prices")
		put(t, x, "a", "a1")
		put(t, x, "b", "b1")
		put(t, x, "a", "a2")
		s := open()
		s.say("!subscribe - prices")
		id := s.position("!at")
		s.expect("prices", "b1")
		s.expect("prices", "a2")
		put(t, x, "b", "b2")
		s.expect("prices", "b2")
		again := open() // cut before the first key
		again.say("!subscribe %s prices", id)
		again.position("!at")
		again.expect("prices", "a2")
		again.expect("prices", "b2")
		for i := range 20 {
			put(t, x, "c", fmt.Sprint("c", i))
		}
		put(t, x, "d", "d1") // a has the oldest message
		late := open()
		late.say("!subscribe - prices")
		late.position("!at")
		for _, want := range []string{"b2", "c19", "d1"} {
			late.expect("prices", want)
		}
		if err := x.Publish([]byte("x")); err == nil {
			t.Error("a message without a key was accepted")
		}
	})
}

func TestRefusedSubscriptions(t *testing.T) {
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		hub := topic.New(app, topic.Settings{})
		denied := errors.New("not yours")
		handler := websocket.New(websocket.Options{Message: func(c *websocket.Conn, m websocket.Message) {
			hub.Handle(c, m, func(_ *websocket.Conn, name string) error {
				if name == "secret" {
					return denied
				}
				return nil
			})
		}})
		app.Get("/socket", func(r *dunlin.Request) dunlin.Response { return handler.Accept(r, nil) })
		s := dial(t, dunlintest.Serve(t, app))
		for names, want := range map[string]error{
			"secret": denied, "": errors.New("topic: subscribe: no topic is named"), "resync": topic.ErrName, "\x7f": topic.ErrName,
		} {
			s.say("!subscribe - %s", names)
			if got := s.hear(); !strings.HasPrefix(got, "!refused "+names+"\n"+want.Error()) {
				t.Errorf("%q: %q", names, got)
			}
		}
		s.say("!subscribe - open secret")
		for range 2 {
			if got := s.hear(); got != "!refused secret\nnot yours" && !strings.HasPrefix(got, "!at ") {
				t.Errorf("got %q", got)
			}
		}
		s.say("!unsubscribe open")
		for i := range 65 {
			s.say("!subscribe - t%d", i)
		}
		for {
			if got := s.hear(); strings.HasPrefix(got, "!refused") {
				if got != "!refused t64\n"+topic.ErrTooMany.Error() {
					t.Errorf("got %q", got)
				}
				break
			}
		}
		if n := hub.Stats(); n.Topics != 64 || n.Subscribers != 64 {
			t.Errorf("%+v", n)
		}
	})
}

func TestPublishRefuses(t *testing.T) {
	hub := topic.New(dunlin.New(dunlin.Config{}), topic.Settings{MaxBytes: 1000})
	for _, v := range []struct {
		name, data string
		want       error
	}{
		{"", "x", topic.ErrName},
		{"a b", "x", topic.ErrName},
		{strings.Repeat("x", 256), "x", topic.ErrName},
		{"x", "", nil},
		{"x", "\xff", nil},
		{"x", strings.Repeat("x", 1000), nil},
	} {
		if err := hub.Topic(v.name).Publish([]byte(v.data)); err == nil || v.want != nil && err != v.want {
			t.Errorf("publish %q to %q: %v", v.data, v.name, err)
		}
	}
}
