package http1_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/http1"
)

// A present field is never reported as lacking, regardless of case. Most absent fields are reported as lacking.
func TestNames(t *testing.T) {
	const token = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	name := func() string {
		b := make([]byte, 1+rand.IntN(20))
		for i := range b {
			b[i] = token[rand.IntN(len(token))]
		}
		return string(b)
	}
	limits := http1.DefaultLimits()
	lacking := 0
	const rounds, fields = 2000, 4
	for range rounds {
		var names []string
		raw := "GET / HTTP/1.1\r\nHost: a\r\n"
		for range fields {
			names = append(names, name())
			raw += "y" + names[len(names)-1] + ": 1\r\n"
			if rand.IntN(4) == 0 {
				raw += "y" + names[rand.IntN(len(names))] + ": 2\r\n"
			}
		}
		var h http1.Head
		if n, err := h.Parse([]byte(raw+"\r\n"), &limits); n == 0 || err != nil {
			t.Fatal(n, err)
		}
		all := h.Names()
		for _, name := range names {
			for _, spelled := range []string{"y" + name, strings.ToUpper("y" + name), strings.ToLower("y" + name)} {
				if all.Lacks(spelled) || h.Index(spelled, 0) < 0 {
					t.Fatalf("Lacks(%q) is true for %q, which has the field", spelled, raw)
				}
				first, second := h.Lines(spelled)
				if want := h.Index(spelled, 0); first != want || second != h.Index(spelled, want+1) {
					t.Fatalf("Lines(%q): got %d and %d for %q", spelled, first, second, raw)
				}
			}
		}
		if err := three(&h, [3]string{"y" + names[0], strings.ToUpper("y" + names[1]), name()}); err != "" {
			t.Fatalf("%s for %q", err, raw)
		}
		if all.Lacks(name()) {
			lacking++
		}
	}
	if lacking < rounds*3/4 {
		t.Errorf("of %d absent names, Lacks reported %d", rounds, lacking)
	}
	var none http1.Head
	if all := none.Names(); !all.Lacks("Host") || all.Lacks("") {
		t.Error("Lacks is false for a head without fields")
	}
}

// three describes a difference between Three and Lines; it returns "" if there is none.
func three(h *http1.Head, names [3]string) string {
	said, second, third, twice := h.Three(names[0], names[1], names[2])
	var values [3][]byte
	again := false
	for i, name := range names {
		first, other := h.Lines(name)
		again = again || other >= 0
		if first >= 0 {
			_, values[i] = h.Field(first)
		}
	}
	if twice != again {
		return fmt.Sprintf("%q: another line: %v", names, twice)
	}
	if !twice && (said != (len(values[0]) > 0) || string(second) != string(values[1]) || string(third) != string(values[2]) || (third == nil) != (values[2] == nil)) {
		return fmt.Sprintf("%q: %v %q %q", names, said, second, third)
	}
	return ""
}

// Names that differ only in case are equal, and other names are not.
func TestNamesIgnoreCase(t *testing.T) {
	limits := http1.DefaultLimits()
	for a := range byte(128) {
		for b := range byte(128) {
			one, other := "ab"+string(rune(a)), "abcdefg"+string(rune(b))
			var h http1.Head
			raw := "GET / HTTP/1.1\r\nHost: a\r\nab" + string(rune(b)) + ": 1\r\nabcdefg" + string(rune(a)) + ":\r\n\r\n"
			if n, err := h.Parse([]byte(raw), &limits); n == 0 || err != nil {
				continue // not a name
			}
			if err := three(&h, [3]string{one, other, "host"}); err != "" {
				t.Fatal(err, raw)
			}
		}
	}
}

// A name that differs in a single bit, at any position and for any length, is a different name, except for the case bit of a letter.
func TestNamesDifferByOneBit(t *testing.T) {
	limits := http1.DefaultLimits()
	const long = "Abcdefghij-KlmnopqrsT"
	for size := 1; size <= len(long); size++ {
		for at := range size {
			for bit := range 7 {
				sent := []byte(long[len(long)-size:])
				sent[at] ^= 1 << bit
				var h http1.Head
				if n, err := h.Parse([]byte("GET / HTTP/1.1\r\nHost: a\r\n"+string(sent)+": 1\r\n\r\n"), &limits); n == 0 || err != nil {
					continue // not a name
				}
				if err := three(&h, [3]string{"X-Request-ID", "Host", long[len(long)-size:]}); err != "" {
					t.Errorf("%s, head %q", err, sent)
				}
			}
		}
	}
}
