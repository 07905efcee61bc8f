package websocket_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/websocket"
)

// An echo service by event functions. The Options serve all connections.
func ExampleHandler() {
	echo := websocket.New(websocket.Options{
		Message: func(c *websocket.Conn, m websocket.Message) {
			if err := c.Send(m.Kind, m.Data); err == websocket.ErrFull {
				c.Close(websocket.PolicyViolation, "you do not read")
			}
		},
	})
	app := dunlin.New(dunlin.Config{})
	app.Get("/echo", func(r *dunlin.Request) dunlin.Response { return echo.Accept(r, nil) })
	fmt.Println(say(app, "/echo", "hello"))
	// Output: hello
}

// With Serve a connection has a goroutine, which reads and writes.
func ExampleConn_Read() {
	shout := websocket.New(websocket.Options{
		Serve: func(ctx context.Context, c *websocket.Conn) error {
			for {
				m, err := c.Read(ctx)
				if err != nil {
					return err
				}
				if err := c.Write(ctx, m.Kind, []byte(strings.ToUpper(string(m.Data)))); err != nil {
					return err
				}
			}
		},
	})
	app := dunlin.New(dunlin.Config{})
	app.Get("/shout", func(r *dunlin.Request) dunlin.Response { return shout.Accept(r, nil) })
	fmt.Println(say(app, "/shout", "hello"))
	// Output: HELLO
}

// say serves app, sends it a message as a client, and returns the reply.
func say(app *dunlin.App, path, message string) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = app.Serve(ln) }()
	defer func() { _ = app.Shutdown(context.Background()) }()
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n%s", path, key, frame(text, message)+bye)
	var got strings.Builder
	for buf := make([]byte, 512); ; {
		n, err := conn.Read(buf)
		got.Write(buf[:n])
		if err != nil {
			break
		}
	}
	_, frames, _ := strings.Cut(got.String(), "\r\n\r\n")
	return frames[2 : 2+frames[1]]
}

// A token that the client sends in a message replaces the one of the handshake, without a new connection.
func ExampleConn_ExpireAt() {
	type token struct{ Expires time.Time }
	verify := func(text string) (token, error) { return token{}, nil }
	_ = websocket.New(websocket.Options{
		Open: func(c *websocket.Conn) { c.ExpireAt(c.Value().(token).Expires) },
		Message: func(c *websocket.Conn, m websocket.Message) {
			if text, ok := strings.CutPrefix(string(m.Data), "token "); ok {
				if fresh, err := verify(text); err == nil {
					c.ExpireAt(fresh.Expires)
				}
			}
		},
	})
	// Output:
}
