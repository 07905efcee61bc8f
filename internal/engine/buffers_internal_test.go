//go:build linux

package engine

import (
	"math/bits"
	"testing"
	"unsafe"

	"github.com/dunlinhttp/dunlin/internal/memory"
)

// A small buffer and its memory are one allocation, which uses its size class of the runtime entirely.
func TestSmallBufferIsOneAllocation(t *testing.T) {
	if size := unsafe.Sizeof(buffer{}); bits.UintSize == 64 && size != bufferSize {
		t.Errorf("a buffer is %d bytes, not %d", size, bufferSize)
	}
	var pool bufferPool
	pool.init(memory.New(0), 64<<10)
	for class, size := range classSizes {
		want := 1.0
		if class >= smallClasses {
			want = 2
		}
		var buf *buffer
		if n := testing.AllocsPerRun(10, func() { buf = pool.scratch(size) }); n != want {
			t.Errorf("a buffer of %d bytes takes %v allocations, want %v", size, n, want)
		}
		if at, same := classFor(cap(buf.b)); at != class || same != size || len(buf.b) != 0 {
			t.Errorf("a buffer of %d bytes has room for %d of %d", size, cap(buf.b)-len(buf.b), cap(buf.b))
		}
	}
}
