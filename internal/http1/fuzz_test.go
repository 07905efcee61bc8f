package http1_test

import (
	"errors"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/http1"
)

// smallLimits are small enough for short inputs to exceed them.
var smallLimits = http1.Limits{MaxTarget: 24, MaxHead: 160, MaxFields: 4, MaxTrailer: 40, MaxExtension: 10, MaxChunks: 3}

// headSeeds returns the seeds of the fuzz targets: all heads of the tables. Every ordinary test run checks them.
func headSeeds() []string {
	seeds := []string{plainHead, browserHead, "", "\r", "\r\n", "\r\n\r", plainHead + plainHead}
	for _, target := range []string{"/", "/a_b~c?d=e?/%", "/?", "/%41", "/a#", "/a b", "/caf\xc3\xa9?x", "*", "/a?b\x7f"} {
		seeds = append(seeds, "PATCH "+target+" HTTP/1.1\r\nhOST: a\r\n\r\n")
	}
	for _, host := range []string{
		"a", "localhost", "a:", ":1", "a:65535", "a:65536", "a:100000", "127.0.0.1:8080", "a_b", "a/b", "a@b", "a..b", "[::1]:80", "%41",
		" a", "a ", "a\xff", "API.example.com:8443", "api.example.com/", "xn--bcher-kva.example", "exactly8", "exactly8:1", "sixteen.sixteen.",
	} {
		seeds = append(seeds, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n", "GET / HTTP/1.1\r\nHost: "+host+"\r\nA: b\r\nHost: a\r\n\r\n")
	}
	for _, r := range append(refusals, smuggling...) {
		seeds = append(seeds, r.head)
	}
	return seeds
}

// parseAt passes in to a Head in pieces, split at the offsets in cuts. Each piece is in its own buffer, which is
// overwritten afterwards. parseAt returns the outcome and the complete error.
func parseAt(in []byte, lim *http1.Limits, cuts []int) (o outcome, err error) {
	var h http1.Head
	for _, cut := range append(cuts, len(in)) {
		buf := append([]byte(nil), in[:cut]...)
		n, err := h.Parse(buf, lim)
		if err != nil {
			var e http1.Error
			errors.As(err, &e)
			return outcome{status: e.Status()}, err
		}
		if n > 0 {
			return outcome{n: n, head: describeAll(&h)}, nil
		}
		clear(buf)
	}
	return outcome{}, nil
}

// FuzzParse compares Parse with its reference implementation.
func FuzzParse(f *testing.F) {
	for _, s := range headSeeds() {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, in []byte, small bool) {
		lim := http1.DefaultLimits()
		if small {
			lim = smallLimits
		}
		got, err := parseAt(in, &lim, nil)
		if want := slowParse(string(in), lim); got != want {
			t.Errorf("%q (small limits: got %v):\ngot  %+v (%v)\nwant %+v", in, small, got, err, want)
		}
	})
}

// FuzzParseSplit checks that the division of a head does not affect the result: two pieces, split at any position, and byte by byte.
func FuzzParseSplit(f *testing.F) {
	for _, s := range headSeeds() {
		f.Add([]byte(s), uint(len(s)/2))
	}
	f.Fuzz(func(t *testing.T, in []byte, cut uint) {
		if len(in) > 1<<10 {
			return // the following loops take quadratic time
		}
		var all []int
		for i := range in {
			all = append(all, i)
		}
		for _, lim := range []http1.Limits{http1.DefaultLimits(), smallLimits} {
			want, wantErr := parseAt(in, &lim, nil)
			for _, cuts := range [][]int{{int(cut % uint(len(in)+1))}, all} {
				if got, err := parseAt(in, &lim, cuts); got != want || err != wantErr {
					t.Errorf("%q split at %v:\ngot  %+v (%v)\nwant %+v (%v)", in, cuts, got, err, want, wantErr)
				}
			}
		}
	})
}

// TestEverySplit splits every head of the tables at every position.
func TestEverySplit(t *testing.T) {
	for _, s := range headSeeds() {
		in := []byte(s)
		for _, lim := range []http1.Limits{http1.DefaultLimits(), smallLimits} {
			want, wantErr := parseAt(in, &lim, nil)
			for cut := range len(in) {
				if got, err := parseAt(in, &lim, []int{cut}); got != want || err != wantErr {
					t.Fatalf("%q split at %d:\ngot  %+v (%v)\nwant %+v (%v)", in, cut, got, err, want, wantErr)
				}
			}
		}
	}
}
