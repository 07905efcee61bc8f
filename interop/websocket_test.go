package interop_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/middleware"
)

const message = 1 << 20 // bytes of a large WebSocket message

// echo is a standard handler that returns each message, until the client requests the end.
func echo(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"echo"}})
	if err != nil {
		return // Accept has answered
	}
	defer c.CloseNow()
	c.SetReadLimit(message)
	for {
		kind, data, err := c.Read(r.Context())
		if err != nil {
			return
		}
		if string(data) == "end" {
			_ = c.Close(websocket.StatusPolicyViolation, "as you wish")
			return
		}
		if err := c.Write(r.Context(), kind, data); err != nil {
			return
		}
	}
}

func TestWebSocket(t *testing.T) {
	var enter chan chan struct{}
	var taken func() bool // reports whether a loop was taken over from a blocked handler
	onEngines(t, func(_ *testing.T, app *dunlin.App) {
		taken = func() bool { return app.Stats().Actions.Takeovers > 0 }
		enter = make(chan chan struct{}, 1)
		app.Mount("/echo", http.HandlerFunc(echo))
		app.Mount("/blocked", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			proceed := make(chan struct{})
			enter <- proceed
			<-proceed
			echo(w, r)
		}))
		g := app.Group("/behind")
		g.UseStd(func(next http.Handler) http.Handler { return next })
		g.HandleStd("GET", "", http.HandlerFunc(echo))
		app.Get("/hello", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello") })
	}, func(t *testing.T, url string) {
		t.Run("at once", func(t *testing.T) { talk(t, url+"/echo") })
		t.Run("JSON in turn", func(t *testing.T) { exchangeJSON(t, url+"/echo") })
		t.Run("behind standard middleware", func(t *testing.T) { talk(t, url+"/behind") })
		t.Run("after blocking", func(t *testing.T) {
			go func() {
				proceed := <-enter
				defer close(proceed)
				onLoop := strings.Contains(t.Name(), "/loop/")
				for limit := time.Now().Add(patience); onLoop && !taken(); runtime.Gosched() {
					if time.Now().After(limit) {
						t.Error("the loop was not taken over from the handler")
						return
					}
				}
				if resp, err := http.Get(url + "/hello"); err != nil {
					t.Error(err)
				} else {
					_ = resp.Body.Close()
				}
			}()
			talk(t, url+"/blocked")
		})
		t.Run("not a WebSocket", func(t *testing.T) {
			if resp, _ := ask(t, "GET", url+"/echo", ""); resp.StatusCode != http.StatusUpgradeRequired {
				t.Errorf("got %d", resp.StatusCode)
			}
		})
		t.Run("foreign origin", func(t *testing.T) {
			resp, _ := ask(t, "GET", url+"/echo", "", "Connection", "Upgrade", "Upgrade", "websocket", "Origin", "https://bad.example",
				"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
			if resp.StatusCode != http.StatusForbidden {
				t.Errorf("got %d", resp.StatusCode)
			}
		})
	})
}

// chat answers the messages of a WebSocket until its client leaves, or the server is about to end.
func chat(app *dunlin.App) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil) // pages of other origins are refused, unless its options name them
		if err != nil {
			return // Accept has answered
		}
		defer c.CloseNow()
		c.SetReadLimit(64 << 10)
		ctx, leave := context.WithCancel(r.Context())
		defer leave()
		go func() {
			select {
			case <-app.Draining():
				_ = c.Close(websocket.StatusGoingAway, "the server is about to end")
			case <-ctx.Done():
			}
		}()
		for {
			kind, text, err := c.Read(ctx)
			if err != nil {
				return // the client has gone, or Close was called
			}
			if err := c.Write(ctx, kind, append([]byte("you said: "), text...)); err != nil {
				return
			}
		}
	}
}

// The WebSocket of a library passes middleware of all kinds, outlasts all timeouts, and is notified when the server shuts down.
func TestWebSocketOfALibrary(t *testing.T) {
	config := dunlin.Config{Timeouts: dunlin.Timeouts{Action: time.Minute}, Logger: slog.New(slog.DiscardHandler)}
	dunlintest.OnEngines(t, config, func(t *testing.T, app *dunlin.App) {
		app.Use(middleware.Compress(middleware.CompressConfig{}), middleware.CrossOrigin())
		app.HandleStd("GET", "/chat", chat(app))
		addr := dunlintest.Serve(t, app)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()

		header := http.Header{"Origin": {"https://evil.example"}}
		if _, resp, err := websocket.Dial(ctx, "ws://"+addr+"/chat", &websocket.DialOptions{HTTPHeader: header}); err == nil || resp == nil || resp.StatusCode != 403 {
			t.Errorf("page of another origin: got %v, %v", resp, err)
		}
		c, _, err := websocket.Dial(ctx, "ws://"+addr+"/chat", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		if err := c.Write(ctx, websocket.MessageText, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, text, err := c.Read(ctx); err != nil || string(text) != "you said: hello" {
			t.Errorf("got %s, %v", text, err)
		}
		ended := make(chan error, 1)
		go func() { ended <- app.Shutdown(ctx) }()
		if _, _, err := c.Read(ctx); websocket.CloseStatus(err) != websocket.StatusGoingAway {
			t.Errorf("at the end: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

// exchangeJSON behaves like the client of coder/websocket's echo example.
func exchangeJSON(t *testing.T, url string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{Subprotocols: []string{"echo"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	for i := range 5 {
		if err := wsjson.Write(ctx, c, map[string]int{"i": i}); err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		if err := wsjson.Read(ctx, c, &got); err != nil || got["i"] != i {
			t.Fatalf("sent %d, got %v, %v", i, got, err)
		}
	}
	if err := c.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Error(err)
	}
}

// talk runs a conversation with an echo server by the client of coder/websocket.
func talk(t *testing.T, url string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dial := func() *websocket.Conn {
		c, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{Subprotocols: []string{"echo"}})
		if err != nil {
			t.Fatal(err)
		}
		c.SetReadLimit(message)
		return c
	}
	c := dial()
	defer c.CloseNow()
	if c.Subprotocol() != "echo" {
		t.Errorf("subprotocol %q", c.Subprotocol())
	}
	for _, m := range []struct {
		kind websocket.MessageType
		data []byte
	}{
		{websocket.MessageText, []byte("hello")},
		{websocket.MessageBinary, bytes.Repeat([]byte("0123456789abcdef"), message/16)},
		{websocket.MessageText, []byte(strings.Repeat("é", 40_000))},
		{websocket.MessageBinary, nil},
	} {
		if err := c.Write(ctx, m.kind, m.data); err != nil {
			t.Fatal(err)
		}
		kind, data, err := c.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if kind != m.kind || !bytes.Equal(data, m.data) {
			t.Errorf("sent %v of %d bytes, got %v of %d bytes", m.kind, len(m.data), kind, len(data))
		}
	}
	if err := c.Write(ctx, websocket.MessageText, []byte("end")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Read(ctx); websocket.CloseStatus(err) != websocket.StatusPolicyViolation || !strings.Contains(err.Error(), "as you wish") {
		t.Errorf("got close error %v", err)
	}
	t.Run("closed by the client", func(t *testing.T) {
		if strings.HasSuffix(url, "/blocked") {
			return
		}
		if err := dial().Close(websocket.StatusNormalClosure, "bye"); err != nil {
			t.Error(err) // the server did not answer the close frame
		}
	})
}
