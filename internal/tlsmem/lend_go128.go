//go:build go1.28

package tlsmem

import (
	"bytes"
	"crypto/tls"
)

// inputs are what unsafelend.go finds in the releases of Go that it knows.
type inputs struct {
	raw, hand *bytes.Buffer
	plain     *bytes.Reader
}

func inputsOf(*tls.Conn) (in inputs, known bool) { return inputs{}, false }
