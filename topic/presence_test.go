package topic_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/topic"
	"github.com/dunlinhttp/dunlin/websocket"
)

func TestDelete(t *testing.T) {
	onEngines(t, topic.Settings{Keyed: true, MaxMessages: 3}, func(t *testing.T, hub *topic.Hub, open func() *socket) {
		x := hub.Topic("x")
		put(t, x, "a", "a1")
		put(t, x, "b", "b1")
		s := open()
		s.say("!subscribe - x")
		s.position("!at")
		s.expect("x", "a1")
		id := s.expect("x", "b1")
		if err := x.Delete("a", []byte("a is gone")); err != nil {
			t.Fatal(err)
		}
		s.expect("x", "a is gone")
		fresh, again := open(), open()
		fresh.say("!subscribe - x")
		fresh.position("!at")
		fresh.expect("x", "b1")
		again.say("!subscribe %s x", id)
		again.position("!at")
		again.expect("x", "a is gone")
		put(t, x, "c", "c1")
		put(t, x, "d", "d1") // the log is full: it drops the deletion, and no key
		fresh.expect("x", "c1")
		fresh.expect("x", "d1")
		late := open()
		late.say("!subscribe %s x", id)
		late.position("!resync")
		for _, want := range []string{"b1", "c1", "d1"} {
			late.expect("x", want)
		}
		for _, err := range []error{x.Delete("", []byte("x")), x.Delete("b", nil), hub.Topic(" ").Delete("b", []byte("x"))} {
			if err == nil {
				t.Error("an invalid deletion was accepted")
			}
		}
	})
}

// Members have an open connection. A subscriber gets the present members and each change, also when a client disappears.
func TestPresence(t *testing.T) {
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		hub := topic.New(app, topic.Settings{Keyed: true})
		room := hub.Topic("room")
		handler := websocket.New(websocket.Options{Message: func(c *websocket.Conn, m websocket.Message) {
			word, name, _ := strings.Cut(string(m.Data), " ")
			var err error
			switch {
			case word == "join":
				err = room.Join(c, name, []byte(name+" is here"), []byte(name+" is gone"))
			case word == "leave":
				room.Leave(c, name)
			case hub.Handle(c, m, allowAll):
				return
			}
			_ = c.Send(websocket.Text, fmt.Append(nil, word, " ", err))
		}})
		app.Get("/socket", func(r *dunlin.Request) dunlin.Response { return handler.Accept(r, nil) })
		addr := dunlintest.Serve(t, app)
		join := func(name string) *socket {
			s := dial(t, addr)
			s.say("join %s", name)
			if got := s.hear(); got != "join <nil>" {
				t.Fatal(got)
			}
			return s
		}
		anna := join("anna")
		watcher := dial(t, addr)
		watcher.say("!subscribe - room")
		watcher.position("!at")
		watcher.expect("room", "anna is here")
		bert := join("bert")
		watcher.expect("room", "bert is here")
		phone := join("bert")
		watcher.expect("room", "bert is here")
		_ = bert.Close() // the connection of his phone is still open
		reset(anna)
		watcher.expect("room", "anna is gone")
		if got := room.Members(); !slices.Equal(got, []string{"bert"}) {
			t.Errorf("members %v", got)
		}
		phone.say("leave bert")
		watcher.expect("room", "bert is gone")
		phone.say("leave bert")
		phone.hear()
		phone.hear()
		for i := range 65 {
			phone.say("join %d", i)
			want := "join <nil>"
			if i == 64 {
				want = "join " + topic.ErrTooMany.Error()
			}
			if got := phone.hear(); got != want {
				t.Fatalf("member %d: %s", i, got)
			}
		}
		reset(phone)
		within(t, "all members have left", func() bool { return len(room.Members()) == 0 })
	})
}

// reset closes the connection without a close frame.
func reset(s *socket) {
	_ = s.Conn.(*net.TCPConn).SetLinger(0)
	_ = s.Close()
}
