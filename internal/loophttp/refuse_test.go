//go:build linux

package loophttp_test

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dunlinhttp/dunlin"
	"github.com/dunlinhttp/dunlin/internal/suite"
)

// A malformed request is answered once, and the connection closes. No following bytes are taken for a request, however harmless
// they look.
func TestLoopRefusals(t *testing.T) {
	var ran atomic.Int32 // number of actions run
	_, addr, _ := suite.StartLoop(t, dunlin.Config{Limits: dunlin.Limits{MaxHead: 16 << 10}}, func(app *dunlin.App) {
		app.NotFound(func(r *dunlin.Request) dunlin.Response {
			ran.Add(1)
			if _, err := r.Bytes(); err != nil {
				return dunlin.Error(err)
			}
			return dunlin.NotFound()
		})
	})
	chunked := func(body string) string { return suite.Request("POST /x", "Transfer-Encoding: chunked", "", body) }
	var fields strings.Builder
	for i := range 200 {
		fmt.Fprintf(&fields, "A%d: b\r\n", i)
	}
	for _, c := range []struct {
		status     int
		name, send string
	}{
		{400, "no HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"},
		{400, "two empty lines in front", "\r\n\r\n" + suite.Request("GET /x")},
		{400, "lower-case version", "GET /x http/1.1\r\nHost: h\r\n\r\n"},
		{400, "no version", "GET /x\r\nHost: h\r\n\r\n"},
		{400, "two spaces", "GET  /x HTTP/1.1\r\nHost: h\r\n\r\n"},
		{400, "tab for a space", "GET\t/x HTTP/1.1\r\nHost: h\r\n\r\n"},
		{400, "fragment", suite.Request("GET /x#y")},
		{400, "bare LF", "GET /x HTTP/1.1\nHost: h\n\n"},
		{400, "bare CR in a value", suite.Request("GET /x", "A: b\rc")},
		{400, "bare CR in front of a name", suite.Request("GET /x", "\rA: b")},
		{400, "NUL in a value", suite.Request("GET /x", "A: b\x00c")},
		{400, "folded line", suite.Request("GET /x", "A: b", " c")},
		{400, "blank in front of the first field", "GET /x HTTP/1.1\r\n Host: h\r\n\r\n"},
		{400, "blank before the colon", suite.Request("POST /x", "Content-Length : 5")},
		{400, "empty field name", suite.Request("GET /x", ": b")},
		{400, "non-ASCII field name", suite.Request("GET /x", "Ä: b")},
		{400, "line without a colon", suite.Request("GET /x", "A")},
		{400, "no Host", "GET /x HTTP/1.1\r\n\r\n"},
		{400, "two Hosts", suite.Request("GET /x", "Host: h2")},
		{400, "Host with a blank", "GET /x HTTP/1.1\r\nHost: a b\r\n\r\n"},
		{400, "Host with a path", "GET /x HTTP/1.1\r\nHost: a/b\r\n\r\n"},

		{400, "length and chunks", suite.Request("POST /x", "Content-Length: 3", "Transfer-Encoding: chunked") + "0\r\n\r\n"},
		{400, "chunks and length", suite.Request("POST /x", "Transfer-Encoding: chunked", "Content-Length: 3") + "0\r\n\r\n"},
		{400, "lengths that differ", suite.Request("POST /x", "Content-Length: 0", "Content-Length: 44")},
		{400, "list of lengths that differ", suite.Request("POST /x", "Content-Length: 0, 44")},
		{400, "signed length", suite.Request("POST /x", "Content-Length: +0")},
		{400, "negative length", suite.Request("POST /x", "Content-Length: -1")},
		{400, "hex length", suite.Request("POST /x", "Content-Length: 0x0")},
		{400, "length with a blank", suite.Request("POST /x", "Content-Length: 0 0")},
		{400, "empty length", suite.Request("POST /x", "Content-Length:")},
		{400, "length beyond 63 bits", suite.Request("POST /x", "Content-Length: 9223372036854775808")},
		{400, "length that wraps to 0", suite.Request("POST /x", "Content-Length: 18446744073709551616")},
		{400, "chunked twice", suite.Request("POST /x", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + "0\r\n\r\n"},
		{400, "chunked, then another", suite.Request("POST /x", "Transfer-Encoding: chunked, gzip") + "0\r\n\r\n"},
		{501, "a coding that was withdrawn", suite.Request("POST /x", "Transfer-Encoding: identity")},
		{400, "not quite chunked", suite.Request("POST /x", "Transfer-Encoding: chunked\v") + "0\r\n\r\n"},
		{400, "chunks in HTTP/1.0", "POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{501, "unknown coding alone", suite.Request("POST /x", "Transfer-Encoding: gzip")},
		{501, "unknown coding", suite.Request("POST /x", "Transfer-Encoding: gzip, chunked") + "0\r\n\r\n"},

		{400, "chunk size of no digits", chunked("\r\n\r\n")},
		{400, "chunk size with a sign", chunked("+0\r\n\r\n")},
		{400, "chunk size with 0x", chunked("0x0\r\n\r\n")},
		{400, "chunk size in brackets", chunked("(0)\r\n\r\n")},
		{400, "chunk size that wraps", chunked("10000000000000000\r\n\r\n")},
		{400, "bare LF after a size", chunked("0\n\r\n")},
		{400, "bare LF after data", chunked("1\r\na\n0\r\n\r\n")},
		{400, "data longer than its size", chunked("1\r\nab\r\n0\r\n\r\n")},
		{400, "NUL in an extension", chunked("0;a=\x00\r\n\r\n")},
		{400, "extensions without end", chunked("0;" + strings.Repeat("a", 5000) + "\r\n\r\n")},
		{400, "framing in a trailer", chunked("0\r\nTransfer-Encoding: chunked\r\n\r\n")},
		{400, "Host in a trailer", chunked("0\r\nHost: evil\r\n\r\n")},
		{431, "long trailer", chunked("0\r\nA: " + strings.Repeat("b", 5000) + "\r\n\r\n")},

		{414, "long target", suite.Request("GET /" + strings.Repeat("x", 17_000))},
		{431, "long field", suite.Request("GET /x", "A: "+strings.Repeat("b", 17_000))},
		{431, "long name", suite.Request("GET /x", strings.Repeat("b", 17_000))},
		{431, "many fields", "GET /x HTTP/1.1\r\nHost: h\r\n" + fields.String() + "\r\n"},
		{501, "long method", suite.Request(strings.Repeat("M", 40) + " /x")},
		{505, "HTTP/2.0", "GET /x HTTP/2.0\r\nHost: h\r\n\r\n"},
		{505, "preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		{417, "unknown expectation", suite.Request("POST /x", "Expect: 200-ok", "Content-Length: 1")},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := suite.Dial(t, addr)
			suite.Send(t, conn, suite.Request("GET /probe")+c.send+strings.Repeat(suite.Request("GET /smuggled"), 3))
			br := bufio.NewReader(conn)
			suite.Answered(t, br, 200, "probe")
			got, err := suite.ReadAnswer(br, "GET")
			if err != nil || len(got) < 12 || got[9:12] != fmt.Sprint(c.status) {
				t.Fatalf("answered with %q, %v; want %d", got, err, c.status)
			}
			suite.WantContains(t, "the refusal", got, "Connection: close\n", "Content-Type: application/problem+json\n")
			suite.WantEnd(t, br)
			if n := ran.Swap(0); n != 0 {
				t.Errorf("%d actions ran", n)
			}
		})
	}
}

// A refusal names the exceeded limit, also if the limit on heads is the lower one. A refused HEAD gets no body.
func TestLoopRefusalsOfSmallHeads(t *testing.T) {
	_, addr, _ := suite.StartLoop(t, dunlin.Config{Limits: dunlin.Limits{MaxHead: 1024}}, func(*dunlin.App) {})
	for _, c := range []struct {
		status             int
		name, method, send string
	}{
		{414, "long target", "GET", suite.Request("GET /" + strings.Repeat("x", 1500))},
		{431, "long field", "GET", suite.Request("GET /x", "A: "+strings.Repeat("b", 1500))},
		{431, "target and fields", "GET", suite.Request("GET /"+strings.Repeat("x", 700), "A: "+strings.Repeat("b", 700))},
		{431, "long field of HEAD", "HEAD", suite.Request("HEAD /x", "A: "+strings.Repeat("b", 1500))},
		{414, "long target of HEAD", "HEAD", suite.Request("HEAD /" + strings.Repeat("x", 1500))},
		{400, "malformed field of HEAD", "HEAD", suite.Request("HEAD /x", "A")},
		{400, "malformed method after HEAD", "GET", suite.Request("HEAD /probe") + "G(T /x HTTP/1.1\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := suite.Dial(t, addr)
			for _, b := range []byte(c.send) { // the head is stored between its pieces
				if _, err := conn.Write([]byte{b}); err != nil {
					break // already refused
				}
			}
			br := bufio.NewReader(conn)
			if strings.HasPrefix(c.send, "HEAD /probe") {
				_, _ = suite.ReadAnswer(br, "HEAD")
			}
			got, err := suite.ReadAnswer(br, c.method)
			if err != nil || got[9:12] != fmt.Sprint(c.status) {
				t.Fatalf("answered with %q, %v; want %d", got, err, c.status)
			}
			suite.WantContains(t, "the refusal", got, "Content-Length: ")
			suite.WantEnd(t, br)
		})
	}
}

// A body found malformed or too large after its action began also ends the connection.
func TestLoopRefusalsWithinStreams(t *testing.T) {
	var smuggled atomic.Int32
	_, addr, _ := suite.StartLoop(t, dunlin.Config{Limits: dunlin.Limits{MaxBody: 100 << 10}}, func(app *dunlin.App) {
		app.Post("/read", func(r *dunlin.Request) dunlin.Response {
			if n, err := io.Copy(io.Discard, r.Body()); err != nil {
				return dunlin.Error(err).Header("X-Read", fmt.Sprint(n > 0))
			}
			return dunlin.Text("read")
		})
		app.NotFound(func(*dunlin.Request) dunlin.Response { smuggled.Add(1); return dunlin.NotFound() })
	})
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 70<<10, strings.Repeat("x", 70<<10))
	for _, c := range []struct {
		status     int
		name, send string
	}{
		{400, "bad chunk size", suite.Request("POST /read", "Transfer-Encoding: chunked", "", chunk+"z\r\n")},
		{400, "missing CRLF", suite.Request("POST /read", "Transfer-Encoding: chunked", "", chunk[:len(chunk)-2]+"0\r\n\r\n")},
		{431, "long trailer", suite.Request("POST /read", "Transfer-Encoding: chunked", "", chunk+"0\r\nA: "+strings.Repeat("b", 5000)+"\r\n\r\n")},
		{413, "too many chunks", suite.Request("POST /read", "Transfer-Encoding: chunked", "", chunk+chunk+"0\r\n\r\n")},
		{413, "too long", suite.Request("POST /read", "", strings.Repeat("x", 200<<10))},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := suite.Dial(t, addr)
			go func() { _, _ = io.WriteString(conn, c.send+suite.Request("GET /smuggled")) }()
			br := bufio.NewReader(conn)
			got, err := suite.ReadAnswer(br, "POST")
			if err != nil || got[9:12] != fmt.Sprint(c.status) {
				t.Fatalf("answered with %q, %v; want %d", got, err, c.status)
			}
			suite.WantContains(t, "the refusal", got, "Connection: close\n")
			suite.WantEnd(t, br)
			if n := smuggled.Load(); n != 0 {
				t.Errorf("the body was taken for %d requests", n)
			}
		})
	}
}
