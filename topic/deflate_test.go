package topic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/dunlintest"
	"github.com/dunlinhttp/dunlin/topic"
)

// Clients with and without compression get the same messages of a topic. Short messages are not compressed.
func TestCompressedMessages(t *testing.T) {
	dunlintest.OnEngines(t, dunlin.Config{}, func(t *testing.T, app *dunlin.App) {
		hub := topic.New(app, topic.Settings{})
		addr := serve(t, app, hub)
		deflate, plain := dialDeflate(t, addr), dial(t, addr)
		for _, s := range []*socket{deflate, plain} {
			s.say("!subscribe - x")
			s.position("!at")
		}
		publish(t, hub.Topic("x"), "short")
		for _, s := range []*socket{deflate, plain} {
			s.expect("x", "short")
		}
		if deflate.deflated != 0 {
			t.Errorf("a short message was compressed to %d bytes", deflate.deflated)
		}
		sent := 0
		for i := range 20 {
			m := strings.Repeat(fmt.Sprint("message ", i, " "), 100*(i+1))
			publish(t, hub.Topic("x"), m)
			sent += len(m)
			for _, s := range []*socket{deflate, plain} {
				s.expect("x", m)
			}
		}
		if n := deflate.deflated; n == 0 || n > sent/10 {
			t.Errorf("%d bytes were compressed to %d", sent, n)
		}
	})
}
