package flame_test

import (
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/dunlinhttp/dunlin/bench/internal/flame"
)

// profileOf makes a profile of one type from stacks, callers first, where "a+b" is b inlined into a.
func profileOf(stacks map[string]int64) *profile.Profile {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}}
	for stack, value := range stacks {
		sample := &profile.Sample{Value: []int64{value}}
		for _, frame := range strings.Split(stack, ";") {
			location := &profile.Location{}
			for _, name := range strings.Split(frame, "+") {
				location.Line = append([]profile.Line{{Function: &profile.Function{Name: name}}}, location.Line...)
			}
			sample.Location = append([]*profile.Location{location}, sample.Location...)
		}
		p.Sample = append(p.Sample, sample)
	}
	return p
}

func TestTree(t *testing.T) {
	p := profileOf(map[string]int64{
		"main.main;a.F+a.g": 30, "main.main;a.F": 10, "main.main;b.H": 60,
		"main.main;a.zero": 0,
	})
	root, err := flame.Tree(p, "cpu")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var walk func(f *flame.Frame, indent string)
	walk = func(f *flame.Frame, indent string) {
		got = append(got, indent+f.Name+" "+strconv.FormatInt(f.Total, 10)+" "+strconv.FormatInt(f.Self, 10))
		for _, callee := range f.Callees {
			walk(callee, indent+"-")
		}
	}
	walk(root, "")
	want := []string{"all 100 0", "-main.main 100 0", "--a.F 40 10", "---a.g 30 30", "--b.H 60 60"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("tree\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if top := root.Functions(2); !reflect.DeepEqual(top, []flame.Function{{Name: "b.H", Self: 60}, {Name: "a.g", Self: 30}}) {
		t.Errorf("got top %v", top)
	}
	if _, err := flame.Tree(p, "alloc_space"); err == nil || !strings.Contains(err.Error(), "alloc_space") {
		t.Errorf("got error %v, want the type in it", err)
	}
}

func TestSVG(t *testing.T) {
	p := profileOf(map[string]int64{
		"main.main;github.com/x/y.(*T[github.com/a/b.C]).m<x>": 99_900, "main.main;tiny.f": 100,
	})
	root, err := flame.Tree(p, "cpu")
	if err != nil {
		t.Fatal(err)
	}
	svg := string(flame.Graph{Title: "CPU & more", Format: func(v int64) string { return strconv.FormatInt(v, 10) + " ns" }}.SVG(root))
	for _, want := range []string{
		"<title>github.com/x/y.(*T[github.com/a/b.C]).m&lt;x&gt;: 99900 ns, 99.9 %</title>",
		">y.(*T[github.com/a/b.C]).m&lt;x&gt;</text>", "CPU &amp; more", ">main.main</text>", `width="999.50"`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("got a graph without %s:\n%s", want, svg)
		}
	}
	if strings.Contains(svg, "tiny") {
		t.Error("got a frame with a thousandth of the total")
	}
	wellFormed(t, svg)
}

func TestEmptyProfile(t *testing.T) {
	root, err := flame.Tree(profileOf(nil), "cpu")
	if err != nil {
		t.Fatal(err)
	}
	svg := string(flame.Graph{Title: "Allocations"}.SVG(root))
	if !strings.Contains(svg, "nothing") {
		t.Errorf("empty profile: got\n%s", svg)
	}
	wellFormed(t, svg)
}

func wellFormed(t *testing.T, svg string) {
	t.Helper()
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
	}
}

func TestShort(t *testing.T) {
	for name, want := range map[string]string{
		"main.main": "main.main", "net/http.(*conn).serve": "http.(*conn).serve",
		"github.com/a/b/v2.F[go.shape.struct { github.com/c/d.X }]": "v2.F[go.shape.struct { github.com/c/d.X }]",
	} {
		if got := flame.Short(name); got != want {
			t.Errorf("Short(%s): got %s, want %s", name, got, want)
		}
	}
}
