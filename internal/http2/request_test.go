package http2_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/hpack"
	"github.com/dunlinhttp/dunlin/internal/http2"
)

// heads are blocks of requests with their outcomes: "ok", the status of a refusal, or "malformed", for which the stream is
// reset. Fields are separated by "|".
var heads = []struct{ fields, want string }{
	{":method: GET|:scheme: https|:authority: a.example|:path: /", "ok"},
	{":path: /|:authority: a.example|:scheme: https|:method: GET", "ok"},
	{":method: GET|:scheme: http|:authority: a.example:80|:path: /a?b=c|host: a.example:80", "ok"},
	{":method: GET|:scheme: http|:path: /|host: a.example", "ok"},
	{":method: GET|:scheme: HTTP|:authority: [::1]:8080|:path: /%41", "ok"},
	{":method: OPTIONS|:scheme: http|:authority: a|:path: *", "ok"},
	{":method: BREW|:scheme: http|:authority: a|:path: /", "ok"},
	{":method: CONNECT|:authority: a.example:443", "ok"},
	{":method: GET|:scheme: http|:authority: a|:path: /|te: trailers|cookie: a=b|cookie: c=d|x: ", "ok"},
	{":method: GET|:scheme: http|:authority: a|:path: /|te: Trailers", "ok"},
	{":method: PUT|:scheme: http|:authority: a|:path: /|content-length: 0|expect: 100-continue", "ok"},
	{":method: GET|:scheme: http|:authority: a|:path: /|x: a\tb\xff", "ok"},
	{":method: GET|:scheme: http|:authority: a|:path: /|host: A", "ok"},
	{":method: GET|:scheme: http|:authority: a|:path: /|host: ", "ok"},
	{":method: GET|:scheme: http|:authority: a|:path: /|priority: u=9, i=x", "ok"},

	// Refused with a status.
	{":method: GET|:scheme: http|:path: /", "400"},
	{":method: GET|:scheme: http|:authority: |:path: /", "400"},
	{":method: GET|:scheme: http|:authority: a|:path: /#b", "400"},
	{":method: GET|:scheme: http|:authority: a|:path: /a b", "400"},
	{":method: GET|:scheme: http|:authority: a|:path: /\xff", "400"},
	{":method: GET|:scheme: http|:authority: a|:path: /%4", "400"},
	{":method: GET|:scheme: http|:authority: a|:path: *", "400"},
	{":method: CONNECT|:authority: a.example", "400"},
	{":method: GET|:scheme: http|:authority: u@a|:path: /", "400"},
	{":method: GET|:scheme: http|:path: /|host: a/b", "400"},
	{":method: GET|:scheme: http|:authority: a:x|:path: /", "400"},
	{":method: GET|:scheme: http|:authority: a|:path: /|x:  y", "ok"},
	{":method: GET|:scheme: http|:authority: a|:path: /|x: y ", "ok"},
	{":method: GET|:scheme: http|:authority: a|:path: /|x: y\t", "ok"},
	{":method: GET|:scheme: http|:authority: a|:path: /|x: ", "ok"},
	{":method: GET|:scheme: http|:authority: a|:path: /|x:  ", "ok"},
	{":method: GET|:scheme: http|:path: /|host: a ", "ok"},
	{":method: GET|:scheme: http|:authority: a|:path: /|content-length: 0 ", "ok"},
	{":method: GET |:scheme: http|:authority: a|:path: /", "malformed"},
	{":method: GET|:scheme: http|:authority:  a|:path: /", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: / ", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|expect: miracles", "417"},
	{":method: GET|:scheme: http|:authority: a|:path: /|expect: 100-continue, miracles", "417"},
	{":method: PUT|:scheme: http|:authority: a|:path: /|expect: 100-continue, 100-continue", "ok"},
	{":method: GET|:scheme: http|:authority: a|:path: /0123456789012345678901234567890123456789", "414"},
	{":method: " + strings.Repeat("G", 33) + "|:scheme: http|:authority: a|:path: /", "501"},
	{":method: GET|:scheme: http|:authority: a|:path: /|x: " + strings.Repeat("y", 400), "431"},
	{"x: " + strings.Repeat("y", 500), "431"},
	{":method: GET|:scheme: http|:authority: a|:path: /|a: 1|a: 1|a: 1|a: 1|a: 1|a: 1", "431"},
	{":method: GET|:scheme: http|:authority: a|:path: /|a: 1|a: 1|a: 1|a: 1|a: 1", "ok"},
	{":method: GET|:scheme: http|:authority: a|:path: /|a: 1|a: 1|a: 1|a: 1|cookie: a|cookie: b|cookie: c", "ok"},
	{":method: GET|:scheme: http|:authority: a|:path: /|a: 1|a: 1|a: 1|a: 1|cookie: a|cookie: b|a: 1", "431"},

	// Malformed according to RFC 9113 section 8.
	{"", "malformed"},
	{":scheme: http|:authority: a|:path: /", "malformed"},
	{":method: GET|:authority: a|:path: /", "malformed"},
	{":method: GET|:scheme: http|:authority: a", "malformed"},
	{":method: |:scheme: http|:authority: a|:path: /", "malformed"},
	{":method: G T|:scheme: http|:authority: a|:path: /", "malformed"},
	{":method: GET|:scheme: ftp|:authority: a|:path: /", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: ", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: a", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: http://a/", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /\x00", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|:path: /", "malformed"},
	{":method: GET|:method: GET|:scheme: http|:authority: a|:path: /", "malformed"},
	{":method: GET|:scheme: http|:authority: a|x: y|:path: /", "malformed"},
	{":method: GET|:scheme: http|:authority: a|host: a|:path: /", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|:status: 200", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|:what: 200", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|: 200", "malformed"},
	{":Method: GET|:scheme: http|:authority: a|:path: /", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|host: b", "malformed"},
	{":method: GET|:scheme: http|:path: /|host: a|host: a", "malformed"},
	{":method: CONNECT|:authority: a:1|:path: /", "malformed"},
	{":method: CONNECT|:scheme: http|:authority: a:1", "malformed"},
	{":method: CONNECT", "malformed"},
	{":method: CONNECT|:scheme: http|:authority: a|:path: /|:protocol: websocket", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|X: y", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|Content-Length: 0", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|x y: z", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|\x7fy: z", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|x:  y\n", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|x: a\nb", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|x: a\rb", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|x: a\x00b", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|x: a\x7fb", "malformed"},
	{":method: GET|:scheme: http|:authority: a|x:  y|:path: /", "malformed"},
	{":method: OPTIONS|:scheme: http|x: y |:authority: a|:path: *", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|connection: close", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|proxy-connection: close", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|keep-alive: 5", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|transfer-encoding: chunked", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|upgrade: h2c", "malformed"},
	{strings.Repeat("x: |", 303) + "x: ", "field block that expands to many times the size allowed (RFC 7541 section 7.3)"},
	{":method: GET|:scheme: http|:authority: a|:path: /|te: gzip", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|te: trailers, gzip", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|content-length: x", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|content-length: +1", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|content-length: ", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|content-length: 0|content-length: 0", "malformed"},
	{":method: GET|:scheme: http|:authority: a|:path: /|content-length: 99999999999999999999", "malformed"},
}

// smallLimits are small enough for short heads to exceed them.
func smallLimits(l *http2.Limits) {
	l.MaxTarget = 32
	l.Fields = hpack.Limits{MaxList: 500, MaxFields: 6, MaxWork: 10_000}
}

// outcome returns the outcome of a request with the fields.
func outcome(t testing.TB, fields []string) string {
	t.Helper()
	cl := connect(t, smallLimits)
	events := cl.send(headers(1, 0, block(fields...)))
	if cl.err != nil {
		return cl.err.Error()
	}
	if frames := cl.receive(); len(frames) == 1 && len(events) == 0 && frames[0] == "1 reset PROTOCOL_ERROR" {
		return "malformed"
	}
	if len(events) != 1 {
		return fmt.Sprint(events)
	}
	if status, found := strings.CutPrefix(events[0], "1 refused "); found {
		return status
	}
	return "ok"
}

func splitFields(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "|")
}

func TestHeads(t *testing.T) {
	for _, c := range heads {
		if got := outcome(t, splitFields(c.fields)); got != c.want {
			t.Errorf("%q: got %s, want %s", c.fields, got, c.want)
		}
	}
}

func TestRequest(t *testing.T) {
	cl := connect(t, func(l *http2.Limits) { l.ConnectProtocol = true })
	var kept http2.Request
	next := func(id uint32, b string) *http2.Request {
		t.Helper()
		_, ev, err := cl.conn.Next([]byte(headers(id, 0, b)))
		if err != nil || ev.Kind != http2.RequestBegun || ev.Request.Status != 0 {
			t.Fatalf("got event %+v, error %v", ev, err)
		}
		ev.Request.CopyTo(&kept)
		ev.Request.Fields.Reset()
		return &kept
	}
	r := next(1, post("content-length: 12", "expect: 100-Continue", "priority: u=1, i"))
	if string(r.Method()) != "POST" || string(r.Scheme()) != "http" || string(r.Authority()) != "a.example" || string(r.Path()) != "/" ||
		len(r.Query()) != 0 || r.ContentLength != 12 || !r.Expect100 || r.Escaped || r.Begin() != 4 ||
		r.Priority != (http2.Priority{Urgency: 1, Incremental: true}) {
		t.Errorf("got %+v", r)
	}
	r = next(3, block(":method: GET", ":scheme: https", ":path: /a%2Fb?c=d?", "host: b.example"))
	if string(r.Authority()) != "b.example" || string(r.Path()) != "/a%2Fb" || string(r.Query()) != "c=d?" || !r.Escaped || r.ContentLength != -1 || r.Begin() != 3 {
		t.Errorf("got %+v", r)
	}
	r = next(5, block(":method: CONNECT", ":scheme: https", ":authority: c", ":path: /chat", ":protocol: websocket"))
	if string(r.Protocol()) != "websocket" || string(r.Path()) != "/chat" || r.Begin() != 5 {
		t.Errorf("got %+v", r)
	}
	r = next(7, block(":method: CONNECT", ":authority: c:1"))
	if string(r.Authority()) != "c:1" || len(r.Path()) != 0 || len(r.Target()) != 0 || len(r.Protocol()) != 0 {
		t.Errorf("got %+v", r)
	}
	if got := outcome(t, splitFields(":method: CONNECT|:scheme: https|:authority: c|:path: /|:protocol: websocket")); got != "malformed" {
		t.Errorf("extended CONNECT without ConnectProtocol: got %s", got)
	}
}

// FuzzHeads compares the outcome of a head with that of a reference implementation.
func FuzzHeads(f *testing.F) {
	for _, c := range heads {
		f.Add(c.fields)
	}
	f.Fuzz(func(t *testing.T, in string) {
		fields := splitFields(in)
		for i, text := range fields {
			if text == "" || !strings.Contains(text[1:], ": ") {
				fields[i] = "x" + text + ": "
			}
		}
		if len(in) > 3000 { // a larger head might not fit into one frame
			return
		}
		if got, want := outcome(t, fields), plainOutcome(fields); got != want {
			t.Errorf("%q: got %s, want %s", fields, got, want)
		}
	})
}
