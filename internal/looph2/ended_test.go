//go:build linux

package looph2_test

import (
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin"
)

// A stream that has ended is not reset when the time for its answer would be over.
func TestEndedStreamsAreNotReset(t *testing.T) {
	onBoth(t, func(t *testing.T, engine dunlin.Engine) {
		const timeout, together = 100 * time.Millisecond, 50
		s := startH2(t, dunlin.Config{Engine: engine, Timeouts: dunlin.Timeouts{Write: timeout}}, func(app *dunlin.App) {
			app.Get("/", func(*dunlin.Request) dunlin.Response { return dunlin.Text("hello") })
		})
		c := newH2Conn(t, s.addr)
		_ = c.frame(8, 0, 0, 0x3f, 0xff, 0, 0)       // the connection's window
		inTime, next := map[uint32]bool{}, uint32(1) // of streams that have ended
		for began := time.Now(); time.Since(began) < 5*timeout; {
			asked := time.Now()
			for range together {
				c.request(next, true, "GET", "/")
				next += 2
			}
			for left := together; left > 0; {
				kind, flags, stream, _ := c.read()
				switch early, over := inTime[stream]; {
				case kind != frameReset && (kind != frameData || flags&1 == 0):
				case early:
					t.Fatalf("stream %d of %d is reset after its end", stream/2, next/2)
				case !over: // otherwise the timeout expired while net/http ended the stream
					inTime[stream] = kind == frameData && time.Since(asked) < timeout // a slow client may be reset
					left--
				}
			}
		}
	})
}
