package redis

import (
	"fmt"
	"testing"
)

// The slots agree with the specification of Redis Cluster.
func TestSlots(t *testing.T) {
	for key, want := range map[string]uint16{
		"": 0, "123456789": 12739, "foo": 12182, "{foo}.bar": 12182, "x{foo}{bar}": 12182, "foo{}{bar}": slotOf("foo{}{bar}"), "a{b": slotOf("a{b"),
	} {
		if got := slotOf(key); got != want {
			t.Errorf("the slot of %q is %d, want %d", key, got, want)
		}
	}
	if slotOf("foo{}{bar}") == slotOf("bar") {
		t.Error("empty braces are no tag")
	}
}

// Keys with the same text in braces are spread over the slots: a client that chooses a part of a key does not choose a node.
func TestBracesDoNotChooseSlot(t *testing.T) {
	s := &redisStore{prefix: "dunlin:"}
	for _, number := range []bool{false, true} {
		seen := map[uint16]bool{}
		for i := range 100 {
			seen[slotOf(s.redisKey(fmt.Sprint("rate:default:{a}", i), number))] = true
		}
		if len(seen) < 90 {
			t.Errorf("100 keys with the same braces are in %d slots", len(seen))
		}
		if s.redisKey("{a}", number) == s.redisKey("{a}{a}", number) || s.redisKey("plain", number) == s.redisKey("{plain}", number) {
			t.Error("two keys are one")
		}
	}
	if own := (&redisStore{prefix: "{shop}:"}); slotOf(own.redisKey("{a}1", true)) != slotOf(own.redisKey("b", false)) {
		t.Error("a prefix with braces does not choose the slot")
	}
}
