package jsonwire

import (
	"bytes"
	"encoding"
	"encoding/json"
	"time"
)

// method appends a value whose type has a method that encodes it.
func (e *encoder) method(dst []byte, p *plan, m memory) ([]byte, *Error) {
	var v any
	switch p.op {
	case opRaw:
		return e.raw(dst, p, m)
	case opMarshal, opText:
		v = pointerTo(p.pointer, m)
	case opMarshalPointer, opTextPointer:
		if m.isNil() {
			return append(dst, "null"...), nil
		}
		v = pointerTo(p.pointer, m.deref())
	default:
		if v = loadInterface(m, true); v == nil {
			return append(dst, "null"...), nil
		}
	}
	switch p.op {
	case opText, opTextPointer, opTextInterface:
		return e.text(dst, p, v.(encoding.TextMarshaler))
	}
	b, err := v.(json.Marshaler).MarshalJSON()
	if err != nil {
		return dst, marshalerError(p, err)
	}
	return e.compact(dst, p, b)
}

func marshalerError(p *plan, err error) *Error {
	return &Error{Err: &json.MarshalerError{Type: p.typ, Err: err}}
}

func (e *encoder) text(dst []byte, p *plan, m encoding.TextMarshaler) ([]byte, *Error) {
	b, err := m.MarshalText()
	if err != nil {
		return dst, &Error{Err: &textError{&json.MarshalerError{Type: p.typ, Err: err}}}
	}
	return appendString(dst, bytesString(b), e.esc), nil
}

// raw appends a json.RawMessage. A nil RawMessage is written as null, and an empty RawMessage is an error.
func (e *encoder) raw(dst []byte, p *plan, m memory) ([]byte, *Error) {
	if m.isNil() {
		return append(dst, "null"...), nil
	}
	return e.compact(dst, p, load[[]byte](m))
}

// compact checks JSON from a user's method and appends it without white space. It escapes <, > and & if the mode requires it.
func (e *encoder) compact(dst []byte, p *plan, src []byte) ([]byte, *Error) {
	n := len(dst)
	buf := bytes.NewBuffer(dst)
	if err := json.Compact(buf, src); err != nil {
		return dst, marshalerError(p, err)
	}
	dst = buf.Bytes()
	if e.mode.html() && mayNeedHTMLEscape(dst[n:]) {
		var escaped bytes.Buffer
		json.HTMLEscape(&escaped, dst[n:])
		dst = append(dst[:n], escaped.Bytes()...)
	}
	return dst, nil
}

// mayNeedHTMLEscape reports whether b contains <, > or &, or the first byte of U+2028 and U+2029. Other characters have the
// same first byte, so the result may be true without need.
func mayNeedHTMLEscape(b []byte) bool {
	for _, c := range b {
		if c == '<' || c == '>' || c == '&' || c == 0xE2 {
			return true
		}
	}
	return false
}

// appendTime appends the time.Time at m. The output is that of MarshalJSON, without an allocation.
func appendTime(dst []byte, p *plan, m memory) ([]byte, *Error) {
	t := load[time.Time](m)
	out, err := t.AppendText(append(dst, '"'))
	if err != nil {
		// RFC 3339 cannot express the year or the zone. MarshalJSON returns the error for this.
		if _, err = t.MarshalJSON(); err != nil {
			return dst, marshalerError(p, err)
		}
	}
	return append(out, '"'), nil
}
