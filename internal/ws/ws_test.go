package ws_test

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dunlinhttp/dunlin/internal/ws"
)

// plainHeader is the reference implementation of ParseHeader: it reads the fields one after the other, from the available bytes.
func plainHeader(b []byte) (h ws.Header, n int, code ws.Code) {
	next := func(k int) (v uint64, ok bool) {
		if len(b) < n+k {
			return 0, false
		}
		for _, x := range b[n : n+k] {
			v = v<<8 | uint64(x)
		}
		n += k
		return v, true
	}
	first, ok := next(1)
	if !ok {
		return h, 0, 0
	}
	h.Opcode, h.Fin, h.Compressed = ws.Opcode(first&15), first>>7 == 1, first>>6&1 == 1
	known := map[ws.Opcode]bool{ws.Continuation: true, ws.Text: true, ws.Binary: true, ws.Close: true, ws.Ping: true, ws.Pong: true}
	control := h.Opcode >= 8
	if first>>4&3 != 0 || !known[h.Opcode] || control && (!h.Fin || h.Compressed) {
		return h, 0, ws.ProtocolError
	}
	second, ok := next(1)
	if !ok {
		return h, 0, 0
	}
	length := second & 127
	if second>>7 == 0 || control && length > 125 {
		return h, 0, ws.ProtocolError
	}
	least := uint64(0)
	switch length {
	case 126:
		length, ok = next(2)
		least = 126
	case 127:
		length, ok = next(8)
		least = 1 << 16
	}
	if !ok {
		return h, 0, 0
	}
	if length < least || length >= 1<<63 {
		return h, 0, ws.ProtocolError
	}
	h.Length = int64(length)
	for i := range 4 {
		x, ok := next(1)
		if !ok {
			return h, 0, 0
		}
		h.Mask |= ws.Mask(x) << (8 * i)
	}
	return h, n, 0
}

func codeOf(err error) ws.Code {
	if e, ok := errors.AsType[*ws.Error](err); ok {
		return e.Code
	}
	return 0
}

func FuzzHeader(f *testing.F) {
	for _, seed := range []string{
		"\x81\x85abcdhello", "\x82\xfe\x00\x7eabcd", "\x82\xfe\x00\x05abcd", "\x82\xff\x00\x00\x00\x00\x00\x01\x00\x00abcd", "\x82\xff\x80\x00\x00\x00\x00\x00\x00\x00abcd",
		"\x88\x82abcd", "\x09\x80abcd", "\xc9\x80abcd", "\x83", "\x91", "\x81\x05hello", "\x89\xfe", "\x81", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, n, err := ws.ParseHeader(b)
		want, wantN, code := plainHeader(b)
		if n != wantN || codeOf(err) != code || n > 0 && h != want {
			t.Fatalf("ParseHeader(%x) = %+v, %d, %v; the reference implementation returns %+v, %d, %d", b, h, n, err, want, wantN, code)
		}
		if n > 0 {
			for k := range n {
				if _, n, err := ws.ParseHeader(b[:k]); n != 0 || err != nil {
					t.Fatalf("%d of %d bytes: got %d, error %v", k, n, n, err)
				}
			}
		}
	})
}

func TestHeadersOfServer(t *testing.T) {
	for _, length := range []int{0, 1, 125, 126, 1<<16 - 1, 1 << 16, 1 << 20} {
		b := ws.AppendHeader(nil, ws.Binary, true, true, length)
		b[1] |= 0x80 // with a mask, as from a client
		h, n, err := ws.ParseHeader(append(b, 0, 0, 0, 0))
		want := ws.Header{Length: int64(length), Opcode: ws.Binary, Fin: true, Compressed: true}
		if err != nil || n != len(b)+4 || h != want {
			t.Errorf("length %d: got %+v, %d, error %v", length, h, n, err)
		}
	}
}

func FuzzMask(f *testing.F) {
	f.Add([]byte("some text that is longer than one step of the loop, by a few bytes"), uint32(0x04030201), uint8(5))
	f.Fuzz(func(t *testing.T, b []byte, mask uint32, cut uint8) {
		want := bytes.Clone(b)
		for i := range want {
			want[i] ^= byte(mask >> (8 * (i % 4)))
		}
		at := min(int(cut), len(b))
		ws.Mask(mask).Apply(b[:at]).Apply(b[at:])
		if !bytes.Equal(b, want) {
			t.Fatalf("got masked bytes %x, want %x", b, want)
		}
	})
}

// validPrefix reports whether more bytes can make b valid UTF-8. It tries all second bytes after a first one. Every later byte
// may be 0x80.
func validPrefix(b []byte) bool {
	for len(b) > 0 {
		if r, n := utf8.DecodeRune(b); r != utf8.RuneError || n > 1 {
			b = b[n:]
			continue
		}
		for second := byte(0x80); second < 0xc0; second++ {
			longer := bytes.Clone(b)
			if len(b) == 1 {
				longer = append(longer, second)
			}
			for len(longer) < utf8.UTFMax {
				if longer = append(longer, 0x80); utf8.Valid(longer) || utf8.Valid(longer[:len(longer)-1]) && len(longer)-1 > len(b) {
					return true
				}
			}
		}
		return false
	}
	return true
}

func FuzzUTF8(f *testing.F) {
	for _, seed := range []string{"κόσμε", "\xf4\x90", "\xed\xa0\x80", "\xc0\xaf", "a\xf0\x9f\x98", "\x80", "\xf0\x9f\x98\x80\xce"} {
		f.Add([]byte(seed), uint8(1), uint8(2))
	}
	f.Fuzz(func(t *testing.T, b []byte, first, second uint8) {
		if len(b) > 64 {
			b = b[:64]
		}
		i := min(int(first), len(b))
		j := min(i+int(second), len(b))
		var u ws.UTF8
		valid := true
		for n, piece := range [][]byte{b[:i], b[i:j], b[j:]} {
			valid = valid && u.Next(piece)
			if so := b[:[]int{i, j, len(b)}[n]]; valid != validPrefix(so) {
				t.Fatalf("%x: got valid %v", so, valid)
			}
		}
		if valid && u.Complete() != utf8.Valid(b) {
			t.Fatalf("%x: got complete %v", b, u.Complete())
		}
	})
}

func TestCloseCodes(t *testing.T) {
	for code, sendable := range map[ws.Code]bool{
		0: false, 999: false, 1000: true, 1001: true, 1002: true, 1003: true, 1004: false, 1005: false, 1006: false, 1007: true,
		1011: true, 1012: true, 1013: true, 1014: true, 1015: false, 1016: false, 1100: false, 2999: false, 3000: true, 4999: true, 5000: false, 65535: false,
	} {
		b := ws.AppendClose(nil, code, "why")
		if !sendable {
			if string(b) != "\x88\x00" {
				t.Errorf("code %d: got payload %x", code, b)
			}
			b = []byte{0x88, 5, byte(code >> 8), byte(code), 'w', 'h', 'y'}
		}
		got, reason, err := ws.ParseClose(b[2:])
		if sendable != (err == nil) || sendable && (got != code || reason != "why") {
			t.Errorf("%d: got %d, %q, %v", code, got, reason, err)
		}
	}
	for payload, code := range map[string]ws.Code{"\x03": ws.ProtocolError, "\x03\xe8\xff": ws.InvalidPayload} {
		if _, _, err := ws.ParseClose([]byte(payload)); codeOf(err) != code {
			t.Errorf("%x: got %v", payload, err)
		}
	}
	if code, _, err := ws.ParseClose(nil); code != ws.NoStatus || err != nil {
		t.Errorf("empty close frame: got %d, error %v", code, err)
	}
	if b := ws.AppendClose(nil, ws.Normal, strings.Repeat("é", 100)); len(b) != 2+2+122 || !utf8.Valid(b[4:]) {
		t.Errorf("long reason: got %x", b)
	}
}

func TestHandshakeKeys(t *testing.T) {
	if got := ws.AcceptKey("dGhlIHNhbXBsZSBub25jZQ=="); got != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" { // RFC 6455, section 1.3
		t.Error(got)
	}
	for key, valid := range map[string]bool{
		"dGhlIHNhbXBsZSBub25jZQ==": true, "": false, "dGhlIHNhbXBsZSBub25j": false, "dGhlIHNhbXBsZSBub25jZ===": false,
		"dGhlIHNhbXBsZSBub25jZWE=": false, "!GhlIHNhbXBsZSBub25jZQ==": false,
	} {
		if ws.ValidKey(key) != valid {
			t.Errorf("%q: got valid %v", key, !valid)
		}
	}
	if i := ws.Subprotocol("c, b ,a", []string{"a", "b"}); i != 1 {
		t.Errorf("got subprotocol %d", i)
	}
	if i := ws.Subprotocol("", []string{"a"}); i != -1 {
		t.Errorf("got subprotocol %d", i)
	}
	if !ws.HasToken("keep-alive, UPGRADE", "Upgrade") || ws.HasToken("upgrades", "upgrade") {
		t.Error("HasToken")
	}
}

func TestNegotiationOfDeflate(t *testing.T) {
	const base = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
	for offer, want := range map[string]string{
		"": "", "x-webkit-deflate-frame": "",
		"permessage-deflate":                                                         base,
		"permessage-deflate; client_max_window_bits":                                 base,
		"permessage-deflate; client_max_window_bits=10":                              base,
		"permessage-deflate;server_no_context_takeover":                              base,
		"permessage-deflate; server_max_window_bits=9":                               base + "; server_max_window_bits=9",
		`permessage-deflate; server_max_window_bits="15"`:                            base + "; server_max_window_bits=15",
		"permessage-deflate; server_max_window_bits":                                 "",
		"permessage-deflate; server_max_window_bits=7":                               "",
		"permessage-deflate; server_max_window_bits=16":                              "",
		"permessage-deflate; server_max_window_bits=09":                              "",
		"permessage-deflate; client_max_window_bits=x":                               "",
		"permessage-deflate; mode=fast":                                              "",
		"permessage-deflate; server_no_context_takeover=1":                           "",
		"permessage-deflate;":                                                        "",
		"permessage-deflate; mode=fast, permessage-deflate":                          base,
		"permessage-deflate; client_no_context_takeover; client_no_context_takeover": "",
	} {
		if got := ws.NegotiateDeflate(offer).Field(); got != want {
			t.Errorf("offer %q: got answer %q, want %q", offer, got, want)
		}
	}
}

func inflate(b []byte, limit int) ([]byte, error) { return ws.Inflate(b, limit, ws.Grown) }

func TestDeflateBothWays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, 70_000)
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	for name, message := range map[string][]byte{
		"empty": {}, "one byte": {'a'}, "text": []byte(strings.Repeat("some text ", 9000)), "random": random,
	} {
		for window := uint8(8); window <= 15; window++ {
			b := ws.AppendDeflated([]byte("before"), message, window)[len("before"):]
			got, err := inflate(b, max(len(message), 1))
			if err != nil || !bytes.Equal(got, message) {
				t.Errorf("%s, window %d: got %d bytes, %v", name, window, len(got), err)
			}
			// A receiver with that window, which discards all earlier bytes, must be able to decode it.
			small := flate.NewReader(io.MultiReader(bytes.NewReader(b), strings.NewReader("\x00\x00\xff\xff\x01\x00\x00\xff\xff")))
			if got, err := io.ReadAll(small); err != nil || !bytes.Equal(got, message) {
				t.Errorf("%s, window %d, by flate: got %d bytes, %v", name, window, len(got), err)
			}
		}
	}
}

func TestMatchesStayInWindow(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	unit := make([]byte, 300) // repeats at a distance of more than 256 bytes
	for i := range unit {
		unit[i] = byte(r.Uint32())
	}
	message := bytes.Repeat(unit, 40)
	near, far := ws.AppendDeflated(nil, message, 8), ws.AppendDeflated(nil, message, 15)
	if len(near) < len(message) || len(far) > len(message)/4 {
		t.Errorf("got %d bytes with a window of 256 bytes and %d with one of 32 KB, for %d bytes", len(near), len(far), len(message))
	}
}

func TestInflateBounds(t *testing.T) {
	bomb := ws.AppendDeflated(nil, make([]byte, 16<<20), 15)
	got, err := inflate(bomb, 1000)
	if codeOf(err) != ws.TooBig || cap(got) > 1024 {
		t.Errorf("bomb: capacity %d, %v", cap(got), err)
	}
	calls := 0
	_, err = ws.Inflate(bomb, 1<<30, func(b []byte, most int) []byte {
		if calls++; calls == 5 {
			return nil
		}
		return ws.Grown(b, most)
	})
	if err != ws.ErrStopped {
		t.Error(err)
	}
	exact := ws.AppendDeflated(nil, make([]byte, 1000), 15)
	if got, err := inflate(exact, 1000); err != nil || len(got) != 1000 {
		t.Errorf("message of the maximum length: got %d, %v", len(got), err)
	}
	for name, b := range map[string][]byte{
		"reserved block type": {0x07}, "stored length": {0x00, 0x05, 0x00, 0x00, 0x00, 'a'}, "cut": exact[:2],
		"data after the last block": append([]byte{0x03, 0x00}, "garbage"...),
	} {
		if _, err := inflate(b, 1<<20); codeOf(err) != ws.InvalidPayload {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

func FuzzInflate(f *testing.F) {
	f.Add(ws.AppendDeflated(nil, []byte("hello hello hello"), 15), uint16(100))
	f.Add([]byte{0x07}, uint16(1))
	f.Add([]byte{}, uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, most uint16) {
		limit := int(most) + 1
		got, err := inflate(b, limit)
		if len(got) > limit || cap(got) > max(limit, 512) {
			t.Fatalf("%d bytes, capacity %d, of at most %d", len(got), cap(got), limit)
		}
		plain := flate.NewReader(io.MultiReader(bytes.NewReader(b), strings.NewReader("\x00\x00\xff\xff\x01\x00\x00\xff\xff")))
		want, wantErr := io.ReadAll(io.LimitReader(plain, int64(limit)+1))
		if err == nil && (wantErr != nil || !bytes.Equal(got, want)) {
			t.Fatalf("%x: got %x, package flate returns %x, error %v", b, got, want, wantErr)
		}
		if codeOf(err) == ws.TooBig && len(want) <= limit {
			t.Fatalf("%x: got an error for %d bytes with a limit of %d", b, len(want), limit)
		}
	})
}

func BenchmarkMask(b *testing.B) {
	p := make([]byte, 1<<10)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		ws.Mask(0x01020304).Apply(p)
	}
}
