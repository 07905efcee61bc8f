package dunlin

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/dunlinhttp/dunlin/internal/invariants"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// The compiler keeps a struct of at most four fields and four words in registers. Returning and modifying responses is fast
// because of that.
func TestResponseFitsRegisters(t *testing.T) {
	r := reflect.TypeFor[Response]().Field(0).Type
	if reflect.TypeFor[Response]().NumField() != 1 {
		t.Fatal("a Response has more fields than its answer")
	}
	word := reflect.TypeFor[uintptr]().Size()
	if want := 3*word + 8; r.Size() > want || r.NumField() > 4 {
		t.Errorf("got a Response of %d bytes in %d fields, want at most %d in 4", r.Size(), r.NumField(), want)
	}
}

// Every open stream has its own Request. Beyond this size, the next size class of the allocator is an eighth larger.
func TestRequestFitsItsClass(t *testing.T) {
	if invariants.Enabled {
		return // a Request has more fields in race builds
	}
	if n := unsafe.Sizeof(Request{}); n > 512 {
		t.Errorf("got a Request of %d bytes, want at most 512", n)
	}
}

// The prepared refusals equal the problems that Problem encodes.
func TestRefusalsMatchProblems(t *testing.T) {
	for _, test := range []struct {
		refusal    []byte
		status     int
		detail     string
		retryAfter string
	}{
		{exchange.AddressRefusal, 503, "the server has as many connections from this address as it takes", "1"},
		{exchange.ConnectionRefusal, 503, "the server has as many connections as it takes", "1"},
		{exchange.ClearTextRefusal, 400, "the request came in clear text: this port speaks TLS, use https", ""},
	} {
		from := bufio.NewReader(bytes.NewReader(test.refusal))
		got, err := http.ReadResponse(from, nil)
		if err != nil {
			t.Fatalf("%q: got error %v", test.refusal, err)
		}
		body, err := io.ReadAll(got.Body)
		want := Problem(&ProblemDetails{Status: test.status, Detail: test.detail})
		if err != nil || string(body) != string(want.a.Body) || got.ContentLength != int64(len(body)) {
			t.Errorf("got body of %d bytes: %s, want %s (%v)", got.ContentLength, body, want.a.Body, err)
		}
		if rest, _ := io.ReadAll(from); len(rest) > 0 {
			t.Errorf("%q: got %q after the end", test.refusal, rest)
		}
		if line, _, _ := strings.Cut(string(test.refusal), "\r\n"); line != "HTTP/1.1 "+got.Status || got.StatusCode != test.status || got.Status[4:] != http.StatusText(test.status) {
			t.Errorf("got status line %q", line)
		}
		if h := got.Header; !got.Close || h.Get("Content-Type") != "application/problem+json" || h.Get("Retry-After") != test.retryAfter {
			t.Errorf("%q: got header %v", test.refusal, h)
		}
	}
}
