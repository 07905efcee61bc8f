package http1

import "math/bits"

// A chunk consists of a header, n bytes of data, and CRLF. The last chunk with data is followed by [LastChunk], the trailer
// fields if any, and CRLF. No header may be written for n = 0, because a chunk without data ends the body.

const hexDigits = "0123456789abcdef"

// MaxChunkHeader is the maximum length of a chunk header, in bytes. A caller reserves this number of bytes in front of the
// data of a chunk.
const MaxChunkHeader = 16 + len("\r\n")

// AppendChunkHeader appends the header of a chunk of n > 0 bytes of data.
func AppendChunkHeader(dst []byte, n int) []byte {
	for shift := (bits.Len(uint(n)) - 1) / 4 * 4; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[n>>shift&0xF])
	}
	return append(dst, '\r', '\n')
}

// PutChunkHeader writes the header of a chunk of n > 0 bytes at the end of room, so that the data can follow directly after
// room in memory. start is the index in room at which the header starts. PutChunkHeader panics if room is too short. A room
// of [MaxChunkHeader] bytes is always sufficient.
func PutChunkHeader(room []byte, n int) (start int) {
	i := len(room) - 2
	room[i], room[i+1] = '\r', '\n'
	for {
		i--
		room[i] = hexDigits[n&0xF]
		n >>= 4
		if n == 0 {
			return i
		}
	}
}

const (
	// CRLF ends the data of a chunk, a trailer section, and a head.
	CRLF = "\r\n"

	// LastChunk precedes the trailer section.
	LastChunk = "0\r\n"

	// EndOfChunks ends a chunked body that has no trailers.
	EndOfChunks = LastChunk + CRLF
)
