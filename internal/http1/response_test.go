package http1_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/semantics"
)

// TestStatusLines compares the status lines of all codes with the text of net/http, so that both engines send the same
// bytes.
func TestStatusLines(t *testing.T) {
	for code := 100; code <= 999; code++ {
		reason := http.StatusText(code)
		if reason == "" {
			reason = fmt.Sprint("status code ", code)
		}
		for minor, appendLine := range []func([]byte, int) []byte{http1.AppendStatusLine10, http1.AppendStatusLine} {
			want := fmt.Sprintf("kept HTTP/1.%d %d %s\r\n", minor, code, reason)
			if got := string(appendLine([]byte("kept "), code)); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
	for _, code := range []int{-1, 0, 99, 1000, math.MaxInt, math.MinInt} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("got no panic")
				}
			}()
			http1.AppendStatusLine(nil, code)
		})
	}
}

func TestAppendContentLength(t *testing.T) {
	for _, n := range []int64{0, 1, 9, 10, 11, 99, 100, 101, 999, 12345, 1_000_000, math.MaxInt64} {
		want := fmt.Sprintf("Content-Length: %d\r\n", n)
		if got := string(http1.AppendContentLength(nil, n)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// appendResponse combines the parts of a response.
func appendResponse(dst []byte, d *http1.DateCache, code int, name, value string, body []byte, chunked bool) []byte {
	dst = http1.AppendStatusLine(dst, code)
	dst = http1.AppendField(dst, name, value)
	dst = d.AppendField(dst, 784111777)
	switch {
	case chunked:
		dst = append(dst, http1.TransferEncodingChunked+http1.CRLF...)
		if len(body) > 0 {
			dst = append(http1.AppendChunkHeader(dst, len(body)), body...)
			dst = append(dst, http1.CRLF...)
		}
		dst = append(dst, http1.LastChunk...)
		dst = http1.AppendField(dst, "X-Trailer", value)
		return append(dst, http1.CRLF...)
	case http1.LengthAllowed(semantics.MethodGet, code):
		dst = http1.AppendContentLength(dst, int64(len(body)))
	}
	dst = append(dst, http1.CRLF...)
	if http1.BodyAllowed(semantics.MethodGet, code) {
		dst = append(dst, body...)
	}
	return dst
}

// FuzzResponse reads the output of this package with net/http: the field and the body are unchanged, and no bytes remain.
func FuzzResponse(f *testing.F) {
	f.Add(uint16(200), "Content-Type", "text/plain", []byte("hello"), false)
	f.Add(uint16(204), "X", "", []byte("no body"), false)
	f.Add(uint16(304), "Etag", `"a b"`, []byte{}, false)
	f.Add(uint16(299), "X-A", "caf\u00e9\t.", []byte("hello"), true)
	f.Add(uint16(500), "A", "b\r\nC: d", []byte("split"), false)
	f.Add(uint16(421), "0", strings.Repeat("\xb5", 5000), []byte{}, true)
	f.Fuzz(func(t *testing.T, code uint16, name, value string, body []byte, chunked bool) {
		status := 200 + int(code)%800
		canonical := http.CanonicalHeaderKey(name)
		switch canonical {
		case "Content-Length", "Transfer-Encoding", "Date", "Trailer", "Connection":
			return // these fields describe the message itself
		}
		if semantics.CheckField(name, value) != nil {
			return
		}
		chunked = chunked && http1.BodyAllowed(semantics.MethodGet, status)
		var d http1.DateCache
		encoded := appendResponse(nil, &d, status, name, value, body, chunked)
		// net/http needs the entire trailer section in its buffer.
		r := bufio.NewReaderSize(bytes.NewReader(encoded), max(4096, len(encoded)))
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%q: got error %v", encoded, err)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("%q: got error %v", encoded, err)
		}
		if !http1.BodyAllowed(semantics.MethodGet, status) {
			body = nil
		}
		values := resp.Header[canonical]
		if values == nil {
			values = resp.Header[name] // net/http does not canonicalize some names
		}
		want := strings.Trim(value, " \t")
		if resp.StatusCode != status || !bytes.Equal(got, body) || len(values) != 1 || values[0] != want {
			t.Errorf("%q: net/http read status %d, values %q, body %q", encoded, resp.StatusCode, values, got)
		}
		if chunked && resp.Trailer.Get("X-Trailer") != want {
			t.Errorf("%q: got trailer %q", encoded, resp.Trailer)
		}
		if rest, _ := io.ReadAll(r); len(rest) > 0 {
			t.Errorf("%q: got remaining bytes %q", encoded, rest)
		}
	})
}

func TestConstantLines(t *testing.T) {
	for got, want := range map[string]string{
		http1.ConnectionClose:         "Connection: close\r\n",
		http1.ConnectionKeepAlive:     "Connection: keep-alive\r\n",
		http1.TransferEncodingChunked: "Transfer-Encoding: chunked\r\n",
		http1.Continue:                "HTTP/1.1 100 Continue\r\n\r\n",
		http1.EndOfChunks:             "0\r\n\r\n",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestBodyAllowed(t *testing.T) {
	for _, c := range []struct {
		method       semantics.Method
		status       int
		body, length bool
	}{
		{semantics.MethodGet, 200, true, true},
		{semantics.MethodGet, 404, true, true},
		{semantics.MethodGet, 205, true, true}, // the body is empty, and Content-Length is 0
		{semantics.MethodHead, 200, false, true},
		{semantics.MethodHead, 204, false, false},
		{semantics.MethodGet, 100, false, false},
		{semantics.MethodGet, 101, false, false},
		{semantics.MethodGet, 199, false, false},
		{semantics.MethodPost, 204, false, false},
		{semantics.MethodGet, 304, false, true},
		{semantics.MethodConnect, 200, false, false},
		{semantics.MethodConnect, 407, true, true},
	} {
		if got := http1.BodyAllowed(c.method, c.status); got != c.body {
			t.Errorf("BodyAllowed(%v, %d): got %v", c.method, c.status, got)
		}
		if got := http1.LengthAllowed(c.method, c.status); got != c.length {
			t.Errorf("LengthAllowed(%v, %d): got %v", c.method, c.status, got)
		}
	}
}

func TestDateCache(t *testing.T) {
	var d http1.DateCache
	for _, c := range []struct {
		second int64
		want   string
	}{
		{0, "Thu, 01 Jan 1970 00:00:00 GMT"}, // the zero second of a zero cache
		{784111777, "Sun, 06 Nov 1994 08:49:37 GMT"},
		{784111777, "Sun, 06 Nov 1994 08:49:37 GMT"},
		{784111778, "Sun, 06 Nov 1994 08:49:38 GMT"},
		{784111777, "Sun, 06 Nov 1994 08:49:37 GMT"}, // a clock may step back
		{-1, "Thu, 01 Jan 1970 00:00:00 GMT"},
		{253402300799, "Fri, 31 Dec 9999 23:59:59 GMT"},
		{253402300800, "Fri, 31 Dec 9999 23:59:59 GMT"},
	} {
		if got := string(d.Append([]byte("kept "), c.second)); got != "kept "+c.want {
			t.Errorf("second %d: got %q, want %q", c.second, got, c.want)
		}
		if got, want := string(d.AppendField(nil, c.second)), "Date: "+c.want+"\r\n"; got != want {
			t.Errorf("second %d: got %q, want %q", c.second, got, want)
		}
	}
	now := time.Now()
	if got, want := string(d.Append(nil, now.Unix())), now.UTC().Format(http.TimeFormat); got != want {
		t.Errorf("now: got %q, want %q", got, want)
	}
}

func TestOpening(t *testing.T) {
	var o http1.Opening
	var d http1.DateCache
	for code := 100; code <= 999; code++ {
		for _, at := range []int64{0, 1, 1_700_000_000} {
			for range 2 { // first rendered, then cached
				want := d.AppendField(http1.AppendStatusLine([]byte("kept "), code), at)
				if got := o.Append([]byte("kept "), code, at); string(got) != string(want) {
					t.Fatalf("got %q, want %q", got, want)
				}
			}
		}
	}
}

func TestAppendLastLength(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 99, 100, 12345, math.MaxInt} {
		want := fmt.Sprintf("kept Content-Length: %d\r\n\r\n", n)
		if got := http1.AppendLastLength([]byte("kept "), n); string(got) != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestResponseAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("race builds allocate more")
	}
	var d http1.DateCache
	buf := make([]byte, 0, 512)
	second := int64(0)
	n := testing.AllocsPerRun(100, func() {
		second++ // so that the date is rendered each time
		buf = http1.AppendStatusLine(buf[:0], 200)
		buf = http1.AppendStatusLine10(buf, 299)
		buf = http1.AppendField(buf, "A", "b")
		buf = http1.AppendContentLength(buf, 12345)
		buf = http1.AppendChunkHeader(buf, 12345)
		buf = d.AppendField(buf, second)
	})
	if n != 0 {
		t.Errorf("got %v allocations", n)
	}
}
