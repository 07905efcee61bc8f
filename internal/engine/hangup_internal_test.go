//go:build linux

package engine

import "testing"

// An eviction cancels the present request. If the connection is spared, its next requests are not canceled.
func TestRequestAfterEvictionIsNotCanceled(t *testing.T) {
	var hook hangupHook
	var first, second int
	one, two := &hangup{f: func() { first++ }}, &hangup{f: func() { second++ }}
	hook.set(one)
	hook.interrupt(one)
	if hook.interrupt(one); first != 1 || hook.waits() {
		t.Fatalf("the first function was called %d times", first)
	}
	hook.set(two)
	hook.interrupt(one) // an eviction of the earlier request
	if second != 0 {
		t.Fatal("the function of the next request was called")
	}
	hook.fire()
	if hook.interrupt(two); first != 1 || second != 1 {
		t.Fatalf("the functions were called %d and %d times", first, second)
	}
	hook.set(one)
	if first != 2 {
		t.Fatal("the event has happened, and a function set afterwards was not called")
	}
}
