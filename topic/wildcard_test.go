package topic_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/topic"
)

// A wildcard has the messages of all topics below a prefix, with the names of their topics. Its subscribers resume.
func TestWildcards(t *testing.T) {
	onEngines(t, topic.Settings{}, func(t *testing.T, hub *topic.Hub, open func() *socket) {
		hub.Set("orders/", topic.Settings{Wildcards: true, MaxMessages: 4})
		hub.Set("orders/prices", topic.Settings{Keyed: true})
		all, one := open(), open()
		all.say("!subscribe - orders/* orders/eu/*")
		all.position("!at")
		one.say("!subscribe - orders/1")
		one.position("!at")
		publish(t, hub.Topic("orders/1"), "a")
		publish(t, hub.Topic("orders"), "not below")
		publish(t, hub.Topic("orders/eu/2"), "b")
		put(t, hub.Topic("orders/prices"), "key", "c")
		one.expect("orders/1", "a")
		all.expect("orders/1", "a")
		id := all.expect("orders/eu/2", "b")
		if again := all.expect("orders/eu/2", "b"); again != id { // by both wildcards
			t.Errorf("IDs %s and %s", id, again)
		}
		all.expect("orders/prices", "c")
		_ = all.Close()
		publish(t, hub.Topic("orders/1"), "d")
		again := open()
		again.say("!subscribe %s orders/*", id)
		again.position("!at")
		again.expect("orders/prices", "c")
		again.expect("orders/1", "d")
		publish(t, hub.Topic("orders/1"), "1", "2", "3", "4", "5")
		late := open()
		late.say("!subscribe %s orders/*", id)
		late.position("!resync")
		for _, name := range []string{"*", "other/*"} {
			late.say("!subscribe - %s", name)
			if got := late.hear(); !strings.HasPrefix(got, "!refused "+name+"\n"+topic.ErrName.Error()) {
				t.Errorf("%s: %q", name, got)
			}
		}
		if err := hub.Topic("orders/*").Publish([]byte("x")); err != topic.ErrName {
			t.Errorf("a message to a wildcard: %v", err)
		}
	})
}

// A client that resumes with an ID from before the first subscription to its wildcard has missed messages.
func TestNewWildcardLacksTheOldMessages(t *testing.T) {
	onEngines(t, topic.Settings{Wildcards: true}, func(t *testing.T, hub *topic.Hub, open func() *socket) {
		s := open()
		s.say("!subscribe - a/1")
		id := s.position("!at")
		publish(t, hub.Topic("a/1"), "x")
		s.expect("a/1", "x")
		s.say("!subscribe %s *", id)
		s.position("!resync")
		for i := range 3 {
			publish(t, hub.Topic(fmt.Sprint("b/", i)), "y")
			s.expect(fmt.Sprint("b/", i), "y")
		}
	})
}

// Dropping the log of a wildcard does not affect other topics.
func TestEndOfWildcard(t *testing.T) {
	onEngines(t, topic.Settings{Wildcards: true}, func(t *testing.T, hub *topic.Hub, open func() *socket) {
		s := open()
		s.say("!subscribe - a/1")
		id := s.position("!at")
		publish(t, hub.Topic("b"), "1", "2")
		s.say("!subscribe - c/*")
		s.position("!at")
		s.say("!unsubscribe a/1 c/*") // both are dropped, since they are empty
		s.say("!subscribe %s a/1", id)
		s.position("!at")
	})
}
