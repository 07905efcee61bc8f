package dunlin_test

import (
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

func TestByteSize(t *testing.T) {
	for text, want := range map[string]dunlin.ByteSize{
		"16MiB": 16 << 20, "500 MB": 500e6, "65536": 65536, "1kB": 1000, "0": 0, "2GiB": 2 << 30, "7B": 7,
	} {
		var got dunlin.ByteSize
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: got %d, error %v; want %d", text, got, err, want)
		}
		var again dunlin.ByteSize
		if err := again.UnmarshalText([]byte(got.String())); err != nil || again != got {
			t.Errorf("%q: the text %v of the value parses as %d, error %v", text, got, again, err)
		}
	}
}

func TestByteSizeErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "whole number",
		"MiB":                  "whole number",
		"-1MiB":                "whole number",
		"1.5GiB":               `unit ".5GiB"`,
		"16M":                  `unit "M"`,
		"99999999999999999999": "too large",
		"9999999TiB":           "too large",
	} {
		var s dunlin.ByteSize
		if err := s.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want it to contain %q", text, err, want)
		}
	}
}
