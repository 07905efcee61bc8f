package router_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/router"
)

func TestCanonical(t *testing.T) {
	tests := []struct {
		escaped, want string
		offset        int // offset of the error, or -1
	}{
		{"/", "/", -1},
		{"/caf%C3%A9", "/café", -1},
		{"/café", "/café", -1},
		{"/a%2Fb%2fc", "/a%2Fb%2Fc", -1},
		{"/100%25", "/100%25", -1},
		{"/%252F", "/%252F", -1},
		{"/%2e%2E/x", "/../x", -1},
		{"/%7E~", "/~~", -1},
		{"/a+b%20c%00", "/a+b c\x00", -1},
		{"/a%", "", 2},
		{"/a%4", "", 2},
		{"/%41%zz", "", 4},
	}
	for _, test := range tests {
		got, err := router.Canonical([]byte("kept"), test.escaped)
		escape := router.EscapeError{Offset: -1}
		errors.As(err, &escape)
		if escape.Offset != test.offset {
			t.Errorf("%q: got error %v, want offset %d", test.escaped, err, test.offset)
		}
		if test.offset < 0 && string(got) != "kept"+test.want {
			t.Errorf("%q: got %q, want %q", test.escaped, got, test.want)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{"/", "/caf%C3%A9", "/a%2Fb", "/%25", "/%", "/%g0", "/a/../b", "//%2e", "/x%2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, escaped string) {
		got, err := router.Canonical(nil, escaped)
		want, wantErr := url.PathUnescape(escaped)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("got error %v, net/url returns %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if value := router.Unescape(string(got)); value != want {
			t.Fatalf("%q: got value %q, net/url returns %q", got, value, want)
		}
		if strings.Count(string(got), "/") != strings.Count(escaped, "/") {
			t.Fatalf("%q has different segments from %q", got, escaped)
		}
		// The form for a link has the same canonical path.
		link := router.AppendEscaped(nil, string(got))
		again, err := router.Canonical(nil, string(link))
		if err != nil || string(again) != string(got) {
			t.Fatalf("canonical form of %[3]q: got %[2]q, want %[1]q", got, again, link)
		}
		clean, dirty := router.Clean(string(got))
		if dirty == (clean == string(got)) && strings.HasPrefix(string(got), "/") {
			t.Fatalf("dirty is %v, but Clean(%q) = %q", dirty, got, clean)
		}
		if _, dirty := router.Clean(clean); dirty {
			t.Fatalf("the result %q is not clean", clean)
		}
	})
}

func TestClean(t *testing.T) {
	for path, want := range map[string]string{
		"/": "/", "/a": "/a", "/a/": "/a/", "//": "/", "/a//b": "/a/b", "/a//": "/a/", "/./a": "/a", "/a/.": "/a/", "/a/..": "/",
		"/a/b/..": "/a/", "/a/b/../c": "/a/c", "/../a": "/a", "/..": "/", "/.": "/", "/a/.b/..c/...": "/a/.b/..c/...", "/a/../../b/": "/b/",
	} {
		got, dirty := router.Clean(path)
		if got != want || dirty != (path != want) {
			t.Errorf("%s: got %s, dirty %v; want %s", path, got, dirty, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { router.Clean("/a/.b/c/") }); n != 0 {
		t.Errorf("got %v allocations for a clean path", n)
	}
}

func TestUnescape(t *testing.T) {
	for canonical, want := range map[string]string{
		"": "", "a": "a", "a%2Fb": "a/b", "%25": "%", "%252F": "%2F", "%2F%2F": "//",
	} {
		if got := router.Unescape(canonical); got != want {
			t.Errorf("%q: got %q, want %q", canonical, got, want)
		}
		if got := router.AppendValue([]byte("x"), canonical); string(got) != "x"+want {
			t.Errorf("%q: got %q appended", canonical, got)
		}
	}
}
