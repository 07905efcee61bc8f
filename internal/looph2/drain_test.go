package looph2_test

import (
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// A client may send a frame at the very moment at which the server ends a connection, such as WINDOW_UPDATE for the data it has
// just read. The server does not answer it with a reset of the connection, for which the client would drop unread data.
func TestEndedConnectionsAreNotReset(t *testing.T) {
	onLoop(t)
	configs := map[string]dunlin.Config{
		"enough requests": {Engine: dunlin.EngineLoop, Limits: dunlin.Limits{MaxRequestsPerConnection: 1}},
		"idle":            {Engine: dunlin.EngineLoop, Timeouts: dunlin.Timeouts{Idle: time.Second}},
	}
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			s := startH2(t, config, func(app *dunlin.App) {
				app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello") })
			})
			for !notReset(t, s) {
			}
		})
	}
}

// notReset reports whether a client that continues to send gets no reset. It is also false if the client was too slow: the
// server waits for 2 s from the end of the connection, which is not before the connection has begun.
func notReset(t *testing.T, s *h2Server) bool {
	t.Helper()
	began := time.Now()
	c := newH2Conn(t, s.addr)
	_ = c.frame(frameSettings, 1, 0)
	c.request(1, true, "GET", "/")
	c.wantFrame(frameGoAway)
	c.wantEnd()
	var err error
	for range 3 { // the answer to the first would be a reset, which the next would meet
		if err = c.frame(8, 0, 0, 0, 0, 0, 1); err != nil {
			break
		}
	}
	if err != nil && time.Since(began) < 1900*time.Millisecond {
		t.Fatalf("after the end: %v", err)
	}
	_ = c.Close()
	return err == nil
}
