package exchange

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

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

// AppendHeaders says what Headers yields, whatever replaces what.
func TestAppendHeadersAgainstHeaders(t *testing.T) {
	names := []string{"A", "B", "Content-Type", "X-Long-Name", "Vary"}
	random := rand.New(rand.NewPCG(1, 2))
	value := func() string { return strconv.Itoa(random.IntN(1000)) }
	block := func() *Block {
		b := new(Block)
		b.Init()
		for _, name := range names {
			for range random.IntN(3) {
				b.Add(name, value())
			}
		}
		return b
	}
	for range 2000 {
		a := Bare(200, Complete)
		if random.IntN(3) > 0 {
			a = Plain(200, block(), "")
		}
		for range random.IntN(5) {
			f := Field{Name: names[random.IntN(len(names))], Value: value(), Replace: random.IntN(2) == 0}
			if random.IntN(4) == 0 {
				f = Field{Block: block(), Replace: true}
			}
			var err error
			if a, err = a.Push(f); err != nil {
				t.Fatal(err)
			}
		}
		want := ""
		for name, value := range a.Headers {
			want += name + ": " + value + "\r\n"
		}
		if got := string(a.AppendHeaders(nil)); got != want {
			t.Fatalf("AppendHeaders:\n%s\nHeaders:\n%s", got, want)
		}
		for _, name := range append(names, "None") {
			if a.Lacks(name) && a.Has(name) {
				t.Fatalf("%s is both lacking and there", name)
			}
		}
	}
}
