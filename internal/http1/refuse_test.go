package http1_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/http1"
)

// A refusal is a head that is refused, with the status, the offset and the reason.
type refusal struct {
	head   string
	status int
	at     int64
	why    string // message up to the offset
}

const (
	getLine  = "GET / HTTP/1.1\r\n" // 16 bytes
	postLine = "POST / HTTP/1.1\r\nHost: a\r\n"
)

var refusals = []refusal{
	// Before the request line, and other protocols.
	{"\r\n\r\nGET / HTTP/1.1\r\n", 400, 2, "more than one empty line"},
	{"\nGET", 400, 0, "bare LF"},
	{"\rGET", 400, 0, "bare CR"},
	{" GET / HTTP/1.1\r\n", 400, 0, "invalid method byte 0x20"},
	{"\x16\x03\x01", 400, 0, "invalid method byte 0x16"}, // a TLS client
	{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, 6, "unsupported HTTP version"},

	// Request line.
	{"GET\r\n", 400, 3, "missing HTTP version"},
	{"GET / HTTP/1.1\n", 400, 14, "bare LF"},
	{"GET /\n", 400, 5, "bare LF"},
	{"GET\n", 400, 3, "bare LF"},
	{"GET / HTTP/1.1 \r\n", 400, 14, "extra space"},
	{"GET /a b HTTP/1.1\r\n", 400, 8, "extra space"},
	{"GET  / HTTP/1.1\r\n", 400, 4, "extra space"},
	{"GET /  HTTP/1.1\r\n", 400, 6, "extra space"},
	{"GET\t/ HTTP/1.1\r\n", 400, 3, "invalid method byte 0x09"},
	{"GE(T / HTTP/1.1\r\n", 400, 2, "invalid method byte 0x28"},
	{strings.Repeat("M", 33) + " / HTTP/1.1\r\n", 501, 0, "method too long"},
	{"GET /a\rb HTTP/1.1\r\n", 400, 6, "bare CR"},
	{"GE\rT / HTTP/1.1\r\n", 400, 2, "bare CR"},
	{"GET / HTTP\r/1.1\r\n", 400, 10, "bare CR"},
	{"GET /\r\n", 400, 5, "missing HTTP version"},
	{"GET / \r\n", 400, 6, "missing HTTP version"},
	{"GET / http/1.1\r\n", 400, 6, "malformed HTTP version"},
	{"GET / HTTP/1\r\n", 400, 6, "malformed HTTP version"},
	{"GET / HTTP/1.10\r\n", 400, 6, "malformed HTTP version"},
	{"GET / HTTP/1,1\r\n", 400, 6, "malformed HTTP version"},
	{"GET / HTTP/2.0\r\n", 505, 6, "unsupported HTTP version"},
	{"GET / HTTP/0.9\r\n", 505, 6, "unsupported HTTP version"},

	// Target.
	{"GET /\x00 HTTP/1.1\r\n", 400, 5, "invalid target byte 0x00"},
	{"GET /\t HTTP/1.1\r\n", 400, 5, "invalid target byte 0x09"},
	{"GET /?\x7f HTTP/1.1\r\n", 400, 6, "invalid target byte 0x7F"},
	{"GET /caf\u00e9 HTTP/1.1\r\n", 400, 8, "invalid target byte 0xC3"},
	{"GET /a#b HTTP/1.1\r\n", 400, 6, "fragment in the target"},
	{"GET /a%2 HTTP/1.1\r\n", 400, 6, "malformed percent escape"},
	{"GET /a%zz HTTP/1.1\r\n", 400, 6, "malformed percent escape"},
	{"GET /a%41%2?b HTTP/1.1\r\n", 400, 9, "malformed percent escape"},
	{"GET * HTTP/1.1\r\n", 400, 4, "target * without OPTIONS"},
	{"GET a HTTP/1.1\r\n", 400, 4, "target is neither a path nor"},
	{"GET ftp://a/ HTTP/1.1\r\n", 400, 4, "target is neither a path nor"},
	{"GET http:/a HTTP/1.1\r\n", 400, 4, "target is neither a path nor"},
	{"GET ?a HTTP/1.1\r\n", 400, 4, "target is neither a path nor"},
	{"GET http:///a HTTP/1.1\r\n", 400, 11, "invalid authority"},
	{"GET http://u@a/ HTTP/1.1\r\n", 400, 11, "invalid authority"},
	{"GET http://a:b/ HTTP/1.1\r\n", 400, 11, "invalid authority"},
	{"CONNECT a HTTP/1.1\r\n", 400, 8, "CONNECT without host:port"},
	{"CONNECT a: HTTP/1.1\r\n", 400, 8, "CONNECT without host:port"},
	{"CONNECT [::1] HTTP/1.1\r\n", 400, 8, "CONNECT without host:port"},
	{"CONNECT http://a:1/ HTTP/1.1\r\n", 400, 8, "CONNECT without host:port"},
	{"CONNECT /x HTTP/1.0\nA", 400, 19, "bare LF"},
	{"CONNECT /x HTTP/1.0\n\r\n", 400, 19, "bare LF"},
	{"CONNECT /x HTTP/1.0\r\n\n", 400, 21, "bare LF"},
	{"CONNECT /x HTTP/1.1\n\n", 400, 19, "bare LF"},
	{"CONNECT /%zz HTTP/1.0\n\n", 400, 9, "malformed percent escape"},
	{"CONNECT a:1 HTTP/1.0\n\n", 400, 20, "bare LF"},
	{"GET /x HTTP/1.0\n\n", 400, 15, "bare LF"},

	// Field lines.
	{getLine + "Host : a\r\n", 400, 20, "space in a field name or before its colon"},
	{getLine + "Ho st: a\r\n", 400, 18, "space in a field name or before its colon"},
	{getLine + " Host: a\r\n", 400, 16, "folded field line"},
	{getLine + "Host: a\r\n\tb\r\n", 400, 25, "folded field line"},
	{getLine + ": a\r\n", 400, 16, "empty field name"},
	{getLine + "Host\r\n", 400, 20, "field line without a colon"},
	{getLine + "Ho\x00st: a\r\n", 400, 18, "invalid field name byte 0x00"},
	{getLine + "H\u00f6st: a\r\n", 400, 17, "invalid field name byte 0xC3"},
	{getLine + "Host(: a\r\n", 400, 20, "invalid field name byte 0x28"},
	{getLine + "A: b\x00c\r\n", 400, 20, "control byte in a field value 0x00"},
	{getLine + "A: b\x7f\r\n", 400, 20, "control byte in a field value 0x7F"},
	{getLine + "A: 0123456789abcde\x1bf\r\n", 400, 34, "control byte in a field value 0x1B"},
	{getLine + "A: b\rc\r\n", 400, 20, "bare CR"},
	{getLine + "A: b\r\r\n", 400, 20, "bare CR"},
	{getLine + "A\r: b\r\n", 400, 17, "bare CR"},
	{getLine + "\rA: b\r\n", 400, 16, "bare CR"},
	{getLine + "A: b\n", 400, 20, "bare LF"},
	{getLine + "A\n", 400, 17, "bare LF"},
	{getLine + "\n", 400, 16, "bare LF"},

	// Host.
	{getLine + "\r\n", 400, 16, "missing Host"},
	{getLine + "Host: a\r\nHost: a\r\n", 400, 31, "repeated Host"},
	{"GET http://a/ HTTP/1.1\r\n\r\n", 400, 24, "missing Host"},
	{"GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n", 400, 31, "repeated Host"},
	{getLine + "Host: a b\r\n", 400, 22, "invalid Host"},
	{getLine + "Host: a/b\r\n", 400, 22, "invalid Host"},
	{getLine + "Host: u@a\r\n", 400, 22, "invalid Host"},
	{getLine + "Host: :80\r\n", 400, 22, "invalid Host"},
	{getLine + "Host: a:8o\r\n", 400, 22, "invalid Host"},
	{getLine + "Host: a:65536\r\n", 400, 22, "invalid Host"},
	{getLine + "Host: a:1:2\r\n", 400, 22, "invalid Host"},
	{getLine + "Host: a%4\r\n", 400, 22, "invalid Host"},
	{getLine + "Host: %zz\r\n", 400, 22, "invalid Host"},
	{getLine + "Host: caf\u00e9\r\n", 400, 22, "invalid Host"},
	{getLine + "Host: ::1\r\n", 400, 22, "invalid Host"},
	{getLine + "Host: [::1\r\n", 400, 22, "invalid Host"},
	{getLine + "Host: [::1]a\r\n", 400, 22, "invalid Host"},
	{getLine + "Host: [fe80::1%25eth0]\r\n", 400, 22, "invalid Host"},
	{getLine + "Host: [1:2:3:4:5:6:7]\r\n", 400, 22, "invalid Host"},
	{getLine + "Host: [1::2::3]\r\n", 400, 22, "invalid Host"},
	{getLine + "Host: [::256.0.0.1]\r\n", 400, 22, "invalid Host"},

	// Content-Length.
	{postLine + "Content-Length:\r\n", 400, 41, "malformed Content-Length"},
	{postLine + "Content-Length: +1\r\n", 400, 42, "malformed Content-Length"},
	{postLine + "Content-Length: -1\r\n", 400, 42, "malformed Content-Length"},
	{postLine + "Content-Length: 1 2\r\n", 400, 42, "malformed Content-Length"},
	{postLine + "Content-Length: 0x1\r\n", 400, 42, "malformed Content-Length"},
	{postLine + "Content-Length: 1.0\r\n", 400, 42, "malformed Content-Length"},
	{postLine + "Content-Length: 1, 1\r\n", 400, 42, "malformed Content-Length"},
	{postLine + "Content-Length: 1,2\r\n", 400, 42, "malformed Content-Length"},
	{postLine + "Content-Length: 9223372036854775808\r\n", 400, 42, "Content-Length overflows"},
	{postLine + "Content-Length: 18446744073709551617\r\n", 400, 42, "Content-Length overflows"},
	{postLine + "Content-Length: 1\r\nContent-Length: 2\r\n", 400, 61, "repeated Content-Length"},
	{postLine + "Content-Length: 1\r\nContent-Length: 1\r\n", 400, 61, "repeated Content-Length"},

	// Expect.
	{postLine + "Expect: 200-ok\r\n", 417, 34, "expectation other than 100-continue"},
	{postLine + "Expect: 100-continue, 200-ok\r\n", 417, 34, "expectation other than 100-continue"},
}

// smuggling lists heads that two servers in a chain could split at different positions. Each of them is refused.
var smuggling = []refusal{
	// CL.TE and TE.CL, in either order.
	{postLine + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG", 400, 64, "Content-Length together with"},
	{postLine + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n8\r\nSMUGGLED\r\n0\r\n\r\n", 400, 70, "Content-Length together with"},
	{postLine + "Content-Length: 0\r\ntransfer-encoding:chunked\r\n", 400, 63, "Content-Length together with"},

	// TE.TE: one of the servers does not recognize that the body is chunked.
	{postLine + "Transfer-Encoding : chunked\r\n", 400, 43, "space in a field name or before its colon"},
	{postLine + "Transfer-Encoding\t: chunked\r\n", 400, 43, "space in a field name or before its colon"},
	{postLine + " Transfer-Encoding: chunked\r\n", 400, 26, "folded field line"},
	{postLine + "X: X\r\n Transfer-Encoding: chunked\r\n", 400, 32, "folded field line"},
	{postLine + "Transfer-Encoding:\r\n chunked\r\n", 400, 44, "Transfer-Encoding is not a single final chunked"},
	{postLine + "X: X\nTransfer-Encoding: chunked\r\n", 400, 30, "bare LF"},
	{postLine + "X: X\rTransfer-Encoding: chunked\r\n", 400, 30, "bare CR"},
	{postLine + "Transfer-Encoding: \x0bchunked\r\n", 400, 45, "control byte in a field value 0x0B"},
	{postLine + "Transfer-Encoding: chunked\x00\r\n", 400, 52, "control byte in a field value 0x00"},
	{postLine + "Transfer-Encoding: \u00a0chunked\r\n", 400, 45, "Transfer-Encoding is not"},
	{postLine + "Transfer-Encoding: xchunked\r\n", 501, 45, "unknown transfer coding"},
	{postLine + "Transfer-Encoding: chunkedx\r\n", 501, 45, "unknown transfer coding"},
	{postLine + "Transfer-Encoding: \"chunked\"\r\n", 400, 45, "Transfer-Encoding is not"},
	{postLine + "Transfer-Encoding: chunked;q=1\r\n", 400, 45, "Transfer-Encoding is not"},
	{postLine + "Transfer-Encoding: chunked,\r\n", 400, 45, "Transfer-Encoding is not"},
	{postLine + "Transfer-Encoding: , chunked\r\n", 400, 45, "Transfer-Encoding is not"},
	{postLine + "Transfer-Encoding: chunked, identity\r\n", 400, 45, "Transfer-Encoding is not"},
	{postLine + "Transfer-Encoding: identity, chunked\r\n", 501, 45, "unknown transfer coding"},
	{postLine + "Transfer-Encoding: chunked, chunked\r\n", 400, 45, "Transfer-Encoding is not"},
	{postLine + "Transfer-Encoding: chunked, gzip\r\n", 400, 45, "Transfer-Encoding is not"},
	{postLine + "Transfer-Encoding: identity\r\n", 501, 45, "unknown transfer coding"},
	{postLine + "Transfer-Encoding: gzip\r\n", 501, 45, "unknown transfer coding"},
	{postLine + "Transfer-Encoding:\r\n", 400, 44, "Transfer-Encoding is not"},
	{postLine + "Transfer-Encoding: gzip chunked\r\n", 400, 45, "Transfer-Encoding is not"},
	{postLine + "Transfer-Encoding: gzip, \"x\"\r\n", 400, 45, "Transfer-Encoding is not"},
	{postLine + "Transfer-Encoding: gzip, chunked ;q=1\r\n", 400, 45, "Transfer-Encoding is not"},
	{postLine + "Transfer-Encoding: gzip;q=1, x ; y=z\r\n", 501, 45, "unknown transfer coding"},
	{postLine + "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", 501, 45, "unknown transfer coding"},
	{postLine + "Transfer-Encoding: gzip, chunked\r\n", 501, 45, "unknown transfer coding"},
	{postLine + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400, 73, "repeated Transfer-Encoding"},
	{postLine + "Transfer-Encoding: chunked\r\nTransfer-encoding: identity\r\n", 400, 73, "repeated Transfer-Encoding"},
	{postLine + "Transfer_Encoding: chunked\r\nContent-Length: 1\r\nContent-Length : 2\r\n", 400, 87, "space in a field name"},
	{"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n", 400, 36, "Transfer-Encoding in HTTP/1.0"},
	{"POST / HTTP/1.0\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n", 400, 55, "Transfer-Encoding in HTTP/1.0"},
}

func TestRefused(t *testing.T)   { checkRefusals(t, refusals) }
func TestSmuggling(t *testing.T) { checkRefusals(t, smuggling) }

func checkRefusals(t *testing.T, table []refusal) {
	lim := http1.DefaultLimits()
	for _, c := range table {
		var h http1.Head
		n, err := h.Parse([]byte(c.head), &lim)
		checkError(t, c.head, n, err, c)
	}
}

func checkError(t *testing.T, input string, n int, err error, want refusal) {
	t.Helper()
	var e http1.Error
	if n != 0 || !errors.As(err, &e) {
		t.Errorf("%.80q: got n = %d, err = %v; want an Error: %s", input, n, err, want.why)
		return
	}
	if e.Status() != want.status || e.Offset() != want.at || !strings.HasPrefix(e.Error(), want.why) {
		t.Errorf("%.80q:\ngot  %d at %d: %s\nwant %d at %d: %s", input,
			e.Status(), e.Offset(), e, want.status, want.at, want.why)
	}
}

func TestErrorText(t *testing.T) {
	lim := http1.DefaultLimits()
	var h http1.Head
	_, err := h.Parse([]byte("GET / HTTP/1.1\r\nA\n"), &lim)
	if got, want := err.Error(), "bare LF at byte 17 of the request head"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, err = h.Parse([]byte("GET /\x01 HTTP/1.1\r\n"), &lim)
	if got, want := err.Error(), "invalid target byte 0x01 at byte 5 of the request head"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLimits checks each limit of a head at its last accepted and its first refused value.
func TestLimits(t *testing.T) {
	lim := http1.Limits{MaxTarget: 20, MaxHead: 120, MaxFields: 3}
	pad := func(total int) string { // a head of total bytes
		const rest = "GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n"
		return "GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", total-len(rest)) + "\r\n\r\n"
	}
	target := func(n int) string {
		return "GET /" + strings.Repeat("t", n-1) + " HTTP/1.1\r\nHost: a\r\n\r\n"
	}
	for _, c := range []struct {
		head string
		want refusal
	}{
		{head: pad(120)},
		{pad(121), refusal{status: 431, at: 120, why: "head too large (the limit is 120)"}},
		{pad(4000), refusal{status: 431, at: 120, why: "head too large"}},
		{pad(4000)[:120], refusal{status: 431, at: 120, why: "head too large"}},
		{head: target(20)},
		{target(21), refusal{status: 414, at: 24, why: "target too long (the limit is 20)"}},
		{target(90), refusal{status: 414, at: 64, why: "target too long"}},
		{target(90)[:64], refusal{status: 414, at: 64, why: "target too long"}},
		{target(200), refusal{status: 414, at: 64, why: "target too long"}},
		{strings.Repeat("M", 64), refusal{status: 501, at: 0, why: "method too long"}},
		{head: strings.Repeat("M", 32) + " /" + strings.Repeat("t", 19) + " HTTP/1.1\r\nHost: a\r\n\r\n"},
		{head: "GET / HTTP/1.1\r\nHost: a\r\nA:\r\nB:\r\n\r\n"},
		{"GET / HTTP/1.1\r\nHost: a\r\nA:\r\nB:\r\nC:\r\n\r\n", refusal{status: 431, at: 33, why: "too many fields (the limit is 3)"}},
	} {
		var h http1.Head
		n, err := h.Parse([]byte(c.head), &lim)
		if c.want.status != 0 {
			checkError(t, c.head, n, err, c.want)
		} else if n != len(c.head) || err != nil {
			t.Errorf("%.80q: got n = %d, err = %v; want %d, nil", c.head, n, err, len(c.head))
		}
	}
}

// TestLimitsMeet sets a limit on heads that is reached before that on targets: the error still names the part that is too
// long.
func TestHeadLimitBelowTargetLimit(t *testing.T) {
	lim := http1.Limits{MaxTarget: 120, MaxHead: 120, MaxFields: 3}
	for _, c := range []struct {
		head string
		want refusal
	}{
		{"GET /" + strings.Repeat("t", 200), refusal{status: 414, at: 120, why: "target too long"}},
		{"\r\nGET /" + strings.Repeat("t", 200), refusal{status: 414, at: 120, why: "target too long"}},
		{"GET /" + strings.Repeat("t", 100) + " HTTP/1.1\r\nHost: a\r\n\r\n", refusal{status: 431, at: 120, why: "head too large"}},
		{strings.Repeat("M", 200), refusal{status: 501, at: 0, why: "method too long"}},
	} {
		var h http1.Head
		n, err := h.Parse([]byte(c.head), &lim)
		checkError(t, c.head, n, err, c.want)
	}
}
