//go:build linux

package dunlin

import (
	"testing"
	"unsafe"

	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// Every open stream has an exchange of its own; beyond this size, with what the
// runtime puts in front of it, the next class of memory is an eighth larger.
func TestExchangeFitsItsClass(t *testing.T) {
	if invariants.Enabled {
		return // a Request has more in builds with the race detector
	}
	if n := unsafe.Sizeof(loopExchange{}); n > 1016 {
		t.Errorf("an exchange has %d bytes, more than 1,016", n)
	}
}
