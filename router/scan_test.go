package router

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"testing"
)

// FuzzScan compares the scanners with package strings.
func FuzzScan(f *testing.F) {
	f.Add("/a/bb/cccccccc/ddddddddd/eeeeeeeeeeeeeeeeee", 1)
	f.Add("\x2e\x30/\xaf\x2f", 0)
	f.Add("", 0)
	f.Fuzz(func(t *testing.T, path string, start int) {
		if start < 0 || start > len(path) {
			return
		}
		want, _, _ := strings.Cut(path[start:], "/")
		end, first, hash := scanSegment(path, start)
		if path[start:end] != want || segmentEnd(path, start) != end {
			t.Fatalf("got segment %q and end %d, want %q", path[start:end], segmentEnd(path, start), want)
		}
		// The same segment at another position has the same result.
		if _, f, h := scanSegment("/some/"+want+"/more", len("/some/")); f != first || h != hash {
			t.Fatal("the hash depends on the text around the segment")
		}
		for i := range 8 {
			var c byte
			if i < len(want) {
				c = want[i]
			}
			if byte(first>>(8*i)) != c {
				t.Fatalf("got first %#x for %q", first, want)
			}
		}
		if got := unscan(first, hash, len(want)); len(want) <= scanExact && got != want {
			t.Fatalf("first and hash are the same for %q and %q", got, want)
		}
	})
}

// unscan returns the only segment of n bytes with the given first and hash, if n is at most scanExact.
func unscan(first, hash uint64, n int) string {
	inverse := uint64(1) // inverse of hashFactor, by Newton's method: each step doubles the number of correct bits
	for range 7 {
		inverse *= 2 - hashFactor*inverse
	}
	text := binary.LittleEndian.AppendUint64(nil, first)
	if n == 16 {
		hash = bits.RotateLeft64(hash*inverse, -29) // a third word, 0, was mixed in
	}
	second := hash*inverse ^ bits.RotateLeft64(first, 29)
	text = binary.LittleEndian.AppendUint64(text, second)
	return string(text[:min(n, len(text))])
}
