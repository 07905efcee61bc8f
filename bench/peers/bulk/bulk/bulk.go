// Package bulk is what servers of much data have in common: how much is sent and taken, and in what pieces.
package bulk

import (
	"io"
	"strconv"
)

// Path is where a server sends as many bytes as the query says (GET), or counts those that it is sent (POST).
const Path = "/bulk"

// Piece is how many bytes are read and written at once.
const Piece = 64 << 10

// Most is how many bytes may be asked for, or sent.
const Most = 4 << 30

// Asked returns how many bytes a query value asks for; false if it does not say.
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

// Count reads all there is, and returns how many bytes that was.
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
