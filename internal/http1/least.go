package http1

// Least returns a lower bound on the number of bytes, data and framing, that have not been read until the end of the body.
// It is at least 1 until the body is complete or refused. A caller that never reads more than Least bytes does not read bytes
// after the body.
func (c *Chunked) Least() int64 {
	const end = int64(len(LastChunk) + len(CRLF))
	const crlf = int64(len(CRLF))
	// The minimum number of bytes after the size line, according to the digits that were read. More digits can only
	// increase it.
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
	return 1 // in the trailer section: perhaps only the LF of its empty line is missing
}

// Coming describes the next bytes of the body if they certainly include data. framing is the minimum number of
// framing bytes before the data, and data is the minimum number of bytes of data. Otherwise both are 0.
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
