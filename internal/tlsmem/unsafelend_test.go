//go:build !go1.28

package tlsmem

import (
	"bytes"
	"reflect"
	"testing"
)

// LendInPlace does not modify a tls.Conn whose fields have other names or types.
func TestUnknownLayoutOfConn(t *testing.T) {
	if !found {
		t.Error("the layout of tls.Conn is unknown: records are copied")
	}
	type good struct {
		rawInput bytes.Buffer
		input    bytes.Reader
		hand     bytes.Buffer
	}
	type inner struct{ rawInput bytes.Buffer }
	for _, c := range []struct {
		what  string
		conn  any
		known bool
	}{
		{"known layout", good{rawInput: bytes.Buffer{}, input: bytes.Reader{}, hand: bytes.Buffer{}}, true},
		{"other name", struct {
			raw   bytes.Buffer
			input bytes.Reader
			hand  bytes.Buffer
		}{}, false},
		{"other type", struct {
			rawInput, hand bytes.Buffer
			input          *bytes.Reader
		}{}, false},
		{"within another struct", struct {
			inner
			input bytes.Reader
			hand  bytes.Buffer
		}{inner: inner{rawInput: bytes.Buffer{}}}, false},
	} {
		if _, _, _, known := findInputs(reflect.TypeOf(c.conn)); known != c.known {
			t.Errorf("%s: got %v", c.what, known)
		}
	}
}
