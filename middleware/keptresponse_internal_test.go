package middleware

import (
	"bytes"
	"testing"

	"github.com/dunlinhttp/dunlin"
)

// Any bytes decode as a response or are refused. An encoded response decodes to the same response.
func FuzzKeptResponse(f *testing.F) {
	none := func(string) bool { return false }
	f.Add([]byte{})
	f.Add(appendResponse(nil, dunlin.Text("hello").Header("X-A", "b"), none))
	f.Add(appendResponse(nil, dunlin.NoContent(), none))
	f.Add([]byte{0, 200, 255, 255, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		resp, ok := parseResponse(bytes.Clone(b))
		if !ok {
			return
		}
		again := appendResponse(nil, resp, none)
		resp2, ok := parseResponse(bytes.Clone(again))
		if !ok || !bytes.Equal(appendResponse(nil, resp2, none), again) {
			t.Errorf("%x decodes as %v, whose encoding decodes as %v", b, resp, resp2)
		}
	})
}
