// Command chat has rooms whose members see each other's messages, over WebSockets.
//
//	go run ./examples/chat
//
// Open http://127.0.0.1:3000/ in two windows.
package main

import (
	"context"
	_ "embed"
	"log"
	"sync"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/websocket"
)

func main() {
	if err := newApp(dunlin.Config{Addr: "127.0.0.1:3000"}).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

//go:embed page.html
var page string

func newApp(config dunlin.Config) *dunlin.App {
	app := dunlin.New(config)
	chat := &rooms{members: map[string]map[*websocket.Conn]struct{}{}}
	sockets := websocket.New(websocket.Options{Open: chat.enter, Message: chat.say, Close: chat.leave, MaxMessage: 4 << 10, MaxRate: 10})
	app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.HTML(page) })
	app.Get("/rooms/{room}", func(r *dunlin.Request) dunlin.Response {
		return sockets.Accept(r, r.Param("room"))
	})
	return app
}

// rooms has the open connections by room. The room of a connection is its value.
type rooms struct {
	mu      sync.Mutex
	members map[string]map[*websocket.Conn]struct{}
}

func (r *rooms) enter(c *websocket.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	room := c.Value().(string)
	if r.members[room] == nil {
		r.members[room] = map[*websocket.Conn]struct{}{}
	}
	r.members[room][c] = struct{}{}
}

// say passes a message to all members of the room. Send does not wait: a member that does not read misses messages.
func (r *rooms) say(from *websocket.Conn, m websocket.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.members[from.Value().(string)] {
		_ = c.Send(websocket.Text, m.Data)
	}
}

func (r *rooms) leave(c *websocket.Conn, _ websocket.End) {
	r.mu.Lock()
	defer r.mu.Unlock()
	room := c.Value().(string)
	delete(r.members[room], c)
	if len(r.members[room]) == 0 {
		delete(r.members, room)
	}
}
