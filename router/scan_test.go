package router

import (
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
			t.Fatalf("segment %q to %d, want %q", path[start:end], segmentEnd(path, start), want)
		}
		// The same segment elsewhere is the same.
		if _, f, h := scanSegment("/some/"+want+"/more", len("/some/")); f != first || h != hash {
			t.Fatal("hash depends on the surroundings")
		}
		for i := range 8 {
			var c byte
			if i < len(want) {
				c = want[i]
			}
			if byte(first>>(8*i)) != c {
				t.Fatalf("first is %#x for %q", first, want)
			}
		}
	})
}
