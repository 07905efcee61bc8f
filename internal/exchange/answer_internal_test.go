package exchange

import "testing"

func TestMetaPartsAreApart(t *testing.T) {
	for _, m := range []meta{0, ^meta(0)} {
		m.setKind(Abort)
		m.setStatus(599)
		m.setVersion(versionMask)
		if m.kind() != Abort || m.status() != 599 || m.version() != versionMask {
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
