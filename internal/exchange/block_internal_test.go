package exchange

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/invariants"
)

func idBlock(name string, pairs ...string) *Block {
	h, err := NewIDHeader(name, pairs...)
	if err != nil {
		panic(err)
	}
	return h.Block
}

func blockOf(pairs ...string) *Block {
	b := new(Block)
	b.Init()
	for i := 0; i < len(pairs); i += 2 {
		b.Add(http.CanonicalHeaderKey(pairs[i]), pairs[i+1])
	}
	return b
}

// The fields of a block that sending needs are in two cache lines: its memory begins with a cache line, because the allocator
// aligns that size.
func TestBlockIsFourCacheLines(t *testing.T) {
	block := reflect.TypeFor[Block]()
	tail, _ := block.FieldByName("tail")
	if strconv.IntSize == 64 && (block.Size() != 256 || tail.Offset+tail.Type.Size() > 128) {
		t.Errorf("a block has %d bytes, and the fields for sending end after %d", block.Size(), tail.Offset+tail.Type.Size())
	}
}

// The most common names of answers do not share bits of the mask.
func TestCommonNamesHaveDistinctBits(t *testing.T) {
	var all nameMask
	for _, name := range []string{
		"Content-Type", "Cache-Control", "Etag", "Last-Modified", "Vary", "Location", "Set-Cookie", "Retry-After", "Date", "Access-Control-Allow-Origin",
		"Access-Control-Allow-Credentials", "Access-Control-Expose-Headers", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy",
		"Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Cross-Origin-Embedder-Policy", "Content-Security-Policy", "Permissions-Policy",
		"Strict-Transport-Security", "Ratelimit-Policy", "Ratelimit", "X-Request-Id", "Content-Encoding", "Server-Timing", "Link", "Age", "Accept-Ranges",
		"Content-Range", "Content-Disposition", "Expires", "Allow", "Content-Language", "Www-Authenticate", "Server",
	} {
		if all&maskOf(name) != 0 {
			t.Errorf("%s shares its bit", name)
		}
		all |= maskOf(name)
	}
}

// The cache of combinations is bounded for any number of blocks, and the results stay correct.
func TestPairsAreBounded(t *testing.T) {
	const others = 500
	b := blockOf("X-A", "1", "X-B", "2")
	kept := 0
	for i := range others {
		below := blockOf("Content-Type", fmt.Sprint("text/", i), "X-B", "3")
		if over := b.Over(below); string(over.Wire) != fmt.Sprintf("Content-Type: text/%d\r\nX-A: 1\r\nX-B: 2\r\n", i) {
			t.Fatalf("over another: got %q", over.Wire)
		}
		under := b.Under(below)
		if under == nil {
			continue
		}
		if kept++; string(under.Wire) != fmt.Sprintf("Content-Type: text/%d\r\nX-B: 3\r\nX-A: 1\r\n", i) {
			t.Fatalf("under another: got %q", under.Wire)
		}
		if b.Under(below) != under || !invariants.Enabled && testing.AllocsPerRun(100, func() { b.Under(below) }) > 0 {
			t.Fatal("a cached result is built again")
		}
	}
	if kept < 2 || kept > pairsKept+1 {
		t.Errorf("%d pairs are kept, want %d at most", kept, pairsKept+1)
	}
}

// Blocks without replacements keep the order, and names that share a bit are distinguished.
func TestAnswerWithBlocks(t *testing.T) {
	a := Plain(200, blockOf("Content-Type", "a/b", "X-One", "1"), "")
	push := func(f Field) {
		var err error
		if a, err = a.Push(f); err != nil {
			t.Fatal(err)
		}
	}
	push(Field{Name: "X-Two", Value: "2"})
	push(Field{Block: blockOf("X-Three", "3", "X-Four", "4")})
	push(Field{Block: blockOf("X-One", "5"), Replace: true})
	push(Field{Name: "X-Four", Value: "6", Replace: true})
	var same []string // names that share bits with existing ones
	for i := range 26 * 26 {
		name := http.CanonicalHeaderKey(string([]byte{byte('a' + i/26), '-', byte('a' + i%26)}))
		if len(same) < 4 && maskOf(name)&(maskOf("X-One")|maskOf("X-Three")) != 0 {
			same = append(same, name)
			push(Field{Name: name, Value: "7", Replace: true})
		}
	}
	if len(same) < 4 {
		t.Fatalf("%q share bits", same)
	}
	want := "Content-Type: a/b\r\nX-Two: 2\r\nX-Three: 3\r\nX-One: 5\r\nX-Four: 6\r\n"
	for _, name := range same {
		want += name + ": 7\r\n"
	}
	if got := string(a.AppendHeaders(nil)); got != want {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	var lines []byte
	for name, value := range a.Headers {
		lines = appendLine(lines, name, value)
	}
	if string(lines) != want {
		t.Errorf("one by one: got %q\nwant\n%q", lines, want)
	}
	if a.LacksAll(blockOf("X-Nine", "9", "X-One", "9")) || a.LacksAll(blockOf("X-Three", "9")) || !a.LacksAll(blockOf("X-Nine", "9")) {
		t.Error("LacksAll")
	}
	if !slices.ContainsFunc(same, func(name string) bool { return !a.Lacks(name) }) || !a.Lacks("X-Nine") {
		t.Error("Lacks")
	}
}

// Blocks built on a long block share its lines, and all ways of rendering give the same result.
func TestBlocksOnLongBlock(t *testing.T) {
	long := idBlock("X-Id", "X-Long", strings.TrimSpace(strings.Repeat("long ", 100)))
	base := long.Under(blockOf("Content-Type", "a/b"))
	for i := range 3 {
		one, two := blockOf("X-One", fmt.Sprint(i)), blockOf("X-Two", "2", "X-Two", "3")
		both := one.Over(base)
		all := two.Over(both)
		if &all.Wire[0] != &base.Wire[0] || all.IsWhole() || one.Over(base) != both {
			t.Fatal("the lines are copied")
		}
		for _, id := range []Identity{{number: 7}, Named("named")} {
			a := Plain(200, blockOf("Content-Type", "a/b"), "")
			a, ok := a.Identify(long, &id, new(Strings), one)
			if !ok {
				t.Fatal("the answer is not identified")
			}
			if a.IsPlain() {
				a.SetBase(two.Over(a.Base()))
			} else if a, ok = pushed(a, two); !ok {
				t.Fatal("the block is not taken")
			}
			want := "Content-Type: a/b\r\nX-Id: " + id.String() + "\r\nX-Long: " + strings.TrimSpace(strings.Repeat("long ", 100)) + "\r\nX-One: " + fmt.Sprint(i) + "\r\nX-Two: 2\r\nX-Two: 3\r\n"
			if got := string(a.AppendHeaders(nil)); got != want {
				t.Errorf("%q\nwant\n%q", got, want)
			}
			var lines []byte
			for name, value := range a.Headers {
				lines = appendLine(lines, name, value)
			}
			if string(lines) != want {
				t.Errorf("one by one: got %q\nwant\n%q", lines, want)
			}
			h := http.Header{}
			if a.SetIn(h, new(Strings)); h.Get("X-Id") != id.String() || len(h["X-Two"]) != 2 || h.Get("X-One") != fmt.Sprint(i) {
				t.Errorf("a header map: got %q", h)
			}
		}
		if under := blockOf("X-Under", "4").Under(all); string(under.append(nil, Named("n"))) != string(all.append(nil, Named("n")))+"X-Under: 4\r\n" {
			t.Errorf("under it: got %q", under.append(nil, Named("n")))
		}
	}
}

// IdentifyAgain returns the cached result, and distinguishes other bases and blocks, also if there are more than slots.
func TestIdentifyAgain(t *testing.T) {
	ids := []*Block{idBlock("X-Id", "X-Fixed", "1"), idBlock("X-Other")}
	overs := []*Block{nil, blockOf("X-Left", "9"), blockOf("X-Left", "8")}
	bases := []*Block{blockOf("X-Id", "mine"), blockOf("X-Left", "mine")}
	for i := range 3 * metKept {
		bases = append(bases, blockOf("Content-Type", fmt.Sprint("a/", i)))
	}
	for range 3 {
		for i, base := range bases {
			for _, id := range ids {
				for _, over := range overs {
					identity := Identity{number: 7}
					a, ok := Plain(200, base, "").Identify(id, &identity, new(Strings), over)
					if has := base.Has(id.Fields[0].Name); ok == has {
						t.Fatalf("base %d: identified %v", i, ok)
					} else if has {
						continue
					}
					want := Plain(200, base, "")
					want, _ = want.Push(Field{Block: id, number: 7})
					if over != nil {
						want, _ = want.Push(Field{Block: over, Replace: true})
					}
					if got, want := string(a.AppendHeaders(nil)), string(want.AppendHeaders(nil)); got != want {
						t.Fatalf("base %d: got %q\nwant\n%q", i, got, want)
					}
				}
			}
		}
	}
}

func pushed(a Answer, b *Block) (Answer, bool) {
	a, err := a.Push(Field{Block: b, Replace: true})
	return a, err == nil
}
