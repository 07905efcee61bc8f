// Command chat serves chat rooms over WebSockets. It also serves the messages of a room as an event stream.
//
//	go run ./examples/chat
//
// Open http://127.0.0.1:3000/ in two windows. To run several processes with the same rooms and members, import store/redis for its
// URLs, and set DUNLIN_STORE and the address:
//
//	DUNLIN_STORE=redis://127.0.0.1:6379 go run ./examples/chat -addr 127.0.0.1:3001
package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"flag"
	"log"
	"os"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/store"
	"github.com/dunlinhttp/dunlin/topic"
	"github.com/dunlinhttp/dunlin/websocket"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:3000", "address")
	flag.Parse()
	ctx := context.Background()
	st, err := store.Open(os.Getenv("DUNLIN_STORE"))
	if err != nil {
		log.Fatal(err)
	}
	app, err := newApp(ctx, dunlin.Config{Addr: *addr}, st)
	if err != nil {
		log.Fatal(err)
	}
	if err := app.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

//go:embed page.html
var page string

// newApp returns the app. Processes with the same store share rooms and members until ctx ends.
func newApp(ctx context.Context, config dunlin.Config, st store.Store) (*dunlin.App, error) {
	app := dunlin.New(config)
	chat := &chat{topic.New(app, topic.Settings{})}
	chat.hub.Set("members/", topic.Settings{Keyed: true})
	if err := chat.hub.Share(ctx, st, "chat"); err != nil {
		return nil, err
	}
	sockets := websocket.New(websocket.Options{Open: chat.join, Message: chat.say, MaxMessage: 4 << 10, MaxRate: 10})
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.HTML(page) })
	app.Get("/topics.js", func(*dunlin.Request) dunlin.Response {
		return dunlin.Bytes("text/javascript; charset=utf-8", []byte(topic.Script))
	})
	app.Get("/rooms/{room}", func(r *dunlin.Request) dunlin.Response {
		return sockets.Accept(r, guest{r.Param("room"), cmp.Or(r.Query("name"), "somebody")})
	})
	app.Get("/rooms/{room}/events", func(r *dunlin.Request) dunlin.Response {
		return topic.Events(r, chat.hub.Topic(r.Param("room")))
	})
	return app, nil
}

// A chat has two topics for each room: its messages and its members.
type chat struct{ hub *topic.Hub }

// A guest is the value of a connection, see websocket.Conn.Value.
type guest struct{ room, name string }

// join makes the guest a member of the room while the connection is open.
func (c *chat) join(conn *websocket.Conn) {
	g := conn.Value().(guest)
	err := c.hub.Topic("members/"+g.room).Join(conn, g.name, []byte("+"+g.name), []byte("-"+g.name))
	if err != nil {
		conn.Close(websocket.TryAgainLater, err.Error())
	}
}

// say publishes a message in the room of its sender, unless the message is a command of the JavaScript client (topic.Script). A
// member that reads slowly gets the messages later, or a notice that it has missed some.
func (c *chat) say(from *websocket.Conn, m websocket.Message) {
	if c.hub.Handle(from, m, allow) {
		return
	}
	if err := c.hub.Topic(from.Value().(guest).room).Publish(m.Data); err != nil {
		_ = from.Send(websocket.Text, []byte(err.Error()))
	}
}

// allow permits only the topics of the connection's room.
func allow(c *websocket.Conn, name string) error {
	if strings.TrimPrefix(name, "members/") != c.Value().(guest).room {
		return errors.New("that is not your room")
	}
	return nil
}
