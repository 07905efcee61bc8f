//go:build !go1.28

package tlsmem

import (
	"bytes"
	"reflect"
	"testing"
)

// A tls.Conn whose fields have other names or types is not modified.
func TestInputsThatAreNotAsTheyShouldBe(t *testing.T) {
	if !found {
		t.Error("crypto/tls has changed: records are copied")
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
		{"as they should be", good{rawInput: bytes.Buffer{}, input: bytes.Reader{}, hand: bytes.Buffer{}}, true},
		{"another name", struct {
			raw   bytes.Buffer
			input bytes.Reader
			hand  bytes.Buffer
		}{}, false},
		{"another type", struct {
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
			t.Errorf("%s: %v", c.what, known)
		}
	}
}
