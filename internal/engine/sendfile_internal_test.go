//go:build linux

package engine

import (
	"os"
	"path/filepath"
	"testing"
)

// Data in memory is sent in pieces of a bounded length, regardless of the number of bytes that the kernel accepts in a call.
func TestMemoryIsSentInBoundedPieces(t *testing.T) {
	const size = 3*inMemory + 1
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if !resident(f.Fd(), 0) {
		t.Skip("the file system does not report which pages are in memory")
	}
	for _, took := range []int64{inMemory, 65_483, 300_000, 999} { // maximum bytes in a call
		var seen seenInMemory
		at := int64(size - 2*inMemory)
		for at < size {
			n := seen.piece(f.Fd(), at, size-at)
			if n <= 0 || n > inMemory || n > size-at || at < seen.from || at+n > seen.to {
				t.Fatalf("%d bytes at a time: a piece of %d at %d of %d, of which %v were seen", took, n, at, int64(size), seen)
			}
			at += min(n, took)
		}
	}
	var seen seenInMemory
	if n := seen.piece(f.Fd(), size-10, 20); n != 0 {
		t.Errorf("%d bytes may be sent at the end of a file that is too short for them", n)
	}
	if n := seen.piece(f.Fd(), 10, 100); n != 100 {
		t.Errorf("%d of 100 bytes", n)
	}
	if n := seen.piece(f.Fd(), 3*inMemory, size); n != 0 {
		t.Errorf("%d bytes in memory, beyond the known pages and the end of the file", n)
	}
}
