package http1_test

import (
	"testing"

	"github.com/dunlinhttp/dunlin/internal/http1"
)

// NamesFields reports only heads whose Connection lines name fields.
func TestNamesFields(t *testing.T) {
	var h http1.Head
	lim := http1.Limits{MaxTarget: 100, MaxHead: 1000, MaxFields: 10}
	for lines, want := range map[string]bool{
		"":                                   false,
		"Connection: keep-alive\r\n":         false,
		"connection: Keep-Alive , close\r\n": false,
		"Connection: ,, Upgrade\r\n":         false,
		"Connection: X-Tenant\r\n":           true,
		"Connection: close, x-tenant\r\n":    true,
		"Connection: keep-alive\r\nCONNECTION:\tCookie\r\n": true,
		"Connection: Cookie\r\nConnection: keep-alive\r\n":  true,
		"Connection: closed\r\n":                            true,
	} {
		text := []byte("GET / HTTP/1.1\r\nHost: example.com\r\n" + lines + "\r\n")
		h.Reset()
		if _, err := h.Parse(text, &lim); err != nil || h.NamesFields() != want {
			t.Errorf("%q: got %v, error %v, want %v", lines, h.NamesFields(), err, want)
		}
	}
}
