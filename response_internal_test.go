package dunlin

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// The compiler keeps a struct of up to four words in up to four fields in
// registers; returning and modifying responses depends on it for its speed.
func TestResponseFitsRegisters(t *testing.T) {
	r := reflect.TypeFor[Response]().Field(0).Type
	if reflect.TypeFor[Response]().NumField() != 1 {
		t.Fatal("a Response is more than its answer")
	}
	word := reflect.TypeFor[uintptr]().Size()
	if want := 3*word + 8; r.Size() > want || r.NumField() > 4 {
		t.Errorf("a Response has %d bytes in %d fields, want at most %d in 4", r.Size(), r.NumField(), want)
	}
}

// Every open stream has a Request of its own: beyond this size the next class of memory is an
// eighth larger.
func TestRequestFitsItsClass(t *testing.T) {
	if invariants.Enabled {
		return // a Request has more in builds with the race detector
	}
	if n := unsafe.Sizeof(Request{}); n > 512 {
		t.Errorf("a Request has %d bytes, more than 512", n)
	}
}
