package http1

import "bytes"

// Chunked decodes a chunked body (RFC 9112 §7.1) incrementally. Call Reset before each body. The states of a body are:
//
//	5;ext=1\r\nhello\r\n0\r\nDigest: x\r\n\r\n
//	│└ext    │└data │   │ └trailer lines, then done
//	└size    └LF    └data CR, data LF
type Chunked struct {
	lim     *Limits
	maxBody int64

	state      chunkState
	digits     uint8 // number of digits of the size up to now
	chunk      int64 // size up to now, then the remaining data of the chunk
	decoded    int64 // bytes of data that were returned
	consumed   int64 // bytes of src consumed
	extensions int   // bytes of chunk extensions
	chunks     int64 // number of chunks with data

	trailer trailer
}

type chunkState uint8

const (
	chunkSize       chunkState = iota // hex digits
	chunkBlank                        // white space between the size and ';'
	chunkExtension                    // the extension after ';'
	chunkSizeLF                       // LF of a size line
	chunkData                         // data of the chunk
	chunkDataCR                       // CR after data
	chunkDataLF                       // LF after data
	chunkTrailer                      // trailer lines and the empty line
	chunkBodyDone                     // complete
	chunkBodyFailed                   // refused
)

// maxChunkDigits is the maximum number of hex digits of a chunk size, including leading zeros. Sixteen digits can represent any 63-bit
// size.
const maxChunkDigits = 16

// Reset prepares for a new body. A body of more than maxBody bytes of data is refused with 413 as soon as a chunk size
// exceeds the limit. A negative maxBody means no limit. The limits are not copied and must not change.
func (c *Chunked) Reset(lim *Limits, maxBody int64) {
	if maxBody < 0 {
		maxBody = 1<<63 - 1
	}
	trailer := c.trailer
	trailer.reset()
	*c = Chunked{lim: lim, maxBody: maxBody, trailer: trailer}
}

// Twin returns a decoder that continues from the state of c, to look ahead. It does not contain the trailers.
func (c *Chunked) Twin() Chunked {
	twin := *c
	twin.trailer = trailer{}
	return twin
}

// Done reports whether the body is complete, including trailers.
func (c *Chunked) Done() bool { return c.state == chunkBodyDone }

// Decoded returns the number of bytes of data that were returned.
func (c *Chunked) Decoded() int64 { return c.decoded }

// Remaining returns the number of missing bytes of the current chunk. A caller may use it to size a buffer.
func (c *Chunked) Remaining() int64 {
	if c.state == chunkData {
		return c.chunk
	}
	return 0
}

// Next consumes the first n bytes of src and returns the data among them as a view into src. It returns at the first data, at the end
// of src, or at the end of the body. If data is empty and [Chunked.Done] is false, more input is needed. Bytes after the end of the
// body are not consumed. err is an [Error]; n is then the position of the error, and the connection must close.
// an [Error]; n is then where reading stopped, and the connection must close.
func (c *Chunked) Next(src []byte) (data []byte, n int, err error) {
	return c.next(src, len(src))
}

// Decode consumes the first nSrc bytes of src and copies their data to dst. It stops when dst is full, at the end of src, or
// at the end of the body. dst and src may share memory if dst starts no later than src, so a buffer can be decoded in place.
// err is an [Error]; Decode may return it together with the data before it.
func (c *Chunked) Decode(dst, src []byte) (nDst, nSrc int, err error) {
	for {
		data, n, err := c.next(src[nSrc:], len(dst)-nDst)
		nSrc += n
		nDst += copy(dst[nDst:], data)
		if err != nil || len(data) == 0 {
			return nDst, nSrc, err
		}
	}
}

// next is Next with a limit of room bytes of data.
func (c *Chunked) next(src []byte, room int) (data []byte, n int, err error) {
	for n < len(src) {
		switch c.state {
		case chunkData:
			k := int(min(int64(len(src)-n), int64(room), c.chunk))
			data = src[n : n+k : n+k]
			c.consumed += int64(k)
			c.advance(k)
			return data, n + k, nil
		case chunkTrailer:
			k, err := c.trailerBytes(src[n:])
			n += k
			c.consumed += int64(k)
			if err != nil {
				return nil, n, err
			}
		case chunkBodyDone, chunkBodyFailed:
			return nil, n, nil
		default:
			if p := c.frame(src[n]); p != noProblem {
				return nil, n, c.refuse(p, c.consumed, src[n])
			}
			n++
			c.consumed++
		}
	}
	return nil, n, nil
}

func (c *Chunked) refuse(p problem, offset int64, char byte) error {
	c.state = chunkBodyFailed
	e := Error{problem: p, part: inChunked, offset: offset, limit: c.lim.of(p)}
	if problems[p].withByte {
		e.char = char
	}
	return e
}

// advance records that k bytes of data were returned.
func (c *Chunked) advance(k int) {
	c.chunk -= int64(k)
	c.decoded += int64(k)
	if c.chunk == 0 {
		c.state = chunkDataCR
	}
}

// frame reads one byte that is not data.
func (c *Chunked) frame(b byte) problem {
	switch c.state {
	case chunkSize:
		return c.sizeByte(b)
	case chunkBlank:
		switch b {
		case ' ', '\t':
			return c.extensionByte()
		case ';':
			c.state = chunkExtension
			return c.extensionByte()
		}
		return badChunkSize
	case chunkExtension:
		if b == '\r' {
			c.state = chunkSizeLF
			return noProblem
		}
		if b == '\n' {
			return bareLF
		}
		if class[b]&isValue == 0 {
			return controlInExtension
		}
		return c.extensionByte()
	case chunkSizeLF:
		if b != '\n' {
			return bareCR
		}
		return c.sizeLineEnd()
	case chunkDataCR:
		if b != '\r' {
			return missingChunkCRLF
		}
		c.state = chunkDataLF
	case chunkDataLF:
		if b != '\n' {
			return missingChunkCRLF
		}
		c.state = chunkSize
		c.digits = 0
	}
	return noProblem
}

// sizeByte reads a byte of a chunk size, or the first byte after it. White space is allowed only before ';' (RFC 9112
// §7.1.1).
func (c *Chunked) sizeByte(b byte) problem {
	if d := hexValue(b); d >= 0 {
		if c.digits == maxChunkDigits || c.chunk > (1<<63-1)>>4 {
			return chunkTooLarge
		}
		c.chunk = c.chunk<<4 | int64(d)
		c.digits++
		return noProblem
	}
	switch {
	case c.digits == 0:
		return badChunkSize
	case b == '\r':
		c.state = chunkSizeLF
	case b == ';':
		c.state = chunkExtension
		return c.extensionByte()
	case b == ' ' || b == '\t':
		c.state = chunkBlank
		return c.extensionByte()
	case b == '\n':
		return bareLF
	default:
		return badChunkSize
	}
	return noProblem
}

// sizeLineEnd handles the end of a size line.
func (c *Chunked) sizeLineEnd() problem {
	switch {
	case c.chunk == 0:
		c.state = chunkTrailer
	case c.chunk > c.maxBody-c.decoded:
		return bodyTooLarge
	case c.chunks-c.decoded/chunkShare >= int64(c.lim.MaxChunks):
		return tooManyChunks
	default:
		c.chunks++
		c.state = chunkData
	}
	return noProblem
}

// extensionByte counts a byte of an extension, which is ignored.
func (c *Chunked) extensionByte() problem {
	if c.extensions == c.lim.MaxExtension {
		return extensionTooLong
	}
	c.extensions++
	return noProblem
}

// hexValue returns the value of a hex digit, or -1 for any other byte.
func hexValue(b byte) int {
	switch {
	case isDigit(b):
		return int(b - '0')
	case 'a' <= b|0x20 && b|0x20 <= 'f':
		return int(b|0x20-'a') + 10
	}
	return -1
}

// trailerBytes reads trailer lines from src until the empty line or the end of src. It returns the number of bytes that were read.
func (c *Chunked) trailerBytes(src []byte) (k int, err error) {
	t := &c.trailer
	start := c.consumed - int64(len(t.buf)) // start of the trailer section
	for k < len(src) {
		room := c.lim.MaxTrailer - len(t.buf)
		if room <= 0 {
			return k, c.refuse(trailerTooLarge, c.consumed+int64(k), 0)
		}
		piece := src[k:min(len(src), k+room)]
		lf := bytes.IndexByte(piece, '\n')
		if lf < 0 {
			t.buf = append(t.buf, piece...)
			k += len(piece)
			continue
		}
		t.buf = append(t.buf, piece[:lf+1]...)
		k += lf + 1
		end, at, p := t.endLine(c.lim)
		if p != noProblem {
			return k, c.refuse(p, start+int64(at), t.buf[at])
		}
		if end {
			c.state = chunkBodyDone
			return k, nil
		}
	}
	return k, nil
}
