package redis

import "testing"

// The slots are those of the specification of Redis Cluster.
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
