package hpack_test

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/hpack"
)

var wide = hpack.Limits{MaxList: 1 << 20, MaxFields: 1 << 14, MaxWork: 1 << 22}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// lines returns the fields of a list as "name: value".
func lines(l *hpack.List) (all []string) {
	for i := range l.Len() {
		name, value := l.Field(i)
		all = append(all, string(name)+": "+string(value))
	}
	return all
}

// The examples of RFC 7541 appendix C: blocks of one connection, with the fields and the size of the table after each.
func TestRFCExamples(t *testing.T) {
	type block struct {
		hex    string
		fields string
		size   int
	}
	const (
		get1 = ":method: GET|:scheme: http|:path: /|:authority: www.example.com"
		get2 = get1 + "|cache-control: no-cache"
		get3 = ":method: GET|:scheme: https|:path: /index.html|:authority: www.example.com|custom-key: custom-value"
		rest = "|location: https://www.example.com"
		ok1  = ":status: 302|cache-control: private|date: Mon, 21 Oct 2013 20:13:21 GMT" + rest
		ok2  = ":status: 307|cache-control: private|date: Mon, 21 Oct 2013 20:13:21 GMT" + rest
		ok3  = ":status: 200|cache-control: private|date: Mon, 21 Oct 2013 20:13:22 GMT" + rest +
			"|content-encoding: gzip|set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"
	)
	for _, c := range []struct {
		section string
		allowed uint32
		blocks  []block
	}{
		{"C.2.1", 4096, []block{{"400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", "custom-key: custom-header", 55}}},
		{"C.2.2", 4096, []block{{"040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path", 0}}},
		{"C.2.3", 4096, []block{{"1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret", 0}}},
		{"C.2.4", 4096, []block{{"82", ":method: GET", 0}}},
		{"C.3", 4096, []block{
			{"8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", get1, 57},
			{"8286 84be 5808 6e6f 2d63 6163 6865", get2, 110},
			{"8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", get3, 164},
		}},
		{"C.4", 4096, []block{
			{"8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", get1, 57},
			{"8286 84be 5886 a8eb 1064 9cbf", get2, 110},
			{"8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", get3, 164},
		}},
		{"C.5", 256, []block{
			{"4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", ok1, 222},
			{"4803 3330 37c1 c0bf", ok2, 222},
			{"88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31", ok3, 215},
		}},
		{"C.6", 256, []block{
			{"4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3", ok1, 222},
			{"4883 640e ffc1 c0bf", ok2, 222},
			{"88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07", ok3, 215},
		}},
	} {
		t.Run(c.section, func(t *testing.T) {
			var d hpack.Decoder
			var l hpack.List
			d.Init(nil)
			for i, b := range c.blocks {
				in := unhex(t, b.hex)
				if i == 0 && c.allowed != 4096 {
					d.SetAllowed(c.allowed)
					in = append([]byte{0x3f, 0xe1, 0x01}, in...) // size update to 256, which the examples omit
				}
				if err := d.Decode(in, &l, &wide); err != nil {
					t.Fatalf("block %d: got error %v", i, err)
				}
				if got := strings.Join(lines(&l), "|"); got != b.fields {
					t.Errorf("block %d:\n got %s\nwant %s", i, got, b.fields)
				}
				if d.TableSize() != b.size {
					t.Errorf("block %d: got table size %d, want %d", i, d.TableSize(), b.size)
				}
			}
		})
	}
}

// Blocks that are refused, with the section of the RFC that forbids them.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		what, hex, section string
		offset             int
		allowed            uint32
	}{
		{"index 0", "80", "6.1", 0, 4096},
		{"an index beyond an empty table", "82 be", "2.3.3", 1, 4096},
		{"a name index beyond an empty table", "7e 01 61", "2.3.3", 0, 4096},
		{"an index of two bytes beyond the table", "ff 80 01", "2.3.3", 0, 4096},
		{"an index without its end", "ff", "6", 0, 4096},
		{"an unlimited index", "ff 80 80 80 80 80 80 80 80 80 00", "5.1", 0, 4096},
		{"an index beyond all measure", "ff ff ff ff ff 7f", "5.1", 0, 4096},
		{"a name that is cut off", "40 03 61 62", "6", 1, 4096},
		{"a literal without a name", "40", "6", 1, 4096},
		{"a value that is missing", "82 41", "6", 2, 4096},
		{"a value that is cut off", "41 0f 77", "6", 1, 4096},
		{"a length beyond all measure", "41 7f ff ff ff ff 7f", "5.1", 1, 4096},
		{"padding of eight bits", "41 82 07 ff", "5.2", 1, 4096},  // '0', then 11 ones
		{"padding with a zero", "41 81 06", "5.2", 1, 4096},       // '0', then 110
		{"a string of padding alone", "41 81 ff", "5.2", 1, 4096}, // 8 ones
		{"the end of the string", "41 84 ff ff ff fc", "5.2", 1, 4096},
		{"the end of the string, full", "41 84 ff ff ff ff", "5.2", 1, 4096},
		{"an update after a field", "82 20", "4.2", 1, 4096},
		{"an update beyond the size", "3f e2 1f", "6.3", 0, 4096}, // 4097
		{"three updates", "20 21 22 82", "4.2", 2, 4096},
		{"no update after a reduction", "82", "4.2", 0, 100},
		{"an empty block after a reduction", "", "4.2", 0, 100},
		{"an update to the old size after a reduction", "3f e1 1f 82", "6.3", 0, 100},
	} {
		t.Run(c.what, func(t *testing.T) {
			var d hpack.Decoder
			var l hpack.List
			d.Init(nil)
			if c.allowed != 4096 {
				d.SetAllowed(c.allowed)
			}
			err := d.Decode(unhex(t, c.hex), &l, &wide)
			var e hpack.Error
			if !errors.As(err, &e) {
				t.Fatalf("got error %v, want an hpack.Error", err)
			}
			if !strings.HasSuffix(e.Error(), "(RFC 7541 section "+c.section+")") || e.Offset() != c.offset {
				t.Errorf("got %v, want offset %d and section %s", e, c.offset, c.section)
			}
			if e.Bomb() {
				t.Error("Bomb: got true, want false")
			}
		})
	}
}

func TestSizeUpdates(t *testing.T) {
	var d hpack.Decoder
	var l hpack.List
	d.Init(nil)
	decode := func(s, want string) {
		t.Helper()
		if err := d.Decode(unhex(t, s), &l, &wide); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(lines(&l), "|"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	decode("40 01 61 01 62 40 01 63 01 64", "a: b|c: d")
	decode("be bf", "c: d|a: b")
	decode("3f 03 be", "c: d") // an update to 34: one entry is left
	if d.TableSize() != 34 {
		t.Errorf("got table size %d", d.TableSize())
	}
	decode("20 3f e1 1f 40 01 65 01 66", "e: f") // updates to 0 and back to 4096
	if d.TableSize() != 34 {
		t.Errorf("got table size %d", d.TableSize())
	}
	d.SetAllowed(0)
	decode("20 40 01 65 01 66", "e: f") // too large for a table of size 0
	if d.TableSize() != 0 || d.Footprint() != 0 {
		t.Errorf("got table size %d in %d bytes", d.TableSize(), d.Footprint())
	}
}

// An entry may be evicted by the entry that refers to its name (RFC 7541 §4.4).
func TestNameOfEvictedEntry(t *testing.T) {
	var d hpack.Decoder
	var l hpack.List
	d.Init(nil)
	d.SetAllowed(40)
	for _, s := range []string{"3f 09 40 03 6162 63 02 78 79", "7e 02 7a 7a"} {
		if err := d.Decode(unhex(t, s), &l, &wide); err != nil {
			t.Fatal(err)
		}
	}
	if got := lines(&l); !slices.Equal(got, []string{"abc: zz"}) {
		t.Errorf("got %q", got)
	}
}

func TestLimits(t *testing.T) {
	field := hpack.AppendPlain(nil, "name", "value") // size 41 as RFC 9113 counts
	var d hpack.Decoder
	var l hpack.List
	d.Init(nil)
	for _, c := range []struct {
		what     string
		lim      hpack.Limits
		n, kept  int
		tooLarge bool
	}{
		{"all fit", hpack.Limits{MaxList: 123, MaxFields: 3, MaxWork: 1000}, 3, 3, false},
		{"too many bytes", hpack.Limits{MaxList: 122, MaxFields: 3, MaxWork: 1000}, 3, 2, true},
		{"too many fields", hpack.Limits{MaxList: 1000, MaxFields: 2, MaxWork: 1000}, 3, 2, true},
	} {
		if err := d.Decode([]byte(strings.Repeat(string(field), c.n)), &l, &c.lim); err != nil {
			t.Fatalf("%s: got error %v", c.what, err)
		}
		if l.Len() != c.kept || l.TooLarge() != c.tooLarge || l.Size() != 41*c.n {
			t.Errorf("%s: got %d fields of size %d, too large: %v", c.what, l.Len(), l.Size(), l.TooLarge())
		}
	}
}

// A list that is too large still updates the table, which stays equal to the peer's.
func TestTableFollowsBeyondTheLimits(t *testing.T) {
	var d hpack.Decoder
	var l hpack.List
	d.Init(nil)
	lim := hpack.Limits{MaxList: 40, MaxFields: 10, MaxWork: 1000}
	if err := d.Decode(unhex(t, "40 01 61 01 62 40 01 63 01 64"), &l, &lim); err != nil || !l.TooLarge() {
		t.Fatal(err, l.TooLarge())
	}
	if err := d.Decode(unhex(t, "be"), &l, &lim); err != nil || lines(&l)[0] != "c: d" {
		t.Error(err, lines(&l))
	}
}

// Decoding a block of references to a large entry stops early, and costs no memory before.
func TestDecodeBomb(t *testing.T) {
	var d hpack.Decoder
	var l hpack.List
	d.Init(nil)
	lim := hpack.Limits{MaxList: 16 << 10, MaxFields: 100, MaxWork: 128 << 10}
	block := hpack.AppendIndexed(nil, "a", strings.Repeat("x", 4000))
	block = append(block, strings.Repeat("\xbe", 12<<10)...)
	err := d.Decode(block, &l, &lim)
	var e hpack.Error
	if !errors.As(err, &e) || !e.Bomb() {
		t.Fatalf("got error %v", err)
	}
	if used := l.Footprint(); used > 2*lim.MaxList {
		t.Errorf("got a list of %d bytes", used)
	}
	if used := d.Footprint(); used > 2*4096 {
		t.Errorf("got a table of %d bytes", used)
	}
}

func TestClasses(t *testing.T) {
	asked := 0
	classes := hpack.NewClasses(func(name, value []byte) hpack.Class {
		asked++
		return hpack.Class(len(name)<<8 | len(value))
	})
	var d hpack.Decoder
	var l hpack.List
	d.Init(classes)
	asked = 0
	for range 3 {
		for _, s := range []string{"82 40 03 616263 01 62 04 02 2f 61", "82 be 04 02 2f 61"} {
			if err := d.Decode(unhex(t, s), &l, &wide); err != nil {
				t.Fatal(err)
			}
			for i := range l.Len() {
				name, value := l.Field(i)
				if want := hpack.Class(len(name)<<8 | len(value)); l.Class(i) != want {
					t.Errorf("%s: got class %x, want %x", name, l.Class(i), want)
				}
			}
		}
	}
	if asked != 9 {
		t.Errorf("got %d calls, want one for each of 9 literals", asked)
	}
}

func TestListLooksUpNames(t *testing.T) {
	var d hpack.Decoder
	var l, copied hpack.List
	d.Init(nil)
	block := unhex(t, "82 0f 0d 01 37")
	block = hpack.AppendPlain(block, "cookie", "a=1")
	block = hpack.AppendIndexed(block, "x-other", "1")
	block = hpack.AppendPlain(block, "cookie", "b=2")
	block = append(block, 0xbe)
	if err := d.Decode(block, &l, &wide); err != nil {
		t.Fatal(err)
	}
	l.CopyTo(&copied)
	l.Reset()
	for _, c := range []struct {
		name string
		from int
		want int
	}{
		{":method", 0, 0}, {":method", 1, -1}, {"content-length", 0, 1}, {"cookie", 0, 2}, {"cookie", 3, 4},
		{"x-other", 0, 3}, {"x-other", 4, 5}, {"x-none", 0, -1}, {"host", 0, -1}, {"", 0, -1},
	} {
		if got := copied.Index(c.name, c.from); got != c.want {
			t.Errorf("Index(%q, %d): got %d, want %d", c.name, c.from, got, c.want)
		}
	}
	if copied.Name(0) != hpack.Method || copied.Name(1) != hpack.ContentLength || copied.Name(4) != hpack.Cookie || copied.Name(3) != 0 {
		t.Error("Names: wrong result")
	}
}
