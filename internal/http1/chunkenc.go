package http1

import "math/bits"

// Writing a chunk: its header, n bytes of data, CRLF. After the last chunk of
// data come [LastChunk], trailer fields if any, and CRLF. A header must never
// be written for n = 0, because that chunk ends the body.

const hexDigits = "0123456789abcdef"

// MaxChunkHeader is the length of the longest chunk header, in bytes: the room
// to leave in front of data that is to be sent as a chunk.
const MaxChunkHeader = 16 + len("\r\n")

// AppendChunkHeader appends the header of a chunk of n > 0 bytes of data.
func AppendChunkHeader(dst []byte, n int) []byte {
	for shift := (bits.Len(uint(n)) - 1) / 4 * 4; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[n>>shift&0xF])
	}
	return append(dst, '\r', '\n')
}

// PutChunkHeader writes the header of a chunk of n > 0 bytes of data at the
// end of room, so that it stands right before data that follows room, and
// returns where in room it starts. It panics if room is too short for it;
// [MaxChunkHeader] always suffices.
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
