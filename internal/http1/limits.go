package http1

// Limits bounds what one peer can make the codec hold or scan. All fields must
// be positive; [DefaultLimits] is a good start. A Limits is only read, so one
// value may be shared by any number of goroutines.
type Limits struct {
	// MaxTarget is the longest request target, in bytes; beyond it the answer
	// is 414. RFC 9112 §3 recommends to support at least 8,000.
	MaxTarget int

	// MaxHead is the maximum length of a request head, in bytes, from its first byte to the empty line at its end. A
	// longer head gets a 431. It bounds the buffer of a connection before the request is known. It must be below 2
	// GiB, as a Head keeps 32-bit offsets.
	MaxHead int

	// MaxFields is how many field lines a head or a trailer section may have;
	// beyond it the answer is 431. It bounds the cost of looking up a field.
	MaxFields int

	// MaxTrailer is the longest trailer section of a chunked body, in bytes,
	// with the empty line that ends it; beyond it the answer is 431.
	MaxTrailer int

	// MaxExtension is how many bytes of chunk extensions one body may carry in
	// all. They are read and thrown away, so a body made of them would keep
	// a connection busy without ever reaching a body limit.
	MaxExtension int

	// MaxChunks is how many chunks one body may have beyond one for each 16 bytes
	// of its data; beyond it the answer is 400. A chunk costs about as much
	// as a request line to read, however little is in it.
	MaxChunks int
}

// chunkShare is how many bytes of data go with a chunk that is not counted
// against MaxChunks.
const chunkShare = 16

// DefaultLimits returns limits that ordinary browsers, proxies and API clients
// never meet.
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

// maxMethod is the longest method token that is read, in bytes. The longest
// registered one, UPDATEREDIRECTREF, has 17. RFC 9112 §3 asks for 501 when a
// method is longer than any that is implemented.
const maxMethod = 32

// versionLength is the length of "HTTP/1.1".
const versionLength = 8

// of returns the limit that p is about, 0 for a problem that is about none.
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
