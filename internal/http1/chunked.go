package http1

import "bytes"

// Chunked decodes a chunked body (RFC 9112 §7.1) incrementally. Call Reset before each body. A Chunked is not safe for concurrent use.
// Its states during a body are:
//
//	5;ext=1\r\nhello\r\n0\r\nDigest: x\r\n\r\n
//	│└ext    │└data │   │ └trailer lines, then done
//	└size    └LF    └data CR, data LF
type Chunked struct {
	lim     *Limits
	maxBody int64

	state      chunkState
	digits     uint8 // number of digits of the size that were read
	chunk      int64 // the part of the size that was read, then the number of data bytes that are missing from the chunk
	decoded    int64 // bytes of data that were returned
	consumed   int64 // bytes of src that were consumed
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

// maxChunkDigits is the maximum number of hex digits of a chunk size, including leading zeros. Sixteen digits can represent every
// 63-bit size.
const maxChunkDigits = 16

// Reset prepares for a new body. If the data of the body exceeds maxBody bytes, the body is refused with status 413 as soon as a chunk
// size exceeds the limit. A negative maxBody means no limit. The Chunked keeps lim, which must not change.
func (c *Chunked) Reset(lim *Limits, maxBody int64) {
	if maxBody < 0 {
		maxBody = 1<<63 - 1
	}
	trailer := c.trailer
	trailer.reset()
	*c = Chunked{lim: lim, maxBody: maxBody, trailer: trailer}
}

// Twin returns a copy of the decoder with which a caller can look ahead. The copy does not contain the trailers.
func (c *Chunked) Twin() Chunked {
	twin := *c
	twin.trailer = trailer{}
	return twin
}

// Done reports whether the body is complete, including trailers.
func (c *Chunked) Done() bool { return c.state == chunkBodyDone }

// Decoded returns the number of bytes of data that were returned.
func (c *Chunked) Decoded() int64 { return c.decoded }

// Remaining returns the number of bytes of data that are missing from the current chunk. A caller may use it to size a buffer.
func (c *Chunked) Remaining() int64 {
	if c.state == chunkData {
		return c.chunk
	}
	return 0
}

// Next consumes the first n bytes of src. It returns the first data among them as a view into src. It stops after the first data, at
// the end of src, or at the end of the body. If data is empty and [Chunked.Done] is false, more input is needed. Bytes after the end
// of the body are not consumed. err is an [Error]. After an error, n is the position of the error, and the caller must close the
// connection.
func (c *Chunked) Next(src []byte) (data []byte, n int, err error) {
	return c.next(src, len(src))
}

// Decode consumes the first nSrc bytes of src and copies their data to dst. It stops when dst is full, at the end of src, or at the
// end of the body. dst and src may share memory if dst does not start after src, so a buffer can be decoded in place. err is an
// [Error]. With an error, Decode also returns the data before the error.
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

// next is Next, but returns at most room bytes of data.
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

// advance records that the next k bytes of data were returned.
func (c *Chunked) advance(k int) {
	c.chunk -= int64(k)
	c.decoded += int64(k)
	if c.chunk == 0 {
		c.state = chunkDataCR
	}
}

// frame reads one byte of the framing, that is, a byte that is neither data nor part of the trailer section.
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

// sizeByte reads a digit of a chunk size, or the first byte after the digits. White space is allowed there only before ';' (RFC 9112
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

// extensionByte counts a byte of a chunk extension. Extensions are otherwise ignored.
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

// trailerBytes reads trailer lines from src up to the empty line or the end of src. It returns the number of bytes that it read.
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
