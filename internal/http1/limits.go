package http1

// Limits bounds the memory and work that a peer can cause. All fields must be positive; see [DefaultLimits]. Limits is only
// read, so goroutines may share one value.
type Limits struct {
	// MaxTarget is the maximum length of a request target, in bytes. A longer target gets 414. RFC 9112 §3 recommends to support at
	// least 8,000.
	MaxTarget int

	// MaxHead is the maximum length of a request head, in bytes, from its first byte to the empty line at its end. A
	// longer head gets a 431. It bounds the buffer of a connection before the request is known. It must be below 2
	// GiB, since a Head has 32-bit offsets.
	MaxHead int

	// MaxFields is the maximum number of field lines in a head or a trailer section. More get 431. It bounds the cost of
	// looking up a field.
	MaxFields int

	// MaxTrailer is the maximum length of the trailer section of a chunked body, in bytes, including the empty line at its end. A
	// longer one gets 431.
	MaxTrailer int

	// MaxExtension is the maximum number of bytes of all chunk extensions in a body. They are ignored, so without this limit
	// a body of extensions would keep a connection busy without reaching a limit on bodies.
	MaxExtension int

	// MaxChunks is the maximum number of chunks in a body, in addition to one for each 16 bytes of its data. More get 400.
	// Reading a chunk costs about as much as reading a request line, even if it has little data.
	MaxChunks int
}

// chunkShare is the number of bytes of data that permit one more chunk than MaxChunks.
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

// maxMethod is the maximum length of a method, in bytes. The longest registered method, UPDATEREDIRECTREF, has 17. Longer ones
// get 501 (RFC 9112 §3).
const maxMethod = 32

// versionLength is the length of "HTTP/1.1".
const versionLength = 8

// of returns the limit to which p refers, or 0 if it refers to none.
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
