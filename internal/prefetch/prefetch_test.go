package prefetch_test

import (
	"bytes"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/prefetch"
)

func TestLines(t *testing.T) {
	for size, want := range map[uintptr]int{0: 1, 1: 2, 64: 2, 65: 3, 872: 15} {
		if got := prefetch.Lines(size); got != want {
			t.Errorf("%d bytes: %d lines, want %d", size, got, want)
		}
	}
}

// Any address will do, and memory stays what it is.
func TestNothingIsReadOrChanged(t *testing.T) {
	for _, address := range []uintptr{0, 1, 4096, ^uintptr(0) - 10, ^uintptr(0) / 2} {
		prefetch.At(address, 3)
	}
	v := new([1000]byte)
	for i := range v {
		v[i] = byte(i)
	}
	before := bytes.Clone(v[:])
	prefetch.Value(v)
	if !bytes.Equal(before, v[:]) {
		t.Error("it was changed")
	}
	if n := testing.AllocsPerRun(10, func() { prefetch.Value(v) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
