// Command background removes expired entries each minute, until the service drains.
//
//	go run ./examples/background
package main

import (
	"context"
	"log"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// A cache has entries with the time at which they expire.
type cache struct {
	mu      sync.Mutex
	entries map[string]time.Time
}

func (c *cache) put(key string, expires time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[key] = expires
}

func (c *cache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

// clean removes expired entries until ctx ends. Then it returns soon, because App.Run waits for it when the service drains.
func (c *cache) clean(ctx context.Context, every time.Duration) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			c.mu.Lock()
			for key, expires := range c.entries {
				if expires.Before(now) {
					delete(c.entries, key)
				}
			}
			c.mu.Unlock()
		case <-ctx.Done():
			return nil
		}
	}
}

func main() {
	c := &cache{entries: map[string]time.Time{}}
	if err := newApp(dunlin.Config{Addr: "127.0.0.1:3000"}, c, time.Minute).Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func newApp(config dunlin.Config, c *cache, every time.Duration) *dunlin.App {
	app := dunlin.New(config)
	app.Put("/entries/{key}", func(r *dunlin.Request) dunlin.Response {
		c.put(r.Param("key"), time.Now().Add(time.Hour))
		return dunlin.NoContent()
	})
	// The worker starts when the app serves. A panic is logged and counted in app.Stats().Workers, and does not end the service.
	app.Go("clean", func(ctx context.Context) error { return c.clean(ctx, every) })
	return app
}
