package load

import (
	"encoding/binary"
	"net"
	"strings"
	"time"
)

// Types and flags of frames (RFC 9113, section 6).
const (
	h2Data          = 0
	h2Headers       = 1
	h2Priority      = 2
	h2Reset         = 3
	h2Settings      = 4
	h2Ping          = 6
	h2WindowUpdate  = 8
	h2Continuation  = 9
	h2Ack           = 1
	h2EndStream     = 1
	h2EndHeaders    = 4
	h2InitialWindow = 4 // the identifier of a setting
)

const h2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

func h2Frame(b []byte, kind, flags byte, stream uint32, payload string) []byte {
	n := len(payload)
	b = append(b, byte(n>>16), byte(n>>8), byte(n), kind, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

// h2Setting returns one setting in the form of a SETTINGS frame.
func h2Setting(id uint16, value uint32) string {
	return string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, id), value))
}

func h2Number(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

// h2Literal returns s as an HPACK string literal without Huffman coding. s must be shorter than 127+1<<14 bytes.
func h2Literal(s string) string {
	if n := len(s); n >= 127 {
		return "\x7f" + string([]byte{byte(n-127)&0x7f | 0x80, byte((n - 127) >> 7)}) + s
	}
	return string([]byte{byte(len(s))}) + s
}

// h2Block returns the field block of a request for an http URL. It adds no entry to the dynamic table.
func h2Block(method, path string) string {
	const (
		get       = "\x82" // :method GET
		post      = "\x83" // :method POST
		http      = "\x86" // :scheme http
		pathName  = "\x04" // :path, before its literal
		authority = "\x01" // :authority, before its literal
	)
	first := get
	if method == "POST" {
		first = post
	}
	return first + http + pathName + h2Literal(path) + authority + h2Literal("a")
}

// dialH2 opens a connection, sends the given settings, and acknowledges the server's settings without reading
// them.
func dialH2(addr, settings string) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", addr, dialTimeout)
	if err != nil {
		return nil, err
	}
	out := h2Frame([]byte(h2Preface), h2Settings, 0, 0, settings)
	out = h2Frame(out, h2Settings, h2Ack, 0, "")
	err = conn.SetWriteDeadline(time.Now().Add(dialTimeout))
	if err == nil {
		_, err = conn.Write(out)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// h2Answers returns the number of HEADERS and RST_STREAM frames in the bytes that a server has sent.
func h2Answers(in []byte) (n int) {
	for len(in) >= 9 {
		if kind := in[3]; kind == h2Headers || kind == h2Reset {
			n++
		}
		length := 9 + int(in[0])<<16 + int(in[1])<<8 + int(in[2])
		in = in[min(length, len(in)):]
	}
	return n
}

// manyFields are fields as literals that add no entry to the dynamic table.
var manyFields = strings.Repeat("\x00"+h2Literal("x")+h2Literal(strings.Repeat("y", 100)), 100)
