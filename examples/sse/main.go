// Command sse sends the time each second as server-sent events (SSE).
//
//	go run ./examples/sse
//	curl -N 127.0.0.1:3000/time
package main

import (
	"context"
	"log"
	"time"

	"github.com/dunlinhttp/dunlin"
)

func main() {
	if err := newApp(dunlin.Config{Addr: "127.0.0.1:3000"}).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func newApp(config dunlin.Config) *dunlin.App {
	app := dunlin.New(config)
	app.Get("/time", clock)
	return app
}

// clock sends events until Done is closed, because the client has disconnected or the server drains.
func clock(*dunlin.Request) dunlin.Response {
	return dunlin.SSE(func(events *dunlin.Events) error {
		second := time.NewTicker(time.Second)
		defer second.Stop()
		for now := time.Now(); ; {
			if err := events.Send(dunlin.Event{Type: "time", Data: now.Format(time.TimeOnly)}); err != nil {
				return err
			}
			select {
			case now = <-second.C:
			case <-events.Done():
				return nil
			}
		}
	})
}
