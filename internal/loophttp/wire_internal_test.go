//go:build linux

package loophttp

import (
	"testing"
	"unsafe"
)

// Every open stream has its own wire and call: beyond these sizes, the next size class of the allocator is an eighth larger.
func TestWireFitsSizeClass(t *testing.T) {
	if n := unsafe.Sizeof(wire{}); n > 512 {
		t.Errorf("a wire has %d bytes, more than 512", n)
	}
}
