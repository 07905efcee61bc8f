package exchange

import "errors"

// A BodyWriter appends to the body of an answer until Close.
type BodyWriter struct{ own *Own }

// NewBodyWriter returns a writer that replaces what is in x.Buf.
func NewBodyWriter(x *Own) *BodyWriter {
	x.Buf = x.Buf[:0]
	return &BodyWriter{x}
}

var errBodyClosed = errors.New("write to a response body after the function that renders it has returned")

// Write appends p.
func (w *BodyWriter) Write(p []byte) (int, error) {
	if w.own == nil {
		return 0, errBodyClosed
	}
	w.own.Buf = append(w.own.Buf, p...)
	return len(p), nil
}

// WriteString appends s.
func (w *BodyWriter) WriteString(s string) (int, error) {
	if w.own == nil {
		return 0, errBodyClosed
	}
	w.own.Buf = append(w.own.Buf, s...)
	return len(s), nil
}

// Close makes later writes fail. The buffer belongs to another answer by then.
func (w *BodyWriter) Close() { w.own = nil }
