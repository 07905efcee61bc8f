//go:build linux

package loophttp

import (
	"testing"
	"unsafe"
)

// Every open stream has a wire and a call of its own: beyond these sizes the next class of
// memory is an eighth larger.
func TestWireFitsItsClass(t *testing.T) {
	if n := unsafe.Sizeof(wire{}); n > 512 {
		t.Errorf("a wire has %d bytes, more than 512", n)
	}
}
