package http1_test

import (
	"testing"

	"github.com/dunlinhttp/dunlin/internal/http1"
)

func TestScanTarget(t *testing.T) {
	for _, c := range []struct {
		target  string
		pathEnd int
		escaped bool
		ok      bool
	}{
		{"/", 1, false, true}, {"/a?b", 2, false, true}, {"/a%2fb?c%", 6, true, true}, {"*", 1, false, true}, {"/a?", 2, false, true},
		{"/a#b", 0, false, false}, {"/a b", 0, false, false}, {"/a?b\x00", 0, false, false}, {"/\xc3\xa4", 0, false, false},
		{"/%4", 2, true, false}, {"/%zz", 2, true, false}, {"/a%", 2, true, false},
	} {
		pathEnd, escaped, ok := http1.ScanTarget([]byte(c.target))
		if ok != c.ok || ok && (pathEnd != c.pathEnd || escaped != c.escaped) {
			t.Errorf("%q: got %d, %v, %v", c.target, pathEnd, escaped, ok)
		}
	}
}

func TestSharedChecks(t *testing.T) {
	is := func(what string, got, want bool) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %v", what, got)
		}
	}
	is("authority", http1.ValidAuthority([]byte("a.example:80")), true)
	is("empty authority", http1.ValidAuthority(nil), false)
	is("user", http1.ValidAuthority([]byte("u@a")), false)
	is("port", http1.HasPort([]byte("a:1")), true)
	is("IPv6 address without a port", http1.HasPort([]byte("[::1]")), false)
	is("host without a port", http1.HasPort([]byte("a")), false)
	is("nothing", http1.HasPort(nil), false)
	is("token", http1.IsToken([]byte("M-SEARCH")), true)
	is("token with a space", http1.IsToken([]byte("a b")), false)
	is("empty token", http1.IsToken(nil), false)
	is("value", http1.IsValue([]byte("a\tb \xff")), true)
	is("value with a line feed", http1.IsValue([]byte("a\n")), false)
	is("trailer", http1.ForbiddenInTrailer([]byte("Cookie")), true)
	is("other trailer", http1.ForbiddenInTrailer([]byte("checksum")), false)
	is("fold", http1.EqualFold([]byte("aB"), []byte("Ab")), true)
	is("bytes that differ in bit 5 only", http1.EqualFold([]byte("@"), []byte("`")), false)
	for value, want := range map[string]int64{"0": 0, "12": 12, "9223372036854775807": 1<<63 - 1, "": -1, "+1": -1, "9223372036854775808": -1, "1,1": -1} {
		if n, ok := http1.ParseContentLength([]byte(value)); ok != (want >= 0) || ok && n != want {
			t.Errorf("Content-Length %q: got %d, %v", value, n, ok)
		}
	}
}
