package hpack

import (
	"strings"
	"testing"
	"unsafe"
)

func TestSizesOfTypes(t *testing.T) {
	if got := unsafe.Sizeof(field{}); got != fieldSize {
		t.Errorf("got a field of %d bytes, want fieldSize %d", got, fieldSize)
	}
	if got := unsafe.Sizeof(entry{}); got != entrySize {
		t.Errorf("got an entry of %d bytes, want entrySize %d", got, entrySize)
	}
}

func TestNamesAreFound(t *testing.T) {
	for i := 1; i <= lastStatic; i++ {
		name := staticEntries[i].name
		for _, spelt := range []string{name, strings.ToUpper(name)} {
			if got := NameOf(spelt); staticEntries[got].name != name || got > Name(i) {
				t.Errorf("NameOf(%q) = %d", spelt, got)
			}
		}
		if got := NameOf(name + "x"); got != 0 {
			t.Errorf("NameOf(%q) = %d", name+"x", got)
		}
	}
}
