package hpack_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/hpack"
)

// FuzzDecode compares the decoder with its reference implementation, on blocks of one connection. The bytes of cuts are the lengths of the
// blocks.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"828684410f7777772e6578616d706c652e636f6d|828684be58086e6f2d6361636865",
		"4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf|be7e0161",
		"3f03|203fe11f4001650166|be|bf", "4182 07ff", "4184fffffffc", "ff80808000", "3fe11f82",
		"4001610162 4001630164 bebf be0f2f0161|7e0378797a7f00 0161c0c1c2",
	} {
		var in []byte
		var cuts []byte
		for _, b := range strings.Split(s, "|") {
			in = append(in, unhex(f, b)...)
			cuts = append(cuts, byte(len(in)))
		}
		f.Add(in, cuts, uint16(4096))
		f.Add(in, cuts, uint16(70))
	}
	f.Fuzz(func(t *testing.T, in, cuts []byte, allowed uint16) {
		if len(in) > 1<<12 {
			return // the reference implementation is slow
		}
		var d hpack.Decoder
		var l hpack.List
		d.Init(nil)
		twin := newPlainDecoder()
		if allowed < 4096 {
			d.SetAllowed(uint32(allowed))
			twin.setAllowed(int(allowed))
		}
		for i := 0; len(in) > 0; i++ {
			n := len(in)
			if i < len(cuts) {
				n = min(n, int(cuts[i]))
			}
			block := slices.Clone(in[:n])
			in = in[n:]
			want, wantErr := twin.decode(string(block))
			err := d.Decode(block, &l, &wide)
			clear(block) // the decoder must not retain it
			if err != nil {
				var e hpack.Error
				if errors.As(err, &e) && e.Bomb() {
					return
				}
			}
			if (err != nil) != (wantErr != nil) {
				t.Fatalf("block %d: got error %v, want %v", i, err, wantErr)
			}
			if err != nil {
				return
			}
			var got []string
			for i := range l.Len() {
				name, value := l.Field(i)
				got = append(got, line(string(name), string(value), l.NeverIndexed(i)))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("block %d:\ngot  %q\nwant %q", i, got, want)
			}
			if d.TableSize() != twin.size() {
				t.Fatalf("block %d: got table size %d, want %d", i, d.TableSize(), twin.size())
			}
			if d.Footprint() > 4096+1280 {
				t.Fatalf("got a footprint of %d bytes", d.Footprint())
			}
		}
	})
}

// FuzzEncode decodes the encoder's output with the reference implementation. The input has one field a line, with a colon between name and value; a
// line without a colon changes the size of the table.
func FuzzEncode(f *testing.F) {
	f.Add("Content-Type: text/plain\nX: 1\nX: 1\nX: 1\n\xff\nX: 1\n:status:200\n:status:418\n")
	f.Add(strings.Repeat("a: 1\nb: 2\nbb\nA: 1\n", 5))
	f.Fuzz(func(t *testing.T, in string) {
		var e hpack.Encoder
		e.Init(600)
		twin := newPlainDecoder()
		for text := range strings.Lines(in) {
			name, value, field := strings.Cut(strings.TrimSuffix(text, "\n"), ":")
			if !field {
				size := uint32(len(text)) * 40
				e.SetAllowed(size)
				twin.allowed = int(size)
				twin.reduced = twin.reduced || int(size) < twin.max
				continue
			}
			block := e.Append(e.Begin(nil), name, value)
			got, err := twin.decode(string(block))
			if want := line(lowerASCII(name), value, false); err != nil || len(got) != 1 || got[0] != want {
				t.Fatalf("%q: got %q, %v", text, got, err)
			}
			if e.TableSize() != twin.size() {
				t.Fatalf("got table size %d of the encoder and %d of the decoder", e.TableSize(), twin.size())
			}
		}
	})
}

func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] += 'a' - 'A'
		}
	}
	return string(b)
}

// FuzzHuffman compares both directions of the Huffman code with those of the reference implementation.
func FuzzHuffman(f *testing.F) {
	var every []byte
	for c := range 256 {
		every = append(every, byte(c))
	}
	f.Add(every)
	f.Add([]byte("www.example.com"))
	f.Add([]byte{0xff, 0xff, 0xff, 0xfc})
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 1<<12 {
			return
		}
		coded := hpack.AppendHuffman(nil, string(in))
		if len(coded) != hpack.HuffmanLen(string(in)) {
			t.Errorf("got %d bytes, HuffmanLen returns %d", len(coded), hpack.HuffmanLen(string(in)))
		}
		if back, ok := hpack.DecodeHuffman([]byte("x"), coded); !ok || !bytes.Equal(back[1:], in) {
			t.Errorf("%q: decoded as %q, error %v", in, back, ok)
		}
		got, ok := hpack.DecodeHuffman(nil, in)
		want, err := plainHuffman(string(in))
		if ok != (err == nil) || ok && string(got) != want {
			t.Errorf("%x: got %q, %v, want %q, %v", in, got, ok, want, err)
		}
	})
}
