package topic_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/topic"
	"github.com/dunlinhttp/dunlin/websocket"
)

func ExampleEvents() {
	app := dunlin.New(dunlin.Config{})
	hub := topic.New(app, topic.Settings{})
	app.Get("/orders/{id}/events", func(r *dunlin.Request) dunlin.Response {
		return topic.Events(r, hub.Topic("orders/"+r.Param("id")))
	})
	req, _ := http.NewRequest("GET", "http://shop.example/orders/42/events", nil)
	resp, err := dunlintest.NewClient(app).Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	lines.Scan() // the ID to resume from, before the first message
	_ = hub.Topic("orders/42").Publish([]byte(`{"state":"paid"}`))
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "data") {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			fmt.Println(name)
		}
	}
	fmt.Println(lines.Text())
	// Output:
	// orders/42
	// data: {"state":"paid"}
}

// A WebSocket whose client subscribes to topics by messages, such as the client topic.Script.
func ExampleHub_Handle() {
	app := dunlin.New(dunlin.Config{})
	hub := topic.New(app, topic.Settings{})
	allow := func(c *websocket.Conn, name string) error {
		if user := c.Value().(string); !strings.HasPrefix(name, "users/"+user+"/") {
			return fmt.Errorf("%s belongs to somebody else", name)
		}
		return nil
	}
	sockets := websocket.New(websocket.Options{Message: func(c *websocket.Conn, m websocket.Message) {
		if !hub.Handle(c, m, allow) {
			_ = c.Send(m.Kind, m.Data) // the service's own messages
		}
	}})
	app.Get("/socket", func(r *dunlin.Request) dunlin.Response { return sockets.Accept(r, "anna") })
}

// A keyed topic has the latest message of each key. New subscribers get these messages first.
func ExampleTopic_Put() {
	app := dunlin.New(dunlin.Config{})
	hub := topic.New(app, topic.Settings{})
	hub.Set("prices", topic.Settings{Keyed: true})
	prices := hub.Topic("prices")
	for _, price := range []string{"10", "11", "12"} {
		if err := prices.Put("apples", []byte(`{"apples":`+price+`}`)); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(hub.Stats().Messages)
	// Output: 3
}
