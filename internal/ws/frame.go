package ws

import "encoding/binary"

// An Opcode is the type of a frame (RFC 6455, section 5.2).
type Opcode uint8

const (
	Continuation Opcode = 0
	Text         Opcode = 1
	Binary       Opcode = 2
	Close        Opcode = 8
	Ping         Opcode = 9
	Pong         Opcode = 10
)

// IsControl reports whether the opcode is that of a control frame: close, ping, pong or a reserved control frame.
func (o Opcode) IsControl() bool { return o&8 != 0 }

const (
	// MaxHeader is the maximum length of a frame header, in bytes.
	MaxHeader = 14
	// MaxControl is the maximum length of the payload of a control frame, in bytes.
	MaxControl = 125
)

// A Header is the header of a frame from a client.
type Header struct {
	Length     int64 // length of the payload, in bytes
	Mask       Mask
	Opcode     Opcode
	Fin        bool // the last frame of a message
	Compressed bool // bit RSV1: the first frame of a compressed message
}

// The bits of the first two bytes of a header.
const (
	finBit      = 0x80
	rsv1Bit     = 0x40
	rsvBits     = 0x30 // RSV2 and RSV3
	opcodeBits  = 0x0f
	maskBit     = 0x80
	lengthBits  = 0x7f
	lengthIs16  = 126
	lengthIs64  = 127
	maxLength64 = 1<<63 - 1
)

// ParseHeader parses the header of a frame from a client, at the beginning of b. It returns the length of the header, or 0 if
// b contains only a part of the header. It returns an error as soon as the bytes show one.
func ParseHeader(b []byte) (h Header, n int, err error) {
	if len(b) == 0 {
		return h, 0, nil
	}
	h.Opcode = Opcode(b[0] & opcodeBits)
	h.Fin, h.Compressed = b[0]&finBit != 0, b[0]&rsv1Bit != 0
	switch {
	case b[0]&rsvBits != 0:
		return h, 0, errReserved
	case h.Opcode > Binary && h.Opcode < Close || h.Opcode > Pong:
		return h, 0, errOpcode
	case h.Opcode.IsControl() && !h.Fin:
		return h, 0, errControlFragment
	case h.Opcode.IsControl() && h.Compressed:
		return h, 0, errReserved
	}
	if len(b) == 1 {
		return h, 0, nil
	}
	length := b[1] & lengthBits
	switch {
	case b[1]&maskBit == 0:
		return h, 0, errUnmasked
	case h.Opcode.IsControl() && length > MaxControl:
		return h, 0, errControlLength
	}
	n = 2
	switch length {
	case lengthIs16:
		n = 4
		if len(b) < n {
			return h, 0, nil
		}
		h.Length = int64(binary.BigEndian.Uint16(b[2:]))
		if h.Length < lengthIs16 {
			return h, 0, errLength
		}
	case lengthIs64:
		n = 10
		if len(b) < n {
			return h, 0, nil
		}
		long := binary.BigEndian.Uint64(b[2:])
		if long > maxLength64 || long>>16 == 0 {
			return h, 0, errLength
		}
		h.Length = int64(long)
	default:
		h.Length = int64(length)
	}
	if len(b) < n+4 {
		return h, 0, nil
	}
	h.Mask = Mask(binary.LittleEndian.Uint32(b[n:]))
	return h, n + 4, nil
}

// AppendHeader appends the header of a frame from a server. Such frames are not masked. fin marks the last frame of a message.
// length is the length of the payload, in bytes.
func AppendHeader(b []byte, op Opcode, fin, compressed bool, length int) []byte {
	first := byte(op)
	if fin {
		first |= finBit
	}
	if compressed {
		first |= rsv1Bit
	}
	switch {
	case length < lengthIs16:
		return append(b, first, byte(length))
	case length < 1<<16:
		return append(b, first, lengthIs16, byte(length>>8), byte(length))
	}
	return binary.BigEndian.AppendUint64(append(b, first, lengthIs64), uint64(length))
}

// AppendFrame appends a frame that is a whole message or a control frame.
func AppendFrame(b []byte, op Opcode, payload []byte) []byte {
	return append(AppendHeader(b, op, true, false, len(payload)), payload...)
}

// TextFrame returns a frame with a text message of two parts.
func TextFrame(first, second []byte) []byte {
	n := len(first) + len(second)
	return append(append(AppendHeader(make([]byte, 0, n+MaxHeader), Text, true, false, n), first...), second...)
}

// Payload returns the payload of a complete frame from a server.
func Payload(frame []byte) []byte {
	switch frame[1] {
	case lengthIs16:
		return frame[4:]
	case lengthIs64:
		return frame[10:]
	}
	return frame[2:]
}

// A Mask is the masking key of a frame: its four bytes as a little-endian number.
type Mask uint32

// Apply masks or unmasks b in place. It returns the mask for the following bytes of the payload. If the length of b is not a
// multiple of 4, that mask is rotated.
func (m Mask) Apply(b []byte) Mask {
	if m == 0 {
		return m
	}
	word := uint64(m) | uint64(m)<<32
	for len(b) >= 32 {
		p := (*[32]byte)(b)
		binary.LittleEndian.PutUint64(p[0:], binary.LittleEndian.Uint64(p[0:])^word)
		binary.LittleEndian.PutUint64(p[8:], binary.LittleEndian.Uint64(p[8:])^word)
		binary.LittleEndian.PutUint64(p[16:], binary.LittleEndian.Uint64(p[16:])^word)
		binary.LittleEndian.PutUint64(p[24:], binary.LittleEndian.Uint64(p[24:])^word)
		b = b[32:]
	}
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^word)
		b = b[8:]
	}
	for i := range b {
		b[i] ^= byte(m)
		m = m>>8 | m<<24
	}
	return m
}
