package hpack_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/hpack"
)

// answer appends the head of an ordinary response.
func answer(e *hpack.Encoder, dst []byte, id string) []byte {
	dst = e.Begin(dst)
	dst = e.AppendStatus(dst, 200)
	dst = e.Append(dst, "Content-Type", "application/json")
	dst = e.AppendContentLength(dst, 1234)
	dst = e.Append(dst, "X-Content-Type-Options", "nosniff")
	dst = e.Append(dst, "X-Request-Id", id)
	return e.AppendNamed(dst, hpack.Date, "Mon, 21 Oct 2013 20:13:21 GMT")
}

func TestEncode(t *testing.T) {
	var e hpack.Encoder
	e.Init(4096)
	twin := newPlainDecoder()
	for i, most := range []int{120, 120, 40, 40, 40} {
		id := strings.Repeat(string(rune('a'+i)), 16)
		block := answer(&e, nil, id)
		got, err := twin.decode(string(block))
		want := []string{
			line(":status", "200", false), line("content-type", "application/json", false), line("content-length", "1234", false),
			line("x-content-type-options", "nosniff", false), line("x-request-id", id, false), line("date", "Mon, 21 Oct 2013 20:13:21 GMT", false),
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("answer %d: got error %v\ngot  %q\nwant %q", i, err, got, want)
		}
		if len(block) > most {
			t.Errorf("answer %d: got %d bytes, want at most %d", i, len(block), most)
		}
		if len(twin.table) > 3 {
			t.Errorf("a field that was sent once is in the table: %q", twin.table)
		}
		if e.TableSize() != twin.size() {
			t.Errorf("got table size %d of the encoder and %d of the decoder", e.TableSize(), twin.size())
		}
	}
}

func TestEncodeStatus(t *testing.T) {
	var e hpack.Encoder
	e.Init(4096)
	twin := newPlainDecoder()
	for code := 100; code < 1000; code++ {
		got, err := twin.decode(string(e.AppendStatus(nil, code)))
		if want := line(":status", string([]byte{byte('0' + code/100), byte('0' + code/10%10), byte('0' + code%10)}), false); err != nil || got[0] != want {
			t.Fatalf("%d: got %q, %v", code, got, err)
		}
	}
}

func TestEncodeNeverIndexed(t *testing.T) {
	var e hpack.Encoder
	e.Init(4096)
	for range 3 {
		block := e.AppendNever(nil, "Set-Cookie", "id=secret")
		got, err := newPlainDecoder().decode(string(block))
		if err != nil || got[0] != line("set-cookie", "id=secret", true) {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if e.TableSize() != 0 {
		t.Error("it is in the table")
	}
}

func TestEncodeContentLength(t *testing.T) {
	var e hpack.Encoder
	e.Init(4096)
	for n, want := range map[int64]string{0: "0", 9: "9", 10: "10", 1<<63 - 1: "9223372036854775807"} {
		got, err := newPlainDecoder().decode(string(e.AppendContentLength(nil, n)))
		if err != nil || got[0] != line("content-length", want, false) {
			t.Errorf("%d: got %q, %v", n, got, err)
		}
	}
}

// The peer may change the size of the table at any time, even several times between two blocks.
func TestEncoderFollowsTableSize(t *testing.T) {
	var e hpack.Encoder
	e.Init(2048)
	twin := newPlainDecoder()
	for i, sizes := range [][]uint32{nil, {65536}, nil, {0}, nil, {100, 0, 200}, {4096}, {300, 2048}, {50}, {2048, 2048}} {
		for _, n := range sizes {
			e.SetAllowed(n)
			twin.setAllowed(int(n))
		}
		if len(sizes) > 0 {
			twin.reduced = int(slices.Min(sizes)) < twin.max
		}
		for range 3 {
			block := answer(&e, nil, "1")
			if _, err := twin.decode(string(block)); err != nil {
				t.Fatalf("sizes %d of step %d: got error %v", sizes, i, err)
			}
			if e.TableSize() != twin.size() || twin.max > 2048 {
				t.Fatalf("step %d: got table sizes %d and %d with maximum %d", i, e.TableSize(), twin.size(), twin.max)
			}
		}
	}
}

func TestTablesReleaseMemory(t *testing.T) {
	var e hpack.Encoder
	var d hpack.Decoder
	var l hpack.List
	e.Init(4096)
	d.Init(nil)
	if e.Footprint() != 0 || d.Footprint() != 0 {
		t.Error("got a footprint above 0 for empty tables")
	}
	for i := range 500 {
		long := strings.Repeat("x", 10+i)
		for range 2 {
			if err := d.Decode(e.Append(e.Begin(nil), "Name", long), &l, &wide); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A table of 4096 bytes holds at most 4096 bytes of text and a ring of 128 entries of 10 bytes.
	if e.Footprint() > 4096+1280 || d.Footprint() > 4096+1280 {
		t.Errorf("got footprints of %d and %d bytes", e.Footprint(), d.Footprint())
	}
	for range 2 {
		d.Shrink()
		block := e.Append(e.Begin(nil), "Name", strings.Repeat("x", 509))
		if err := d.Decode(block, &l, &wide); err != nil || len(block) > 2 {
			t.Errorf("%x: got error %v", block, err)
		}
	}
	if d.Footprint() > 4096+160 { // seven entries
		t.Errorf("got footprint %d after Shrink", d.Footprint())
	}
	for i := range 3 {
		if e.Rest(); e.Footprint() != 0 {
			t.Errorf("got footprint %d after Rest", e.Footprint())
		}
		for k := range 2 { // fields that were sent before Rest are added to the table immediately
			block := e.Append(e.Begin(nil), "Name", strings.Repeat("x", 509))
			if err := d.Decode(block, &l, &wide); err != nil || string(l.Value(0)) != strings.Repeat("x", 509) || k > 0 && len(block) > 2 {
				t.Errorf("field %d, block %d: %x: got error %v", i, k, block, err)
			}
		}
		if e.TableSize() != d.TableSize() {
			t.Errorf("got table sizes %d and %d", e.TableSize(), d.TableSize())
		}
	}
	e.SetAllowed(0)
	if err := d.Decode(e.Append(e.Begin(nil), "Name", "a"), &l, &wide); err != nil {
		t.Fatal(err)
	}
	if e.Footprint() != 0 || d.Footprint() != 0 {
		t.Errorf("got footprints of %d and %d bytes", e.Footprint(), d.Footprint())
	}
}
