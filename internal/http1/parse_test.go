package http1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/semantics"
)

// describe returns the content of a complete head in one line. Differences from a plain GET of HTTP/1.1 are at the end.
func describe(h *http1.Head) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s path=%s", h.MethodBytes(), h.Path())
	if len(h.Query()) > 0 {
		fmt.Fprintf(&b, " query=%s", h.Query())
	}
	fmt.Fprintf(&b, " host=%s", h.Host())
	for _, flag := range []struct {
		on   bool
		name string
	}{
		{h.Minor == 0, "1.0"}, {h.Form == http1.AbsoluteForm, "absolute"},
		{h.Form == http1.AuthorityForm, "authority"}, {h.Form == http1.AsteriskForm, "asterisk"},
		{h.PathEscaped, "escaped"}, {h.ContentLength >= 0, fmt.Sprint("length=", h.ContentLength)},
		{h.Chunked, "chunked"}, {!h.KeepAlive, "close"}, {h.Expect100, "expect"}, {h.Upgrade, "upgrade"},
	} {
		if flag.on {
			b.WriteString(" " + flag.name)
		}
	}
	return b.String()
}

// lines joins lines into a head: each ends in CRLF, and an empty line follows.
func lines(l ...string) string { return strings.Join(l, "\r\n") + "\r\n\r\n" }

// TestAccepted lists valid request heads with the parsed values.
func TestAccepted(t *testing.T) {
	const host = "Host: a.example"
	for _, c := range []struct{ head, want string }{
		// Targets.
		{lines("GET / HTTP/1.1", host), "GET path=/ host=a.example"},
		{lines("GET /a/b?x=1&y=2 HTTP/1.1", host), "GET path=/a/b query=x=1&y=2 host=a.example"},
		{lines("GET /a?b?c HTTP/1.1", host), "GET path=/a query=b?c host=a.example"},
		{lines("GET /? HTTP/1.1", host), "GET path=/ host=a.example"},
		{lines("GET //a HTTP/1.1", host), "GET path=//a host=a.example"},
		{lines("GET /a%20b HTTP/1.1", host), "GET path=/a%20b host=a.example escaped"},
		{lines("GET /a?100% HTTP/1.1", host), "GET path=/a query=100% host=a.example"},
		{lines(`GET /a|b"{}\^ HTTP/1.1`, host), `GET path=/a|b"{}\^ host=a.example`},
		{lines("OPTIONS * HTTP/1.1", host), "OPTIONS path=* host=a.example asterisk"},
		{lines("CONNECT b.example:443 HTTP/1.1", host), "CONNECT path= host=b.example:443 authority"},
		{lines("CONNECT b.example:443 HTTP/1.1"), "CONNECT path= host=b.example:443 authority"},
		{lines("CONNECT /rpc?a HTTP/1.1", host), "CONNECT path=/rpc query=a host=a.example"},
		{lines("CONNECT [::1]:443 HTTP/1.1", host), "CONNECT path= host=[::1]:443 authority"},
		{"CONNECT /_goRPC_ HTTP/1.0\n\n", "CONNECT path=/_goRPC_ host= 1.0 close"},
		{"\r\nCONNECT /?a HTTP/1.0\n\n", "CONNECT path=/ query=a host= 1.0 close"},

		// The authority of an absolute target overrides Host.
		{lines("GET http://b.example:81/p?q HTTP/1.1", host), "GET path=/p query=q host=b.example:81 absolute"},
		{lines("GET HTTPS://b.example HTTP/1.1", host), "GET path=/ host=b.example absolute"},
		{lines("GET http://b.example?q HTTP/1.1", host), "GET path=/ query=q host=b.example absolute"},
		{lines("GET http://b.example/ HTTP/1.0"), "GET path=/ host=b.example 1.0 absolute close"},

		// Methods.
		{lines("get / HTTP/1.1", host), "get path=/ host=a.example"},
		{lines("M-SEARCH / HTTP/1.1", host), "M-SEARCH path=/ host=a.example"},

		// Host.
		{lines("GET / HTTP/1.1", "hOST:a.example:8080"), "GET path=/ host=a.example:8080"},
		{lines("GET / HTTP/1.1", "Host:"), "GET path=/ host="},
		{lines("GET / HTTP/1.1", "Host: a.example:"), "GET path=/ host=a.example:"},
		{lines("GET / HTTP/1.1", "Host: a%41_b.example"), "GET path=/ host=a%41_b.example"},
		{lines("GET / HTTP/1.1", "Host: [2001:db8::1]:80"), "GET path=/ host=[2001:db8::1]:80"},
		{lines("GET / HTTP/1.1", "Host: [::ffff:192.0.2.1]"), "GET path=/ host=[::ffff:192.0.2.1]"},
		{lines("GET / HTTP/1.0"), "GET path=/ host= 1.0 close"},

		// Versions, and the persistence of the connection.
		{lines("GET / HTTP/1.2", host), "GET path=/ host=a.example"},
		{lines("GET / HTTP/1.1", host, "Connection: close"), "GET path=/ host=a.example close"},
		{lines("GET / HTTP/1.1", host, "Connection: foo , CLOSE,"), "GET path=/ host=a.example close"},
		{lines("GET / HTTP/1.1", host, "Connection: keep-alive", "Connection: close"), "GET path=/ host=a.example close"},
		{lines("GET / HTTP/1.1", host, "Connection: closed"), "GET path=/ host=a.example"},
		{lines("GET / HTTP/1.0", host, "Connection: Keep-Alive"), "GET path=/ host=a.example 1.0"},
		{lines("GET / HTTP/1.0", host, "Connection: keep-alive, close"), "GET path=/ host=a.example 1.0 close"},
		{lines("GET / HTTP/1.1", host, "Upgrade: websocket", "Connection: Upgrade"), "GET path=/ host=a.example upgrade"},
		{lines("GET / HTTP/1.1", host, "Upgrade: websocket"), "GET path=/ host=a.example"},
		{lines("GET / HTTP/1.0", host, "Upgrade: a", "Connection: upgrade"), "GET path=/ host=a.example 1.0 close"},

		// Bodies.
		{lines("POST / HTTP/1.1", host, "Content-Length: 0"), "POST path=/ host=a.example length=0"},
		{lines("POST / HTTP/1.1", host, "Content-Length: 007"), "POST path=/ host=a.example length=7"},
		{
			lines("POST / HTTP/1.1", host, "content-length:9223372036854775807"),
			"POST path=/ host=a.example length=9223372036854775807",
		},
		{lines("POST / HTTP/1.1", host, "Transfer-Encoding: chunked"), "POST path=/ host=a.example chunked"},
		{lines("POST / HTTP/1.1", host, "Transfer-Encoding:\t Chunked \t"), "POST path=/ host=a.example chunked"},
		{
			lines("POST / HTTP/1.1", host, "Content-Length: 3", "Expect: 100-Continue"),
			"POST path=/ host=a.example length=3 expect",
		},
		{lines("POST / HTTP/1.1", host, "Expect: 100-continue"), "POST path=/ host=a.example"},
		{lines("POST / HTTP/1.1", host, "Content-Length: 3", "Expect: 100-continue, ,100-Continue"), "POST path=/ host=a.example length=3 expect"},
		{lines("POST / HTTP/1.1", host, "Content-Length: 3", "Expect:"), "POST path=/ host=a.example length=3"},
		{
			lines("POST / HTTP/1.0", "Content-Length: 3", "Expect: 100-continue"),
			"POST path=/ host= 1.0 length=3 close",
		},

		// One empty line may precede the request.
		{"\r\n" + lines("GET / HTTP/1.1", host), "GET path=/ host=a.example"},
	} {
		var h http1.Head
		lim := http1.DefaultLimits()
		n, err := h.Parse([]byte(c.head+"next"), &lim)
		if n != len(c.head) || err != nil {
			t.Errorf("%q: got n = %d, err = %v; want %d, nil", c.head, n, err, len(c.head))
			continue
		}
		if got := describe(&h); got != c.want {
			t.Errorf("%q:\ngot  %s\nwant %s", c.head, got, c.want)
		}
	}
}

func TestFields(t *testing.T) {
	head := lines("GET / HTTP/1.1", "Host: a", "Accept:text/html", "X-A: \t one two\t ",
		"x-a:", "X-Utf8: caf\u00e9", "X-Tab: a\tb", "!#$%&'*+-.^_`|~09: token", "Content-Type: 12345678\x80")
	want := []string{"Host=a", "Accept=text/html", "X-A=one two", "x-a=", "X-Utf8=caf\u00e9", "X-Tab=a\tb",
		"!#$%&'*+-.^_`|~09=token", "Content-Type=12345678\x80"}
	h := mustParse(t, head)
	if h.Len() != len(want) {
		t.Fatalf("got %d fields, want %d", h.Len(), len(want))
	}
	for i, w := range want {
		name, value := h.Field(i)
		if got := string(name) + "=" + string(value); got != w {
			t.Errorf("field %d: got %q, want %q", i, got, w)
		}
	}
	for _, c := range []struct {
		name, want string
		ok         bool
	}{
		{"HOST", "a", true}, {"x-A", "one two", true}, {"Accept-", "", false}, {"", "", false},
		{"!#$%&'*+-.~_`|~09", "", false}, // '^' and '~' differ only in bit 5
	} {
		if got, ok := h.Get(c.name); string(got) != c.want || ok != c.ok {
			t.Errorf("Get(%q) = %q, %v; want %q, %v", c.name, got, ok, c.want, c.ok)
		}
	}
	if i := h.Index("x-a", h.Index("x-a", 0)+1); i != 3 {
		t.Errorf("got second x-a at index %d, want 3", i)
	}
	if got := string(h.Target()); got != "/" {
		t.Errorf("Target: got %q", got)
	}
	if got := string(h.Bytes()); got != head {
		t.Errorf("Bytes: got %q", got)
	}
}

// TestEveryValueByte puts every byte at every position of a value of 20 bytes, and so at every position of a word that is examined in
// one step.
func TestEveryValueByte(t *testing.T) {
	lim := http1.DefaultLimits()
	for c := range 256 {
		allowed := c == '\t' || c >= ' ' && c != 0x7F
		for at := 1; at < 19; at++ {
			value := []byte("01234567890123456789")
			value[at] = byte(c)
			var h http1.Head
			_, err := h.Parse([]byte(lines("GET / HTTP/1.1", "Host: a", "X: "+string(value))), &lim)
			if (err == nil) != allowed {
				t.Errorf("byte 0x%02X at %d of a value: got error %v", c, at, err)
			}
		}
	}
}

func mustParse(t testing.TB, head string) *http1.Head {
	t.Helper()
	var h http1.Head
	lim := http1.DefaultLimits()
	if n, err := h.Parse([]byte(head), &lim); n != len(head) || err != nil {
		t.Fatalf("%q: got n = %d, err = %v", head, n, err)
	}
	return &h
}

func TestMethods(t *testing.T) {
	for m := semantics.MethodGet; m <= semantics.MethodTrace; m++ {
		target := "/"
		if m == semantics.MethodConnect {
			target = "a:1"
		}
		h := mustParse(t, lines(m.String()+" "+target+" HTTP/1.1", "Host: a"))
		if h.Method != m {
			t.Errorf("method %s: got %v", m, h.Method)
		}
	}
	if h := mustParse(t, lines("GETS / HTTP/1.1", "Host: a")); h.Method != semantics.MethodOther {
		t.Errorf("method GETS: got %v", h.Method)
	}
}

// TestPipelined reads several requests with one Head and checks that the state of one does not affect the next one.
func TestPipelined(t *testing.T) {
	first := lines("POST http://b/p%41?q HTTP/1.0", "Content-Length: 0", "Connection: keep-alive, upgrade",
		"Upgrade: x", "Expect: 100-continue", "Host: a")
	second := lines("GET / HTTP/1.1", "Host: c")
	buf := []byte(first + second)
	lim := http1.DefaultLimits()
	var h http1.Head
	n, err := h.Parse(buf, &lim)
	if n != len(first) || err != nil {
		t.Fatal(n, err)
	}
	buf = buf[n:]
	if n, err = h.Parse(buf, &lim); n != len(second) || err != nil {
		t.Fatal(n, err)
	}
	if got := describe(&h); got != "GET path=/ host=c" || h.Len() != 1 {
		t.Errorf("got %s with %d fields", got, h.Len())
	}
	if n, err = h.Parse(buf[n:], &lim); n != 0 || err != nil {
		t.Errorf("empty input: got %d, error %v", n, err)
	}
}

// TestBorrowedViews checks that an append to a view cannot overwrite the following bytes, and that a head can move with its buffer.
func TestBorrowedViews(t *testing.T) {
	head := lines("GET /a?b HTTP/1.1", "Host: c")
	h := mustParse(t, head)
	for _, v := range [][]byte{h.Path(), h.Query(), h.Host(), h.Target(), h.MethodBytes()} {
		if cap(v) != len(v) {
			t.Errorf("view %q has a spare capacity of %d bytes", v, cap(v)-len(v))
		}
	}
	want := describe(h)
	var c http1.Head
	h.CopyTo(&c, []byte(head))
	moved := []byte(head)
	invariants.EndLoan(h.Bytes())
	h.Rebase(moved)
	if got := describe(h); got != want {
		t.Errorf("after Rebase: got %s, want %s", got, want)
	}
	h.Reset()
	if got := describe(&c); got != want || c.Len() != 1 {
		t.Errorf("copy: got %s, want %s", got, want)
	}
}

// TestResumeReadsNoLineTwice overwrites the complete lines before it resumes. If they were parsed again, the head would be
// refused.
func TestResumeParsesNoLineTwice(t *testing.T) {
	const done, unfinished, rest = "GET /a HTTP/1.1\r\nHost: a\r\n", "X: y", "z\r\n\r\n"
	buf := []byte(done + unfinished)
	lim := http1.DefaultLimits()
	var h http1.Head
	if n, err := h.Parse(buf, &lim); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	clear(buf[:len(done)])
	buf = append(buf, rest...)
	if n, err := h.Parse(buf, &lim); n != len(buf) || err != nil {
		t.Fatalf("got n = %d, err = %v; want %d, nil", n, err, len(buf))
	}
	if _, v := h.Field(1); string(v) != "yz" || string(h.Path()) != "\x00\x00" {
		t.Errorf("got X %q and path %q", v, h.Path())
	}
}

func TestAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("race builds allocate more")
	}
	lim := http1.DefaultLimits()
	plain, browser, bad := []byte(plainHead), []byte(browserHead), []byte(lines("GET / HTTP/1.1"))
	var h http1.Head
	for _, c := range []struct {
		name string
		max  float64
		run  func()
	}{
		{"plain head", 0, func() { h.Parse(plain, &lim) }},
		{"browser head", 0, func() { h.Parse(browser, &lim) }},
		{"head in two pieces", 0, func() { h.Parse(browser[:99], &lim); h.Parse(browser, &lim) }},
		{"lookup", 0, func() { h.Get("cache-control") }},
		{"refusal", 1, func() { h.Parse(bad, &lim) }},
	} {
		if got := testing.AllocsPerRun(100, c.run); got > c.max {
			t.Errorf("%s: got %v allocations, want at most %v", c.name, got, c.max)
		}
	}
}
