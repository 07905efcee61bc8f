package http1

// trailer is the trailer section of a chunked body (RFC 9112 §7.1.2). It contains a copy of the bytes. The copy is allocated only for a
// non-empty section.
//
// Invariant: 0 ≤ line ≤ len(buf); buf[:line] is complete field lines.
type trailer struct {
	buf    []byte
	line   int
	fields []fieldSpan
}

// maxKeptTrailer is the maximum length of a buffer that a decoder keeps for the next trailer section, in bytes. Longer trailer sections are
// rare.
const maxKeptTrailer = 512

func (t *trailer) reset() {
	if cap(t.buf) > maxKeptTrailer {
		t.buf, t.fields = nil, nil
	}
	*t = trailer{buf: t.buf[:0], fields: t.fields[:0]}
}

// endLine checks the line [line, len(buf)), which ends with LF. end reports whether this is the empty line. If p is a problem, at is its
// position in buf.
func (t *trailer) endLine(lim *Limits) (end bool, at int, p problem) {
	if len(t.buf)-t.line == 2 && t.buf[t.line] == '\r' {
		t.buf = t.buf[:t.line]
		return true, 0, noProblem
	}
	f, next, p := scanField(t.buf, t.line)
	if p != noProblem {
		return false, next, p
	}
	if len(t.fields) >= lim.MaxFields {
		return false, t.line, tooManyFields
	}
	if forbiddenInTrailer(t.buf[f.name.start:f.name.end]) {
		return false, t.line, forbiddenTrailer
	}
	t.fields = append(t.fields, f)
	t.line = next
	return false, 0, noProblem
}

// TrailerLen returns the number of trailer fields of a complete body.
func (c *Chunked) TrailerLen() int { return len(c.trailer.fields) }

// Trailer returns trailer field i, in the order of the body. name and value are borrowed: they are valid until the next Reset and must not
// be changed.
func (c *Chunked) Trailer(i int) (name, value []byte) {
	f, b := c.trailer.fields[i], c.trailer.buf
	return b[f.name.start:f.name.end:f.name.end], b[f.value.start:f.value.end:f.value.end]
}

// forbiddenTrailers lists fields that a server must know before it reads the body. Such fields frame the message, route it, change how the
// request is handled, authenticate the client, or describe the coding of the content (RFC 9110 §6.5.1). A field in trailers would bypass
// the checks of the head.
var forbiddenTrailers = []string{
	// Framing and the connection.
	"transfer-encoding", "content-length", "trailer", "connection", "keep-alive",
	"proxy-connection", "upgrade", "te",
	// Routing.
	"host", "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "via",
	// Controls and conditions.
	"cache-control", "expect", "max-forwards", "pragma", "range",
	"if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range",
	// Authentication and state.
	"authorization", "proxy-authorization", "www-authenticate", "proxy-authenticate",
	"authentication-info", "proxy-authentication-info", "cookie", "set-cookie", "origin",
	// Controls of responses.
	"age", "date", "expires", "location", "retry-after", "vary", "warning",
	// Fields that describe the content.
	"content-encoding", "content-type", "content-range",
}

// forbiddenInTrailer reports whether the field with the given name is forbidden in trailers.
func forbiddenInTrailer(name []byte) bool {
	for _, word := range forbiddenTrailers {
		if isWord(name, word) {
			return true
		}
	}
	return false
}
