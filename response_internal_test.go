package dunlin

import (
	"reflect"
	"testing"
)

// The compiler keeps a struct of up to four words in up to four fields in
// registers; returning and modifying responses depends on it for its speed.
func TestResponseFitsRegisters(t *testing.T) {
	r := reflect.TypeFor[Response]()
	word := reflect.TypeFor[uintptr]().Size()
	if want := 3*word + 8; r.Size() > want || r.NumField() > 4 {
		t.Errorf("a Response has %d bytes in %d fields, want at most %d in 4", r.Size(), r.NumField(), want)
	}
}

func TestMetaPartsAreApart(t *testing.T) {
	for _, m := range []meta{0, ^meta(0)} {
		m.setKind(kindAbort)
		m.setStatus(599)
		m.setVersion(versionMask)
		if m.kind() != kindAbort || m.status() != 599 || m.version() != versionMask {
			t.Errorf("%x: kind %d, status %d, version %x", uint64(m), m.kind(), m.status(), m.version())
		}
		m.setKind(0)
		m.setStatus(0)
		if m.version() != versionMask || m.kind() != 0 || m.status() != 0 {
			t.Errorf("%x: kind %d, status %d, version %x", uint64(m), m.kind(), m.status(), m.version())
		}
		m.setVersion(0)
		if m.version() != 0 || m.fields() != 0 {
			t.Errorf("%x: version %x", uint64(m), m.version())
		}
	}
	if v := version(versionMask); v.next() != 0 || version(7*generationStep+3).next() != 8*generationStep {
		t.Errorf("after %x comes %x", v, v.next())
	}
}
