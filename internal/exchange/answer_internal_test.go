package exchange

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
)

func TestMetaPartsDoNotOverlap(t *testing.T) {
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

// AppendHeaders appends the same fields as Headers yields, with any combination of replacements.
func TestAppendHeadersAgainstHeaders(t *testing.T) {
	names := []string{"A", "B", "Content-Type", "X-Long-Name", "Vary", "Date"}
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
	id, another := idBlock("X-Id"), idBlock("X-Other")
	rendered := 0
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
		if random.IntN(3) == 0 && !a.Has("X-Id") {
			n, s := Identity{number: Number(1 + random.Int64N(1<<49-1))}, new(Strings)
			if random.IntN(2) == 0 {
				n = Named("text-" + value())
			}
			var err error
			if with, ok := a.Identify(id, &n, s, nil); ok {
				a = with
			} else if n.text == "" {
				t.Fatal("the number is not taken")
			} else if a, err = a.Push(Field{Name: "X-Id", Value: n.text, Replace: true}); err != nil {
				t.Fatal(err)
			}
			if random.IntN(2) == 0 {
				if a, err = a.Push(Field{Name: names[random.IntN(len(names))], Value: value(), Replace: true}); err != nil {
					t.Fatal(err)
				}
			}
			if other, ok := a.Identify(another, &n, s, nil); ok && random.IntN(2) == 0 {
				if other.First("X-Other") != n.String() {
					t.Fatalf("the other is %q, want %q", other.First("X-Other"), n)
				}
				a = other
			}
			if a.Own() != nil && random.IntN(2) == 0 {
				var ok bool
				if a, ok = a.Branch(); !ok {
					t.Fatal("no branch")
				}
			}
			if a.First("x-id") != n.String() {
				t.Fatalf("the identifier is %q, want %q", a.First("X-Id"), n)
			}
			h := http.Header{}
			if a.SetIn(h, new(Strings)); h.Get("X-Id") != n.String() {
				t.Fatalf("a header map says %q, want %q", h, n)
			}
		}
		want := ""
		for name, value := range a.Headers {
			want += name + ": " + value + "\r\n"
		}
		got := string(a.AppendHeaders(nil))
		if got != want {
			t.Fatalf("AppendHeaders:\n%s\nHeaders:\n%s", got, want)
		}
		if base, all := a.Rendered(); all {
			lines := ""
			if base != nil {
				lines = string(a.AppendBase(nil))
			}
			if lines != want || a.Dated() {
				t.Fatalf("Rendered, Date among it %v:\n%s\nHeaders:\n%s", a.Dated(), lines, want)
			}
			rendered++
		}
		if base := a.Base(); base != nil && base.HasNumber() && len(a.Fields()) == 0 {
			if out := a.AppendBase([]byte("before")); string(out) != "before"+want {
				t.Fatalf("AppendBase: got %s\nHeaders:\n%s", out, want)
			}
		}
		for _, name := range append(names, "None") {
			if a.Lacks(name) && a.Has(name) {
				t.Fatalf("%s is both lacking and there", name)
			}
		}
	}
	if rendered == 0 {
		t.Error("no answer has its lines ready")
	}
}
