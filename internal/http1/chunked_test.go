package http1_test

import (
	"bytes"
	"io"
	"net/http/httputil"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// A body is the outcome of a chunked body.
type body struct {
	data     string
	trailers string // name=value lines
	n        int64  // number of consumed bytes, if done
	done     bool
	err      error
}

// decode passes in to a decoder in pieces, split at the offsets in cuts, with room for size bytes of data per call.
func decode(in []byte, lim *http1.Limits, maxBody int64, size int, cuts []int) (b body) {
	var c http1.Chunked
	c.Reset(lim, maxBody)
	dst := make([]byte, size)
	at := 0
	for _, cut := range append(cuts, len(in)) {
		src := append([]byte(nil), in[at:max(at, cut)]...)
		for {
			nDst, nSrc, err := c.Decode(dst, src)
			b.data += string(dst[:nDst])
			src = src[nSrc:]
			at += nSrc
			if err != nil {
				b.err = err
				return b
			}
			if nDst == 0 && nSrc == 0 {
				break
			}
		}
	}
	if b.done = c.Done(); b.done {
		b.n = int64(at)
	}
	for i := range c.TrailerLen() {
		name, value := c.Trailer(i)
		b.trailers += string(name) + "=" + string(value) + "\n"
	}
	return b
}

func TestChunkedAccepted(t *testing.T) {
	for _, c := range []struct{ in, data, trailers string }{
		{"0\r\n\r\n", "", ""},
		{"5\r\nhello\r\n0\r\n\r\n", "hello", ""},
		{"5\r\nhello\r\n00006\r\n world\r\n000\r\n\r\n", "hello world", ""},
		{"00000000000000A\r\n0123456789\r\n0\r\n\r\n", "0123456789", ""},
		{"a\r\n01234\r\n789\r\n0\r\n\r\n", "01234\r\n789", ""},
		{"1;a\r\nx\r\n0;b=\"c d\"\r\n\r\n", "x", ""},
		{"1 \t;a\r\nx\r\n0\r\n\r\n", "x", ""},
		{"0\r\nDigest: abc\r\nX-Sum:  1 \r\n\r\n", "", "Digest=abc\nX-Sum=1\n"},
	} {
		lim := http1.DefaultLimits()
		got := decode([]byte(c.in+"next"), &lim, -1, 4, nil)
		want := body{data: c.data, trailers: c.trailers, n: int64(len(c.in)), done: true}
		if got != want {
			t.Errorf("%q:\ngot  %+v\nwant %+v", c.in, got, want)
		}
	}
}

// chunkedRefusals are bodies that are refused. The data before the error is returned.
var chunkedRefusals = []refusal{
	// Sizes.
	{"\r\n", 400, 0, "invalid chunk size byte 0x0D"},
	{"\n", 400, 0, "invalid chunk size byte 0x0A"},
	{" 5\r\n", 400, 0, "invalid chunk size byte 0x20"},
	{"g\r\n", 400, 0, "invalid chunk size byte 0x67"},
	{"-1\r\n", 400, 0, "invalid chunk size byte 0x2D"},
	{"+1\r\n", 400, 0, "invalid chunk size byte 0x2B"},
	{"0x5\r\n", 400, 1, "invalid chunk size byte 0x78"},
	{"5_0\r\n", 400, 1, "invalid chunk size byte 0x5F"},
	{"5 \r\n", 400, 2, "invalid chunk size byte 0x0D"},
	{"5 5\r\n", 400, 2, "invalid chunk size byte 0x35"},
	{";a\r\n", 400, 0, "invalid chunk size byte 0x3B"},
	{"8000000000000000\r\n", 400, 15, "chunk size overflows"},
	{"FFFFFFFFFFFFFFFFF\r\n", 400, 15, "chunk size overflows"},
	{"00000000000000001\r\n", 400, 16, "chunk size overflows"},

	// Line ends: a server that accepts a bare LF, or any two bytes after the data, finds different chunks from a server that does
	// not.
	{"5\nhello\r\n", 400, 1, "bare LF"},
	{"5\rhello\r\n", 400, 2, "bare CR"},
	{"5;a\nhello\r\n", 400, 3, "bare LF"},
	{"5;a\rb\r\nhello\r\n", 400, 4, "bare CR"},
	{"5;\x00\r\n", 400, 2, "control byte in a chunk extension 0x00"},
	{"5\r\nhello\n0\r\n\r\n", 400, 8, "missing CRLF after chunk data"},
	{"5\r\nhelloXX0\r\n\r\n", 400, 8, "missing CRLF after chunk data"},
	{"5\r\nhello\rX0\r\n\r\n", 400, 9, "missing CRLF after chunk data"},
	{"5\r\nhello0\r\n\r\n", 400, 8, "missing CRLF after chunk data"},
	{"0\n\r\n", 400, 1, "bare LF"},
	{"0\r\n\n", 400, 3, "bare LF"},
	{"0\r\n\rX\n", 400, 3, "bare CR"},

	// Trailers.
	{"0\r\nA : b\r\n", 400, 4, "space in a field name or before its colon"},
	{"0\r\nA: b\r\n c\r\n", 400, 9, "folded field line"},
	{"0\r\nA: \x00\r\n", 400, 6, "control byte in a field value 0x00"},
	{"0\r\nA: b\n", 400, 7, "bare LF"},
	{"0\r\nA\r\n", 400, 4, "field line without a colon"},
	{"0\r\nA: b\r\nContent-Length: 3\r\n", 400, 9, "field not allowed in a trailer"},
	{"0\r\nTransfer-Encoding: chunked\r\n", 400, 3, "field not allowed in a trailer"},
	{"0\r\nhost: a\r\n", 400, 3, "field not allowed in a trailer"},
	{"0\r\nAUTHORIZATION: a\r\n", 400, 3, "field not allowed in a trailer"},
	{"0\r\nX-Forwarded-For: a\r\n", 400, 3, "field not allowed in a trailer"},
}

func TestChunkedRefused(t *testing.T) {
	lim := http1.DefaultLimits()
	for _, c := range chunkedRefusals {
		got := decode([]byte(c.head), &lim, -1, 100, nil)
		checkError(t, c.head, 0, got.err, c)
	}
}

func TestChunkedLimits(t *testing.T) {
	lim := http1.Limits{MaxFields: 2, MaxTrailer: 20, MaxExtension: 6, MaxChunks: 4}
	const maxBody = 10
	for _, c := range []struct {
		in   string
		want refusal
	}{
		{in: "a\r\n0123456789\r\n0\r\n\r\n"},
		{"b\r\n", refusal{status: 413, at: 2, why: "body too large"}},
		{"8\r\n01234567\r\n3\r\n", refusal{status: 413, at: 15, why: "body too large"}},
		{"7fffffffffffffff\r\n", refusal{status: 413, at: 17, why: "body too large"}},
		{in: "1;ab\r\nx\r\n1 ;a\r\nx\r\n0\r\n\r\n"},
		{"1;ab\r\nx\r\n1 ;ab\r\nx\r\n0\r\n\r\n", refusal{status: 400, at: 13, why: "chunk extensions too long (the limit is 6)"}},
		{in: strings.Repeat("1\r\nx\r\n", 4) + "0\r\n\r\n"},
		{strings.Repeat("1\r\nx\r\n", 5) + "0\r\n\r\n", refusal{status: 400, at: 26, why: "too many small chunks (the limit is 4)"}},
		{in: "0\r\nA: 1234567890123\r\n\r\n"},
		{"0\r\nA: 123456789012345678", refusal{status: 431, at: 23, why: "trailer section too large (the limit is 20)"}},
		{in: "0\r\nA:\r\nB:\r\n\r\n"},
		{"0\r\nA:\r\nB:\r\nC:\r\n\r\n", refusal{status: 431, at: 11, why: "too many fields (the limit is 2)"}},
	} {
		got := decode([]byte(c.in), &lim, maxBody, 100, nil)
		if c.want.status != 0 {
			checkError(t, c.in, 0, got.err, c.want)
		} else if got.err != nil {
			t.Errorf("%q: got error %v", c.in, got.err)
		}
	}
}

// TestChunkedNext reads without copying, and checks the number of remaining bytes.
func TestChunkedNext(t *testing.T) {
	lim := http1.DefaultLimits()
	var c http1.Chunked
	c.Reset(&lim, -1)
	src := []byte("5\r\nhello\r\n0\r\n\r\nGET")
	data, n, err := c.Next(src[:5])
	if string(data) != "he" || n != 5 || err != nil || c.Remaining() != 3 || c.Decoded() != 2 {
		t.Errorf("Next: got %q, %d, error %v; %d bytes remaining after %d", data, n, err, c.Remaining(), c.Decoded())
	}
	data, n, err = c.Next(src[5:])
	if string(data) != "llo" || n != 3 || err != nil || &data[0] != &src[5] || cap(data) != 3 {
		t.Errorf("Next: got %q, %d, error %v, want a view", data, n, err)
	}
	data, n, err = c.Next(src[8:])
	if len(data) != 0 || n != 7 || err != nil || !c.Done() || c.Remaining() != 0 {
		t.Errorf("Next: got %q, %d, error %v, done: %v", data, n, err, c.Done())
	}
	if data, n, err = c.Next(src[15:]); len(data) != 0 || n != 0 || err != nil {
		t.Errorf("Next after the end: got %q, %d, error %v", data, n, err)
	}
}

func TestChunkedInPlace(t *testing.T) {
	buf := []byte("5\r\nhello\r\n1;x\r\n \r\n5\r\nworld\r\n0\r\n\r\n")
	lim := http1.DefaultLimits()
	var c http1.Chunked
	c.Reset(&lim, -1)
	nDst, nSrc, err := c.Decode(buf, buf)
	if string(buf[:nDst]) != "hello world" || nSrc != len(buf) || err != nil || !c.Done() {
		t.Errorf("Decode: got %q, %d, error %v, done: %v", buf[:nDst], nSrc, err, c.Done())
	}
}

// TestChunkedReuse checks that the state of one body does not affect the next one.
func TestChunkedReuse(t *testing.T) {
	lim := http1.DefaultLimits()
	var c http1.Chunked
	for _, in := range []string{"1;a\r\nx\r\n0\r\nA: b\r\n\r\n", "zz", "0\r\n" + "B: " + strings.Repeat("b", 600) + "\r\n\r\n"} {
		c.Reset(&lim, -1)
		c.Decode(make([]byte, 8), []byte(in))
	}
	c.Reset(&lim, 1)
	if _, n, err := c.Decode(make([]byte, 1), []byte("1\r\nx\r\n0\r\n\r\n")); n != 11 || err != nil || !c.Done() || c.TrailerLen() != 0 {
		t.Errorf("got n = %d, err = %v, done: %v, %d trailers", n, err, c.Done(), c.TrailerLen())
	}
}

func TestChunkedAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("race builds allocate more")
	}
	lim := http1.DefaultLimits()
	src, dst := []byte("5;a=b\r\nhello\r\n0\r\nA: b\r\n\r\n"), make([]byte, 16)
	var c http1.Chunked
	if n := testing.AllocsPerRun(100, func() { c.Reset(&lim, -1); c.Decode(dst, src) }); n != 0 {
		t.Errorf("got %v allocations", n)
	}
}

// TestChunkWriters reads the output of this package with net/http's reader.
func TestChunkWriters(t *testing.T) {
	for _, n := range []int{1, 9, 10, 15, 16, 17, 255, 256, 4095, 4096, 65536} {
		data := bytes.Repeat([]byte("d"), n)
		appended := http1.AppendChunkHeader(nil, n)
		room := make([]byte, http1.MaxChunkHeader)
		if put := room[http1.PutChunkHeader(room, n):]; !bytes.Equal(put, appended) {
			t.Errorf("PutChunkHeader writes %q, AppendChunkHeader writes %q", put, appended)
		}
		encoded := append(append(appended, data...), http1.CRLF+http1.EndOfChunks...)
		got, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(encoded)))
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: net/http read %d, error %v", n, len(got), err)
		}
		lim := http1.DefaultLimits()
		if b := decode(encoded, &lim, -1, 1<<17, nil); b.data != string(data) || !b.done {
			t.Errorf("%d bytes: Chunked read %d, done: got %v", n, len(b.data), b.done)
		}
	}
	const maxInt = int(^uint(0) >> 1)
	room := make([]byte, http1.MaxChunkHeader)
	if got := string(room[http1.PutChunkHeader(room, maxInt):]); got != string(http1.AppendChunkHeader(nil, maxInt)) {
		t.Errorf("largest header: got %q", got)
	}
}
