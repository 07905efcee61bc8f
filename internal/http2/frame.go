package http2

import "encoding/binary"

// Preface is the start of a client's connection (RFC 9113 §3.4).
const Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// HasPreface reports whether in begins with Preface. If in is too short to decide, yes is false, and maybe reports
// whether in is the beginning of Preface.
func HasPreface(in []byte) (yes, maybe bool) {
	n := min(len(in), len(Preface))
	if string(in[:n]) != Preface[:n] {
		return false, false
	}
	return n == len(Preface), true
}

// A frameType is the type of a frame (RFC 9113 §6).
type frameType uint8

const (
	frameData           frameType = 0x0
	frameHeaders        frameType = 0x1
	framePriority       frameType = 0x2
	frameReset          frameType = 0x3
	frameSettings       frameType = 0x4
	framePushPromise    frameType = 0x5
	framePing           frameType = 0x6
	frameGoAway         frameType = 0x7
	frameWindowUpdate   frameType = 0x8
	frameContinuation   frameType = 0x9
	framePriorityUpdate frameType = 0x10 // RFC 9218 §7.1
)

// Flags of frames.
const (
	flagEndStream  = 0x1
	flagAck        = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20
)

const (
	// headerLength is the length of a frame's header, in bytes.
	headerLength = 9

	// maxFrame is the maximum frame payload in bytes. The server accepts no larger frame, and every client must accept
	// frames of this size (RFC 9113 §4.2).
	maxFrame = 16 << 10

	maxStreamID = 1<<31 - 1
	maxWindow   = 1<<31 - 1

	// initialWindow is the initial size of all windows, in bytes (RFC 9113 §6.9.2).
	initialWindow = 65535
)

// A frameHeader is the header of a frame (RFC 9113 §4.1).
type frameHeader struct {
	length int
	kind   frameType
	flags  uint8
	stream uint32
}

func (h *frameHeader) has(flag uint8) bool { return h.flags&flag != 0 }

// readHeader reads the frame header at the start of b. b must have at least headerLength bytes.
func readHeader(b []byte) frameHeader {
	_ = b[headerLength-1]
	return frameHeader{
		length: int(b[0])<<16 | int(b[1])<<8 | int(b[2]),
		kind:   frameType(b[3]),
		flags:  b[4],
		stream: binary.BigEndian.Uint32(b[5:]) & maxStreamID,
	}
}

func appendHeader(dst []byte, h frameHeader) []byte {
	return append(dst, byte(h.length>>16), byte(h.length>>8), byte(h.length), byte(h.kind), h.flags,
		byte(h.stream>>24), byte(h.stream>>16), byte(h.stream>>8), byte(h.stream))
}

// putHeader overwrites the start of b with the frame header h.
func putHeader(b []byte, h frameHeader) { appendHeader(b[:0:headerLength], h) }

func appendReset(dst []byte, stream uint32, code Code) []byte {
	dst = appendHeader(dst, frameHeader{length: 4, kind: frameReset, stream: stream})
	return binary.BigEndian.AppendUint32(dst, uint32(code))
}

func appendWindowUpdate(dst []byte, stream, n uint32) []byte {
	dst = appendHeader(dst, frameHeader{length: 4, kind: frameWindowUpdate, stream: stream})
	return binary.BigEndian.AppendUint32(dst, n)
}

func appendGoAway(dst []byte, last uint32, code Code, debug string) []byte {
	dst = appendHeader(dst, frameHeader{length: 8 + len(debug), kind: frameGoAway})
	dst = binary.BigEndian.AppendUint32(dst, last)
	dst = binary.BigEndian.AppendUint32(dst, uint32(code))
	return append(dst, debug...)
}
