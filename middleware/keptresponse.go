package middleware

import (
	"encoding/binary"
	"strings"

	"github.com/dunlinhttp/dunlin"
)

// A stored response consists of the status (2 bytes), the number of header fields (2), the names and
// values of the fields, and the body. The length (4 bytes) precedes each name, each value and the body.

// appendResponse appends a complete response, without the fields for which leave reports true.
func appendResponse(b []byte, resp dunlin.Response, leave func(name string) bool) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(resp.StatusCode()))
	at, n := len(b), 0
	b = append(b, 0, 0)
	for name, value := range resp.Headers() {
		if leave(name) {
			continue
		}
		b, n = appendText(appendText(b, name), value), n+1
	}
	binary.BigEndian.PutUint16(b[at:], uint16(n))
	b = binary.BigEndian.AppendUint32(b, uint32(resp.Len()))
	return append(b, resp.Body()...)
}

func appendText(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
	return append(b, s...)
}

// parseResponse decodes a response that appendResponse has encoded. It reports false for other bytes.
// The response keeps b.
func parseResponse(b []byte) (dunlin.Response, bool) {
	if len(b) < 4 {
		return dunlin.Response{}, false
	}
	status, n := int(binary.BigEndian.Uint16(b)), int(binary.BigEndian.Uint16(b[2:]))
	b = b[4:]
	resp := dunlin.Empty().Status(status)
	for range n {
		var name, value []byte
		var ok bool
		if name, b, ok = cutText(b); ok {
			value, b, ok = cutText(b)
		}
		if !ok {
			return dunlin.Response{}, false
		}
		resp = resp.AddHeader(string(name), string(value))
	}
	body, rest, ok := cutText(b)
	if !ok || len(rest) > 0 {
		return dunlin.Response{}, false
	}
	if len(body) > 0 {
		resp = resp.WithBody(body)
	}
	return resp, resp.Err() == nil
}

func cutText(b []byte) (text, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := binary.BigEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return nil, nil, false
	}
	return b[4 : 4+n : 4+n], b[4+n:], true
}

// isField reports whether a name equals one of the given names, ignoring case.
func isField(name string, some ...string) bool {
	for _, s := range some {
		if strings.EqualFold(name, s) {
			return true
		}
	}
	return false
}
