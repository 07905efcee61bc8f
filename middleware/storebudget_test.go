package middleware_test

import (
	"context"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/ext"
	"github.com/dunlinhttp/dunlin/store"
)

// A memory store is charged to the budget of an app.
func TestStoreWithinAppBudget(t *testing.T) {
	onEngines(t, func(t *testing.T, app *dunlin.App, serve func() string) {
		app.Get("/", text("hello"))
		m := store.NewMemory(store.MemoryConfig{Budget: store.Within(ext.CacheBudget(app))})
		if _, err := m.Set(context.Background(), "key", make([]byte, 10_000), store.VersionAbsent, time.Minute); err != nil {
			t.Fatal(err)
		}
		exchangeRaw(t, serve(), "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") // the app has served a request: its budget is set
		if held := app.Stats().Memory.HeldFor["cache"]; held < 10_000 || held != m.Held() {
			t.Errorf("got %d bytes charged to the app, the store holds %d", held, m.Held())
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if held := app.Stats().Memory.HeldFor["cache"]; held != 0 {
			t.Errorf("got %d bytes charged for a closed store, want 0", held)
		}
	})
}
