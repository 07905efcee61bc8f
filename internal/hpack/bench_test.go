package hpack_test

import (
	"testing"

	"github.com/dunlinhttp/dunlin/internal/hpack"
)

// browserFields are the fields of a browser's request for a page of an API.
var browserFields = []pair{
	{":method", "GET"}, {":scheme", "https"}, {":authority", "api.example.com"},
	{":path", "/api/v1/users/0190163d-8694-739b-aea5-966c26f8ad90?expand=groups"},
	{"user-agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"},
	{"accept", "application/json, text/plain, */*"}, {"accept-language", "en-US,en;q=0.9"}, {"accept-encoding", "gzip, deflate, br"},
	{"referer", "https://app.example.com/users"}, {"cookie", "session=0123456789abcdef"}, {"sec-fetch-dest", "empty"},
	{"sec-fetch-mode", "cors"}, {"sec-fetch-site", "same-site"}, {"cache-control", "no-cache"},
}

// browserBlocks returns the block of the first request and that of later ones, in which only the path is a literal.
func browserBlocks() (first, later []byte) {
	var e hpack.Encoder
	e.Init(4096)
	for i := range 3 {
		later = e.Begin(nil)
		for _, f := range browserFields {
			if i == 2 && f.name == ":path" {
				later = e.AppendNever(later, f.name, f.value)
				continue
			}
			later = e.Append(later, f.name, f.value)
		}
		if i == 0 {
			first = later
		}
		if i == 1 {
			first = later // with incremental indexing
		}
	}
	return first, later
}

func BenchmarkDecode(b *testing.B) {
	first, later := browserBlocks()
	b.Run("first", func(b *testing.B) {
		var d hpack.Decoder
		var l hpack.List
		d.Init(nil)
		b.ReportAllocs()
		b.SetBytes(int64(len(first)))
		for b.Loop() {
			if err := d.Decode(first, &l, &wide); err != nil || l.Len() != len(browserFields) {
				b.Fatal(err, l.Len())
			}
		}
	})
	b.Run("later", func(b *testing.B) {
		var d hpack.Decoder
		var l hpack.List
		d.Init(nil)
		if err := d.Decode(first, &l, &wide); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		b.SetBytes(int64(len(later)))
		for b.Loop() {
			if err := d.Decode(later, &l, &wide); err != nil || l.Len() != len(browserFields) {
				b.Fatal(err, l.Len())
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	var e hpack.Encoder
	e.Init(4096)
	var block []byte
	b.ReportAllocs()
	for b.Loop() {
		block = answer(&e, block[:0], "0190163d-8694-739b")
	}
}

func TestAllocations(t *testing.T) {
	first, later := browserBlocks()
	var d hpack.Decoder
	var l hpack.List
	var e hpack.Encoder
	var out []byte
	d.Init(nil)
	e.Init(4096)
	work := func() {
		for _, b := range [][]byte{first, later} {
			if err := d.Decode(b, &l, &wide); err != nil {
				t.Fatal(err)
			}
		}
		out = answer(&e, out[:0], "0190163d-8694-739b")
	}
	for range 10 {
		work()
	}
	if n := testing.AllocsPerRun(100, work); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
