package h2_test

import (
	"encoding/binary"
	"strings"
)

// Frames as bytes (RFC 9113, section 6), right or wrong.

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

const (
	tData byte = iota
	tHeaders
	tPriority
	tReset
	tSettings
	tPush
	tPing
	tGoAway
	tWindow
	tContinuation
	tUnknown        byte = 0x55
	tPriorityUpdate byte = 0x10

	ack          byte = 1
	endStream    byte = 1
	endHeaders   byte = 4
	padded       byte = 8
	withPriority byte = 32
)

// Settings, and codes of errors.
const (
	setTable, setPush, setStreams, setWindow, setFrame, setList = 1, 2, 3, 4, 5, 6

	noError, protocol, internal, flow, closed, size, refused, cancel, compression, enhanceYourCalm = 0, 1, 2, 3, 5, 6, 7, 8, 9, 11
)

// frame returns a frame whose payload is made of parts.
func frame(kind, flags byte, stream uint32, parts ...string) string {
	payload := strings.Join(parts, "")
	n := len(payload)
	return string([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}) + u32(stream) + payload
}

// head returns the header of a frame with n bytes of payload, without the payload.
func head(kind, flags byte, stream uint32, n int) string {
	return string([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}) + u32(stream)
}

func u32(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

func setting(id uint16, value uint32) string {
	return string(binary.BigEndian.AppendUint16(nil, id)) + u32(value)
}

func headers(stream uint32, flags byte, block string) string {
	return frame(tHeaders, flags|endHeaders, stream, block)
}

// data returns a body in frames of at most 16 KiB.
func data(stream uint32, body string, flags byte) string {
	var b strings.Builder
	for len(body) > 16<<10 {
		b.WriteString(frame(tData, 0, stream, body[:16<<10]))
		body = body[16<<10:]
	}
	b.WriteString(frame(tData, flags, stream, body))
	return b.String()
}

// block returns fields, names and values in turn, as literals that touch no dynamic table
// (RFC 7541, section 6.2.2).
func block(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		b.WriteByte(0)
		b.WriteString(literal(pairs[i]))
		b.WriteString(literal(pairs[i+1]))
	}
	return b.String()
}

func literal(s string) string { return prefixed(0, 7, len(s)) + s }

// prefixed returns a number of HPACK with a prefix of some bits (RFC 7541, section 5.1).
func prefixed(first byte, bits, n int) string {
	most := 1<<bits - 1
	if n < most {
		return string([]byte{first | byte(n)})
	}
	b := []byte{first | byte(most)}
	for n -= most; n >= 128; n >>= 7 {
		b = append(b, byte(n)|128)
	}
	return string(append(b, byte(n)))
}

// request returns the fields of a request, followed by more.
func request(method, path string, more ...string) string {
	return block(append([]string{":method", method, ":scheme", scheme, ":authority", authority, ":path", path}, more...)...)
}

// The default fields of requests. The scheme is https in clear text, too: a proxy sends its server the scheme of the client
// (RFC 9113, section 8.3.1).
const (
	scheme    = "https"
	authority = "test.example"
)

// get and post return requests as frames.
func get(stream uint32, path string, more ...string) string {
	return headers(stream, endStream, request("GET", path, more...))
}

func post(stream uint32, path string, more ...string) string {
	return headers(stream, 0, request("POST", path, more...))
}
