package middleware_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/suite"
	"github.com/dunlinhttp/dunlin/middleware"
)

func secret(c byte) []byte { return bytes.Repeat([]byte{c}, 32) }

func TestKeyRing(t *testing.T) {
	older := middleware.NewKeyRing(secret(1))
	newer := middleware.NewKeyRing(secret(2), secret(1))
	newest := middleware.NewKeyRing(secret(3), secret(2))
	sealed, signed := older.Seal("purpose", []byte("text")), older.Sign("purpose", "te.xt")
	if again := older.Seal("purpose", []byte("text")); again == sealed {
		t.Error("sealing a text twice gave the same value")
	}
	if strings.Contains(sealed, "text") || strings.ContainsAny(sealed, "=;, \"\\") {
		t.Errorf("sealed: got %s", sealed)
	}
	for _, ring := range []*middleware.KeyRing{older, newer} {
		if plain, err := ring.Open("purpose", sealed); err != nil || string(plain) != "text" {
			t.Errorf("Open: got %q, %v", plain, err)
		}
		if value, err := ring.Verify("purpose", signed); err != nil || value != "te.xt" {
			t.Errorf("Verify: got %q, %v", value, err)
		}
		if _, err := ring.Open("another", sealed); !errors.Is(err, middleware.ErrForged) {
			t.Errorf("Open for another purpose: got error %v", err)
		}
		if _, err := ring.Verify("another", signed); !errors.Is(err, middleware.ErrForged) {
			t.Errorf("Verify for another purpose: got error %v", err)
		}
	}
	if _, err := newest.Open("purpose", sealed); !errors.Is(err, middleware.ErrForged) {
		t.Errorf("Open without the key: got error %v", err)
	}
	if _, err := newest.Verify("purpose", signed); !errors.Is(err, middleware.ErrForged) {
		t.Errorf("Verify without the key: got error %v", err)
	}
	if _, err := newest.Open("purpose", newer.Seal("purpose", nil)); err != nil {
		t.Errorf("Open with the key in second place: got error %v", err)
	}
}

// Any change to a sealed or signed value is detected as a forgery.
func TestKeyRingForgeries(t *testing.T) {
	ring := middleware.NewKeyRing(secret(1))
	sealed, signed := ring.Seal("p", []byte("hello")), ring.Sign("p", "hello")
	for i := range sealed {
		for _, c := range []byte{'A', 'B', '_', '=', '\n', 0xff} {
			forged := sealed[:i] + string([]byte{c}) + sealed[i+1:]
			if plain, err := ring.Open("p", forged); forged != sealed && err == nil {
				t.Fatalf("byte %d changed: Open returned %q, want an error", i, plain)
			}
		}
		if _, err := ring.Open("p", sealed[:i]); err == nil {
			t.Fatalf("truncated at byte %d: Open succeeded", i)
		}
	}
	for i := range signed {
		forged := signed[:i] + string([]byte{signed[i] ^ 1}) + signed[i+1:]
		if value, err := ring.Verify("p", forged); err == nil {
			t.Fatalf("byte %d changed: Verify returned %q, want an error", i, value)
		}
		if value, err := ring.Verify("p", signed[:i]); err == nil {
			t.Fatalf("truncated at byte %d: Verify returned %q, want an error", i, value)
		}
	}
	for _, text := range []string{"", ".", "hello.", "hello", strings.Repeat("A", 10_000)} {
		if _, err := ring.Verify("p", text); err == nil {
			t.Errorf("%.20q verifies", text)
		}
		if _, err := ring.Open("p", text); err == nil {
			t.Errorf("%.20q opens", text)
		}
	}
}

func FuzzKeyRingOpen(f *testing.F) {
	ring := middleware.NewKeyRing(secret(1))
	f.Add("")
	f.Add(strings.Repeat("A", 60))
	f.Add(ring.Seal("other", []byte("hello")))
	f.Fuzz(func(t *testing.T, sealed string) {
		if plain, err := ring.Open("p", sealed); err == nil {
			t.Errorf("%q was never sealed, but opens as %q", sealed, plain)
		}
	})
}

func TestKeyRingSettings(t *testing.T) {
	mustPanic(t, "a ring without keys", func() { middleware.NewKeyRing() })
	mustPanic(t, "a short key", func() { middleware.NewKeyRing(make([]byte, 15)) })
	if text := suite.PanicText(func() { middleware.NewKeyRing(secret(1), []byte(os.Getenv("DUNLIN_NO_SUCH_SECRET"))) }); !strings.Contains(text, "secret 1 is empty") || !strings.Contains(text, "environment variable") {
		t.Errorf("a secret of an unset variable: %q", text)
	}
	mustPanic(t, "the same key twice", func() { middleware.NewKeyRing(secret(1), secret(1)) })
}

func ExampleKeyRing() {
	ring := middleware.NewKeyRing([]byte("32 random bytes of your own here"))
	sealed := ring.Seal("reset-password", []byte("user 7"))
	plain, err := ring.Open("reset-password", sealed)
	fmt.Println(string(plain), err)
	_, err = ring.Open("login", sealed)
	fmt.Println(err)
	// Output:
	// user 7 <nil>
	// middleware: verify value: not signed by a key of this ring, or modified
}

// A signature is valid only for its purpose, for any division of the bytes into purpose and value.
func TestSignedPairs(t *testing.T) {
	keys := middleware.NewKeyRing([]byte("0123456789abcdef"))
	for _, c := range []struct{ purpose, value, other, otherValue string }{
		{"reset", "x\x00y", "reset\x00x", "y"},
		{"reset", "x", "reset\x00x", ""},
		{"reset", "xy", "resetx", "y"},
		{"1", "0\x00x", "10", "\x00x"},
		{"", "5\x00reset", "reset", ""},
	} {
		signed := keys.Sign(c.purpose, c.value)
		if got, err := keys.Verify(c.purpose, signed); got != c.value || err != nil {
			t.Errorf("Verify of %q for %q: got %q, error %v", c.value, c.purpose, got, err)
		}
		signature := signed[strings.LastIndexByte(signed, '.'):]
		if got, err := keys.Verify(c.other, c.otherValue+signature); err == nil {
			t.Errorf("%q, signed for %q, verifies as %q for %q", c.value, c.purpose, got, c.other)
		}
	}
}
