package exchange

import (
	"errors"
	"io"
)

// Rendered returns an Own with a body that render writes. After render has returned, writes fail, because the buffer may belong
// to another answer then.
func Rendered(block *Block, render func(io.Writer) error) (*Own, error) {
	w := &bodyWriter{NewOwn(block)}
	x := w.own
	x.Buf = x.Buf[:0]
	defer func() { w.own = nil }()
	if err := render(w); err != nil {
		x.Free()
		return nil, err
	}
	return x, nil
}

// A bodyWriter appends to the body of an answer.
type bodyWriter struct{ own *Own } // nil once the body is complete

var errBodyClosed = errors.New("write to a response body after the function that renders it has returned")

func (w *bodyWriter) Write(p []byte) (int, error) {
	if w.own == nil {
		return 0, errBodyClosed
	}
	w.own.Buf = append(w.own.Buf, p...)
	return len(p), nil
}

func (w *bodyWriter) WriteString(s string) (int, error) {
	if w.own == nil {
		return 0, errBodyClosed
	}
	w.own.Buf = append(w.own.Buf, s...)
	return len(s), nil
}
