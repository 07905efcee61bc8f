package h2_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// Requests that are malformed (RFC 9113, section 8.1.1): the stream is reset, or answered
// with 400, without an action.
var malformedRequests = []struct {
	section, what string
	in            string // on stream 9
	netHTTP       string
}{
	{"8.2", "an upper-case name", get(9, "/fields", "X-Big", "b"), ""},
	{"8.2.1", "an empty name", get(9, "/fields", "", "b"), ""},
	{"8.2.1", "a name with a space", get(9, "/fields", "a b", "c"), ""},
	{"8.2.1", "a name with a colon", get(9, "/fields", "a:b", "c"), ""},
	{"8.2.1", "a name with a control byte", get(9, "/fields", "a\x01", "c"), ""},
	{"8.2.1", "a name beyond ASCII", get(9, "/fields", "\xe4", "c"), ""},
	{"8.2.1", "a value with NUL", get(9, "/fields", "a", "b\x00c"), ""},
	{"8.2.1", "a value with CR", get(9, "/fields", "a", "b\rc"), ""},
	{"8.2.1", "a value with LF", get(9, "/fields", "a", "b\nc: d"), ""},
	{"8.2.2", "Connection", get(9, "/fields", "connection", "close"), ""},
	{"8.2.2", "Connection: keep-alive", get(9, "/fields", "connection", "keep-alive"), ""},
	{"8.2.2", "Keep-Alive", get(9, "/fields", "keep-alive", "timeout=5"), ""},
	{"8.2.2", "Proxy-Connection", get(9, "/fields", "proxy-connection", "close"), ""},
	{"8.2.2", "Transfer-Encoding", post(9, "/fields", "transfer-encoding", "chunked") + data(9, "0\r\n\r\n", endStream), ""},
	{"8.2.2", "Upgrade", get(9, "/fields", "upgrade", "websocket"), ""},
	{"8.2.2", "TE with more than trailers", get(9, "/fields", "te", "gzip"), ""},
	{"8.2.2", "TE with trailers and more", get(9, "/fields", "te", "trailers, deflate"), ""},
	{"8.3", "a pseudo-header field after other fields", headers(9, endStream, block(":method", "GET", ":scheme", scheme, ":authority", authority, "a", "b", ":path", "/fields")), ""},
	{"8.3", "a pseudo-header field of answers", get(9, "/fields", ":status", "200"), ""},
	{"8.3", "an unknown pseudo-header field", headers(9, endStream, block(":new", "x")+request("GET", "/fields")), ""},
	{"8.3", "two paths", headers(9, endStream, block(":path", "/hello")+request("GET", "/fields")), ""},
	{"8.3", "two methods", headers(9, endStream, block(":method", "GET")+request("GET", "/fields")), ""},
	{"8.3", "two schemes", headers(9, endStream, block(":scheme", "http")+request("GET", "/fields")), ""},
	{"8.3", "two authorities", headers(9, endStream, block(":authority", "other.example")+request("GET", "/fields")), ""},
	{"8.3.1", "no method", headers(9, endStream, block(":scheme", scheme, ":authority", authority, ":path", "/fields")), ""},
	{"8.3.1", "no scheme", headers(9, endStream, block(":method", "GET", ":authority", authority, ":path", "/fields")), ""},
	{"8.3.1", "no path", headers(9, endStream, block(":method", "GET", ":scheme", scheme, ":authority", authority)), ""},
	{"8.3.1", "an empty path", get(9, ""), ""},
	{"8.3.1", "an empty method", headers(9, endStream, request("", "/fields")), ""},
	{"8.3.1", "a method that is no token", headers(9, endStream, request("G T", "/fields")), ""},
	{"8.3.1", "a path without a slash", get(9, "fields"), ""},
	{"8.3.1", "a path that is a URL", get(9, "https://test.example/fields"), ""},
	{"8.3.1", "a path with a fragment of the head of HTTP/1.1", get(9, "/fields HTTP/1.1\r\nx: y"), ""},
	{"8.3.1", "a path with a space", get(9, "/fields a"), ""},
	{"8.3.1", "an authority with a user", headers(9, endStream, block(":method", "GET", ":scheme", scheme, ":authority", "user@test.example", ":path", "/fields")), ""},
	{"8.3.1", "an authority with a space", headers(9, endStream, block(":method", "GET", ":scheme", scheme, ":authority", "test example", ":path", "/fields")), ""},
	{"8.3.1", "an authority with a path", headers(9, endStream, block(":method", "GET", ":scheme", scheme, ":authority", "test.example/x", ":path", "/fields")), ""},
	{"8.3.1", "neither an authority nor Host", headers(9, endStream, block(":method", "GET", ":scheme", scheme, ":path", "/fields")), ""},
	{"8.3.1", "an empty authority", headers(9, endStream, block(":method", "GET", ":scheme", scheme, ":authority", "", ":path", "/fields")), ""},
	{"8.3.1", "Host that differs from the authority", get(9, "/fields", "host", "other.example"), ""},
	{"7.2 of RFC 9110", "two of Host", headers(9, endStream, block(":method", "GET", ":scheme", scheme, ":path", "/fields", "host", "a.example", "host", "b.example")), ""},
	{"8.5", "CONNECT with a path", headers(9, endStream, request("CONNECT", "/fields")), ""},
	{"8.5", "CONNECT without an authority", headers(9, endStream, block(":method", "CONNECT")), ""},
	{"4 of RFC 8441", "a protocol without CONNECT", headers(9, endStream, block(":protocol", "websocket")+request("GET", "/fields")), ""},
	{"8.1.1", "Content-Length that is no number", post(9, "/fields", "content-length", "two") + data(9, "ab", endStream), ""},
	{"8.1.1", "Content-Length with a sign", post(9, "/echo", "content-length", "+2") + data(9, "ab", endStream), ""},
	{"8.1.1", "Content-Length above 63 bits", post(9, "/echo", "content-length", "99999999999999999999") + data(9, "ab", endStream), ""},
	{"8.6 of RFC 9110", "two of Content-Length", post(9, "/echo", "content-length", "2", "content-length", "3") + data(9, "ab", endStream), ""},
	{"8.1.1", "Content-Length without a body", get(9, "/fields", "content-length", "2"), ""},
	{"8.1.1", "Content-Length of POST without a body", headers(9, endStream, request("POST", "/echo", "content-length", "2")), ""},
	{"8.1.1", "a body longer than Content-Length", post(9, "/echo", "content-length", "2") + data(9, "abc", endStream), ""},
	{"8.1.1", "a body longer than no Content-Length", post(9, "/echo", "content-length", "0") + data(9, "abc", endStream), ""},
	{"8.1.1", "a body shorter than Content-Length", post(9, "/echo", "content-length", "5") + data(9, "ab", endStream), ""},
	{"8.1.1", "trailers before Content-Length is reached", post(9, "/echo", "content-length", "5") + data(9, "ab", 0) + headers(9, endStream, block("a", "b")), ""},
}

func TestMalformedRequests(t *testing.T) {
	st := newStage()
	onEach(t, dunlin.Config{}, st.register, func(t *testing.T, s *server) {
		for _, c := range malformedRequests {
			t.Run(strings.ReplaceAll(c.section+" "+c.what, "/", "|"), func(t *testing.T) {
				violation{in: c.in, stream: 9, allowed: []string{malformed, badRequest}, netHTTP: c.netHTTP}.judge(t, s.dial(t), false)
			})
		}
		eventually(t, "the end of the connections", func() bool { return s.Stats().Connections.Open == 0 })
		wantNothingHeld(t, s)
	})
}

// many returns n fields.
func many(n int) (pairs []string) {
	for i := range n {
		pairs = append(pairs, fmt.Sprintf("x-%d", i), "v")
	}
	return pairs
}

// crumbs are the pieces of one cookie, as browsers send them.
func crumbs(n int) (pairs []string) {
	for i := range n {
		pairs = append(pairs, "cookie", fmt.Sprintf("c%d=v", i))
	}
	return pairs
}

// Valid fields of requests, and the fields that an action sees.
func TestRequests(t *testing.T) {
	st := newStage()
	long := strings.Repeat("v", 7000)
	onEach(t, dunlin.Config{}, st.register, func(t *testing.T, s *server) {
		for what, c := range map[string]struct{ in, status, body string }{
			"nothing more":               {get(9, "/fields?a=b"), "200", "GET test.example /fields a=b"},
			"cookies in crumbs":          {get(9, "/fields", "cookie", "a=1", "cookie", "b=2", "cookie", "c=3"), "200", "GET test.example /fields \ncookie: a=1; b=2; c=3"},
			"TE: trailers":               {get(9, "/std/fields", "te", "trailers"), "200", "HTTP/2.0 GET test.example /fields  cookie=[] te=[trailers]"},
			"crumbs for a handler":       {get(9, "/std/fields", "cookie", "a=1", "cookie", "b=2"), "200", "HTTP/2.0 GET test.example /fields  cookie=[a=1; b=2] te=[]"},
			"Host without authority":     {headers(9, endStream, block(":method", "GET", ":scheme", scheme, ":path", "/std/fields", "host", "a.example")), "200", "HTTP/2.0 GET a.example /fields  cookie=[] te=[]"},
			"Host as the authority":      {get(9, "/std/fields", "host", authority), "200", "HTTP/2.0 GET test.example /fields  cookie=[] te=[]"},
			"authority with a port":      {headers(9, endStream, block(":method", "GET", ":scheme", scheme, ":authority", "a.example:8443", ":path", "/std/fields")), "200", "HTTP/2.0 GET a.example:8443 /fields  cookie=[] te=[]"},
			"fields that repeat":         {get(9, "/fields", "x-a", "1", "x-b", "2", "x-a", "3"), "200", "GET test.example /fields \nx-a: 1\nx-a: 3\nx-b: 2"},
			"white space around a value": {get(9, "/fields", "x-a", " b\t"), "200", "GET test.example /fields \nx-a: b"}, // of grpc-go
			"an empty value":             {get(9, "/fields", "x-a", ""), "200", "GET test.example /fields \nx-a: "},
			"bytes beyond ASCII":         {get(9, "/fields", "x-a", "\xe4\xff"), "200", "GET test.example /fields \nx-a: \xe4\xff"},
			"other method":               {headers(9, endStream, request("BREW", "/fields")), "200", "BREW test.example /fields "},
			"an encoded path":            {get(9, "/%66ields?%66"), "200", "GET test.example /fields %66"},
			"a long value":               {get(9, "/fields", "x-a", long), "200", "GET test.example /fields \nx-a: " + long},
			"a block in pieces": {frame(tHeaders, endStream, 9, request("GET", "/fields")[:7]) + frame(tContinuation, 0, 9, "") +
				frame(tContinuation, 0, 9, request("GET", "/fields")[7:9]) + frame(tContinuation, endHeaders, 9, request("GET", "/fields")[9:]+block("x-a", "b")), "200", "GET test.example /fields \nx-a: b"},
			"padding and a priority":       {headers(9, endStream|padded|withPriority, "\x05"+u32(1<<31|3)+"\x0f"+request("GET", "/fields")+"12345"), "200", "GET test.example /fields "},
			"a body of padded DATA":        {post(9, "/echo") + frame(tData, padded, 9, "\x03ab123") + frame(tData, padded, 9, "\x00cd") + frame(tData, endStream|padded, 9, "\x02", "12"), "200", "abcd"},
			"a body by Content-Length":     {post(9, "/echo", "content-length", "4") + data(9, "abcd", endStream), "200", "abcd"},
			"a body that ends with none":   {post(9, "/echo", "content-length", "4") + data(9, "abcd", 0) + data(9, "", endStream), "200", "abcd"},
			"a body that is empty":         {post(9, "/echo") + data(9, "", endStream), "200", ""},
			"a body, and trailers":         {post(9, "/echo") + data(9, "abcd", 0) + headers(9, endStream, block("x-sum", "7")), "200", "abcd"},
			"HEAD":                         {headers(9, endStream, request("HEAD", "/size/1000")), "200", ""},
			"OPTIONS of all":               {headers(9, endStream, request("OPTIONS", "*")), "", ""},
			"no route":                     {get(9, "/nothing"), "404", ""},
			"a method that the path lacks": {headers(9, endStream, request("DELETE", "/hello")), "405", ""},
			"unknown expectation":          {post(9, "/echo", "expect", "miracles") + data(9, "abcd", endStream), "417", ""},
			"an expectation of nothing":    {get(9, "/fields", "expect", ""), "200", ""},
			"too many fields":              {get(9, "/fields", many(150)...), "431", ""},
			"as many fields as may be":     {get(9, "/size/1", many(99)...), "200", "0"},
			"a cookie in many crumbs":      {get(9, "/size/1", crumbs(150)...), "200", "0"},
			"a long path":                  {get(9, "/fields/"+strings.Repeat("p", 5000)), "404", ""},
		} {
			t.Run(what, func(t *testing.T) {
				p := s.dial(t)
				p.send(c.in)
				a := p.answer(9)
				if c.status != "" && a.String() != c.status || c.body != "" && a.body.String() != c.body {
					t.Errorf("%v: got %q, want %s: %q", a, a.body.String(), c.status, c.body)
				}
				if what == "HEAD" && (len(a.fields["content-length"]) != 1 || a.fields["content-length"][0] != "1000" || a.body.Len() != 0) {
					t.Errorf("%v, %d bytes", a.fields, a.body.Len())
				}
				p.send(get(101, "/hello"))
				p.want(101, "200", "hello")
			})
		}
	})
}
