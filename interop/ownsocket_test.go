package interop_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	coder "github.com/coder/websocket"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/websocket"
)

// TestOwnWebSocket talks to package websocket with the client of coder/websocket, with and without compression.
func TestWebSocketPackage(t *testing.T) {
	const most = 4 << 20
	byEvents := websocket.New(websocket.Options{
		MaxMessage: most, MaxPending: 2 * most, Compress: true, Subprotocols: []string{"echo"},
		Message: func(c *websocket.Conn, m websocket.Message) {
			if string(m.Data) == "end" {
				c.Close(websocket.PolicyViolation, "as you wish")
				return
			}
			_ = c.Send(m.Kind, m.Data) // a lost message fails the test
		},
	})
	byReading := websocket.New(websocket.Options{
		MaxMessage: most, MaxPending: 2 * most, Compress: true, Subprotocols: []string{"echo"},
		Serve: func(ctx context.Context, c *websocket.Conn) error {
			for {
				m, err := c.Read(ctx)
				switch {
				case err != nil:
					return err
				case string(m.Data) == "end":
					c.Close(websocket.PolicyViolation, "as you wish")
					return nil
				}
				if err := c.Write(ctx, m.Kind, m.Data); err != nil {
					return err
				}
			}
		},
	})
	onEngines(t, func(_ *testing.T, app *dunlin.App) {
		app.Get("/events", func(r *dunlin.Request) dunlin.Response { return byEvents.Accept(r, nil) })
		app.Get("/reading", func(r *dunlin.Request) dunlin.Response { return byReading.Accept(r, nil) })
	}, func(t *testing.T, url string) {
		for name, mode := range map[string]coder.CompressionMode{
			"no compression": coder.CompressionDisabled, "compression": coder.CompressionNoContextTakeover,
			"compression with context": coder.CompressionContextTakeover,
		} {
			for _, path := range []string{"/events", "/reading"} {
				t.Run(name+path, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					c, resp, err := coder.Dial(ctx, strings.Replace(url, "http", "ws", 1)+path, &coder.DialOptions{
						Subprotocols: []string{"echo"}, CompressionMode: mode, CompressionThreshold: 1,
					})
					if err != nil {
						t.Fatal(err)
					}
					defer c.CloseNow()
					if got := resp.Header.Get("Sec-WebSocket-Extensions"); (got != "") != (mode != coder.CompressionDisabled) || c.Subprotocol() != "echo" {
						t.Errorf("extensions %q, subprotocol %q", got, c.Subprotocol())
					}
					c.SetReadLimit(most)
					for _, text := range [][]byte{nil, []byte("hello"), []byte(strings.Repeat("äöü", 1000)), bytes.Repeat([]byte("0123456789"), most/10)} {
						if err := c.Write(ctx, coder.MessageText, text); err != nil {
							t.Fatal(err)
						}
						if kind, got, err := c.Read(ctx); err != nil || kind != coder.MessageText || !bytes.Equal(got, text) {
							t.Fatalf("sent %d bytes, got %d, error %v", len(text), len(got), err)
						}
					}
					if err := c.Write(ctx, coder.MessageBinary, []byte("end")); err != nil {
						t.Fatal(err)
					}
					if _, _, err := c.Read(ctx); coder.CloseStatus(err) != coder.StatusPolicyViolation {
						t.Errorf("end of the connection: %v", err)
					}
				})
			}
		}
		t.Run("by HTTP without upgrade", func(t *testing.T) {
			if resp, _ := ask(t, "GET", url+"/events", ""); resp.StatusCode != http.StatusUpgradeRequired {
				t.Errorf("got %d", resp.StatusCode)
			}
		})
	})
}
