package files_test

import (
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/files"
)

func TestRange(t *testing.T) {
	const malformed = "bytes=-" // http.ServeContent refuses it
	for field, want := range map[string]string{
		"bytes=2-4":                         "bytes=2-4",
		"bytes=2-":                          "bytes=2-",
		"bytes=-3":                          "bytes=-3",
		"Bytes = 2-4 , -1":                  "bytes=2-4,-1",
		"bytes=,2-4,,":                      "bytes=2-4",
		"bytes=007-9":                       "bytes=7-9",
		"bytes=0-99999999999999999999":      "bytes=0-72057594037927936",
		"bytes=99999999999999999999-":       "bytes=72057594037927936-",
		"bytes=-99999999999999999999":       "bytes=-72057594037927936",
		"bytes=-0":                          "bytes=10-",
		"bytes=-0,1-2":                      "bytes=10-,1-2",
		"bytes=4-2":                         malformed,
		"bytes=20-12":                       malformed,
		"bytes=1-2,4-2":                     malformed,
		"bytes=":                            "",
		"bytes=,":                           "",
		"bytes=-":                           malformed,
		"bytes=2":                           malformed,
		"bytes=+2-4":                        malformed,
		"bytes=2-4-6":                       malformed,
		"bytes=a-b":                         malformed,
		"bytes 2-4":                         "",
		"lines=2-4":                         "",
		"":                                  "",
		"bytes=2-4, bytes=5-6":              malformed,
		"bytes=" + strings.Repeat("9", 400): malformed,
	} {
		if got := strings.Join(files.Range("GET", field, 10), "|"); got != want {
			t.Errorf("%q: got %q, want %q", field, got, want)
		}
	}
	if got := files.Range("GET", "bytes=-3", 0); got != nil {
		t.Errorf("of nothing: got %q", got)
	}
	if got := files.Range("HEAD", "bytes=-3", 10); got != nil {
		t.Errorf("of HEAD: got %q", got)
	}
}
