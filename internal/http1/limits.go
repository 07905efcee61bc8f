package http1

// Limits bounds the memory and work that a peer can cause. All fields must be positive; see [DefaultLimits]. Goroutines may share a
// Limits, because the package only reads it.
type Limits struct {
	// MaxTarget is the maximum length of a request target, in bytes. A longer target gets status 414. RFC 9112 §3 recommends a
	// limit of at least 8,000.
	MaxTarget int

	// MaxHead is the maximum length of a request head, in bytes, from the first byte to the empty line at the end. A longer head
	// gets status 431. MaxHead limits the buffer of a connection until the head is complete. It must be below 2 GiB, because a Head
	// has 32-bit offsets.
	MaxHead int

	// MaxFields is the maximum number of field lines in a head or a trailer section. More field lines get status 431. MaxFields
	// limits the cost of finding a field.
	MaxFields int

	// MaxTrailer is the maximum length of the trailer section of a chunked body, in bytes, including the empty line at the end. A
	// longer section gets status 431.
	MaxTrailer int

	// MaxExtension is the maximum number of bytes of all chunk extensions in a body. Extensions are ignored. Without this limit, a
	// body that consists of extensions would keep a connection busy and never reach the limit on bodies.
	MaxExtension int

	// MaxChunks is the maximum number of chunks in a body. The body may have one additional chunk for each 16 bytes of data. More
	// chunks get status 400. A chunk costs about as much work as a request line, even if it has little data.
	MaxChunks int
}

// chunkShare is the number of bytes of data for which a body may have one chunk in addition to MaxChunks.
const chunkShare = 16

// DefaultLimits returns limits that ordinary browsers, proxies and API clients do not reach.
func DefaultLimits() Limits {
	return Limits{
		MaxTarget:    8 << 10,
		MaxHead:      16 << 10,
		MaxFields:    100,
		MaxTrailer:   4 << 10,
		MaxExtension: 4 << 10,
		MaxChunks:    16 << 10,
	}
}

// maxMethod is the maximum length of a method, in bytes. The longest registered method, UPDATEREDIRECTREF, has 17 bytes. A longer
// method than maxMethod gets status 501 (RFC 9112 §3).
const maxMethod = 32

// versionLength is the length of "HTTP/1.1".
const versionLength = 8

// of returns the limit that a message with the problem p exceeded, or 0 if p is not about a limit.
func (l *Limits) of(p problem) int64 {
	switch p {
	case headTooLarge:
		return int64(l.MaxHead)
	case tooManyFields:
		return int64(l.MaxFields)
	case methodTooLong:
		return maxMethod
	case targetTooLong:
		return int64(l.MaxTarget)
	case extensionTooLong:
		return int64(l.MaxExtension)
	case tooManyChunks:
		return int64(l.MaxChunks)
	case trailerTooLarge:
		return int64(l.MaxTrailer)
	}
	return 0
}
