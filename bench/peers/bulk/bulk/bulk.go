// Package bulk has what the servers that send and receive large bodies share: the lengths of bodies and the size of
// buffers.
package bulk

import (
	"io"
	"strconv"
)

// Path is the path of all requests. GET sends as many bytes as the query requests. POST counts the bytes of the body.
const Path = "/bulk"

// Piece is the number of bytes that are read or written together.
const Piece = 64 << 10

// Most is the maximum length of a body, in bytes.
const Most = 4 << 30

// Asked returns the number of bytes that the value of a query requests. It returns false if the value is invalid.
func Asked(value string) (int64, bool) {
	n, err := strconv.ParseInt(value, 10, 64)
	return n, err == nil && n >= 0 && n <= Most
}

var zeros [Piece]byte

// Send writes n bytes.
func Send(w io.Writer, n int64) error {
	for n > 0 {
		k, err := w.Write(zeros[:min(n, Piece)])
		if err != nil {
			return err
		}
		n -= int64(k)
	}
	return nil
}

// Count reads r to its end and returns the number of bytes.
func Count(r io.Reader) (n int64, err error) {
	buf := make([]byte, Piece)
	for {
		k, err := r.Read(buf)
		n += int64(k)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
