package http1

// Least returns a number of bytes that certainly belong to the rest of the body. It is at least 1 until the body is
// complete. A caller that never reads more does not read bytes after the body.
func (c *Chunked) Least() int64 {
	const end = int64(len(LastChunk) + len(CRLF))
	const crlf = int64(len(CRLF))
	// Bytes after the end of the size line, by the parsed digits of the size. More digits can only increase the size.
	afterLine := crlf
	if c.chunk > 0 {
		afterLine = c.chunk
		if c.chunk < 1<<62 {
			afterLine += crlf + end
		}
	}
	switch c.state {
	case chunkSize:
		if c.digits == 0 {
			return end
		}
		return min(afterLine, 1<<62) + crlf
	case chunkBlank, chunkExtension:
		return min(afterLine, 1<<62) + crlf
	case chunkSizeLF:
		return min(afterLine, 1<<62) + 1
	case chunkData:
		return afterLine
	case chunkDataCR:
		return crlf + end
	case chunkDataLF:
		return 1 + end
	case chunkBodyDone, chunkBodyFailed:
		return 0
	}
	return 1 // in the trailer section, whose empty line may be partly read
}

// Coming returns the next bytes if they certainly include data: the number of framing bytes, and the minimum number of
// data bytes after them. Otherwise both are 0.
func (c *Chunked) Coming() (framing, data int64) {
	switch c.state {
	case chunkData:
		return 0, c.chunk
	case chunkSizeLF:
		framing = 1
	case chunkSize, chunkBlank, chunkExtension:
		framing = int64(len(CRLF))
	}
	if framing == 0 || c.chunk == 0 {
		return 0, 0
	}
	return framing, c.chunk // more digits can only increase the size
}

// MeanChunk returns the mean size of the decoded chunks, in bytes.
func (c *Chunked) MeanChunk() int64 { return c.decoded / max(c.chunks, 1) }
