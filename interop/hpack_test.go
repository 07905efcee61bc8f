package interop_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	xhpack "golang.org/x/net/http2/hpack"

	"github.com/dunlinhttp/dunlin/internal/hpack"
)

// Other implementations of HPACK decode the output of Dunlin's, and vice versa.

// hpackPeers is one direction of a connection with both decoders at its end.
type hpackPeers struct {
	theirs *xhpack.Decoder
	ours   hpack.Decoder
	list   hpack.List
}

var hpackLimits = hpack.Limits{MaxList: 1 << 20, MaxFields: 1 << 14, MaxWork: 1 << 22}

func newHpackPeers() *hpackPeers {
	p := &hpackPeers{theirs: xhpack.NewDecoder(4096, nil)}
	p.ours.Init(nil)
	return p
}

// check decodes a block with both decoders and compares the results. It returns false if both refuse the block.
func (p *hpackPeers) check(t *testing.T, block []byte) bool {
	t.Helper()
	want, theirErr := p.theirs.DecodeFull(block)
	err := p.ours.Decode(block, &p.list, &hpackLimits)
	if (err != nil) != (theirErr != nil) {
		if stricter(err) {
			return false
		}
		t.Fatalf("%x: got error %v, x/net returns %v", block, err, theirErr)
	}
	if err != nil {
		return false
	}
	if len(want) != p.list.Len() {
		t.Fatalf("%x: got %d fields, x/net has %d", block, p.list.Len(), len(want))
	}
	for i, w := range want {
		name, value := p.list.Field(i)
		if string(name) != w.Name || string(value) != w.Value || p.list.NeverIndexed(i) != w.Sensitive {
			t.Fatalf("%x: field %d is %q: %q, x/net's %q: got %q", block, i, name, value, w.Name, w.Value)
		}
	}
	return true
}

// stricter reports whether an error is one that x/net does not report: more than two size updates in a row, an update within a
// block while the table is empty, and implausible integers.
func stricter(err error) bool {
	var e hpack.Error
	if !errors.As(err, &e) {
		return false
	}
	switch text := e.Error(); {
	case strings.HasPrefix(text, "more than two size updates"), strings.HasPrefix(text, "size update after the first field"):
		return true
	case strings.HasPrefix(text, "integer too large"):
		return true
	}
	return false
}

// TestHpackDecodesLikeOthers decodes random blocks: those of an encoder, damaged in places.
func TestHpackDecodesLikeXNet(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := newHpackPeers()
		for range 8 {
			if !p.check(t, randomBlock(r)) {
				break // a connection ends with its first error
			}
		}
	}
}

// randomBlock returns a block of well-formed representations, mostly.
func randomBlock(r *rand.Rand) (b []byte) {
	for range r.IntN(3) / 2 {
		b = appendPrefixed(b, 0x20, 5, r.IntN(200)*r.IntN(30))
	}
	for range r.IntN(12) {
		switch r.IntN(4) {
		case 0:
			b = appendPrefixed(b, 0x80, 7, 1+r.IntN(66))
		case 1:
			b = appendString(r, appendPrefixed(b, 0x40, 6, 1+r.IntN(66)))
		case 2:
			b = appendString(r, appendString(r, append(b, 0x40)))
		case 3:
			b = appendString(r, appendPrefixed(b, byte(r.IntN(2)<<4), 4, 1+r.IntN(66)))
		}
	}
	if r.IntN(6) == 0 && len(b) > 0 {
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
	}
	if r.IntN(20) == 0 && len(b) > 0 {
		b = b[:r.IntN(len(b))]
	}
	return b
}

func appendPrefixed(b []byte, first byte, prefix, n int) []byte {
	most := 1<<prefix - 1
	if n < most {
		return append(b, first|byte(n))
	}
	b = append(b, first|byte(most))
	for n -= most; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

func appendString(r *rand.Rand, b []byte) []byte {
	text := make([]byte, r.IntN(40)*(1+r.IntN(30)/29*20))
	for i := range text {
		text[i] = "abcdefghijklmnopqrstuvwxyz-0123456789/ %\x00\xff"[r.IntN(42)]
	}
	if r.IntN(2) == 0 {
		coded := xhpack.AppendHuffmanString(nil, string(text))
		return append(appendPrefixed(b, 0x80, 7, len(coded)), coded...)
	}
	return append(appendPrefixed(b, 0, 7, len(text)), text...)
}

// TestOthersDecodeHpack decodes the output of Dunlin's encoder with x/net.
func TestXNetDecodesHpack(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 2))
		theirs := xhpack.NewDecoder(4096, nil)
		var ours hpack.Encoder
		ours.Init(uint32(r.IntN(5000)))
		for range 10 {
			var want []string
			if r.IntN(5) == 0 {
				size := uint32(r.IntN(4097))
				ours.SetAllowed(size)
				theirs.SetAllowedMaxDynamicTableSize(size)
			}
			block := ours.Begin(nil)
			for range r.IntN(12) {
				name, value := fmt.Sprintf("name-%d", r.IntN(8)), fmt.Sprint(r.IntN(3))
				if r.IntN(3) == 0 {
					name = xhpackNames[r.IntN(len(xhpackNames))]
				}
				block = ours.Append(block, name, value)
				want = append(want, name+": "+value)
			}
			fields, err := theirs.DecodeFull(block)
			if err != nil {
				t.Fatalf("%x: %v", block, err)
			}
			var got []string
			for _, f := range fields {
				got = append(got, f.Name+": "+f.Value)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	}
}

var xhpackNames = []string{"content-type", "cache-control", "date", "set-cookie", "vary", ":status", "accept-encoding"}

// hpackRequests returns the blocks of the requests of a browser: the first one, and all later ones.
func hpackRequests() (first, later []byte) {
	fields := []xhpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "api.example.com"},
		{Name: ":path", Value: "/api/v1/users/0190163d-8694-739b-aea5-966c26f8ad90?expand=groups", Sensitive: true},
		{Name: "user-agent", Value: "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"},
		{Name: "accept", Value: "application/json, text/plain, */*"}, {Name: "accept-language", Value: "en-US,en;q=0.9"},
		{Name: "accept-encoding", Value: "gzip, deflate, br"}, {Name: "referer", Value: "https://app.example.com/users"},
		{Name: "cookie", Value: "session=0123456789abcdef"}, {Name: "sec-fetch-dest", Value: "empty"},
		{Name: "sec-fetch-mode", Value: "cors"}, {Name: "sec-fetch-site", Value: "same-site"}, {Name: "cache-control", Value: "no-cache"},
	}
	var w writer
	e := xhpack.NewEncoder(&w)
	for i := range 2 {
		w = nil
		for _, f := range fields {
			e.WriteField(f)
		}
		if i == 0 {
			first = w
		}
	}
	return first, w
}

type writer []byte

func (w *writer) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}

// BenchmarkHpackDecode decodes the requests of a browser. x/net allocates strings. Dunlin returns views, which callers copy if
// needed.
func BenchmarkHpackDecode(b *testing.B) {
	first, later := hpackRequests()
	for _, c := range []struct {
		name  string
		block []byte
	}{{"first", first}, {"later", later}} {
		b.Run(c.name+"/dunlin", func(b *testing.B) {
			p := newHpackPeers()
			p.ours.Decode(first, &p.list, &hpackLimits)
			b.ReportAllocs()
			for b.Loop() {
				if err := p.ours.Decode(c.block, &p.list, &hpackLimits); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/xnet", func(b *testing.B) {
			n := 0
			theirs := xhpack.NewDecoder(4096, func(xhpack.HeaderField) { n++ })
			theirs.Write(first)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := theirs.Write(c.block); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHpackEncode encodes the head of an ordinary response.
func BenchmarkHpackEncode(b *testing.B) {
	const id, date = "0190163d-8694-739b", "Mon, 21 Oct 2013 20:13:21 GMT"
	b.Run("dunlin", func(b *testing.B) {
		var e hpack.Encoder
		e.Init(4096)
		var out []byte
		b.ReportAllocs()
		for b.Loop() {
			out = e.AppendStatus(e.Begin(out[:0]), 200)
			out = e.Append(out, "Content-Type", "application/json")
			out = e.AppendContentLength(out, 1234)
			out = e.Append(out, "X-Request-Id", id)
			out = e.AppendNamed(out, hpack.Date, date)
		}
	})
	b.Run("xnet", func(b *testing.B) {
		var w writer
		e := xhpack.NewEncoder(&w)
		b.ReportAllocs()
		for b.Loop() {
			w = w[:0]
			e.WriteField(xhpack.HeaderField{Name: ":status", Value: "200"})
			e.WriteField(xhpack.HeaderField{Name: "content-type", Value: "application/json"})
			e.WriteField(xhpack.HeaderField{Name: "content-length", Value: "1234"})
			e.WriteField(xhpack.HeaderField{Name: "x-request-id", Value: id})
			e.WriteField(xhpack.HeaderField{Name: "date", Value: date})
		}
	})
}
