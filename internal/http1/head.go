package http1

import "github.com/dunlinhttp/dunlin/internal/semantics"

// Head is a request head and the state of the parser. The zero value is ready for use. A Head can be reused for any number of
// requests, and allocates only when its list of fields grows. It is not safe for concurrent use.
//
// Until [Head.Parse] has returned n > 0, the Head belongs to the incomplete request of a connection and contains only offsets, so the
// buffer may move between calls. After that, the exported fields and the methods are valid. Every []byte that a method returns is a
// borrowed view into the buffer that was passed to the last call of Parse. It is valid until the buffer changes, and must not be
// changed.
//
// Invariant: 0 ≤ line ≤ scanned ≤ len(buffer), and no byte in [line, scanned) is LF.
type Head struct {
	// ContentLength is the value of Content-Length, or -1 if it is absent. A
	// request with neither Content-Length nor chunked coding has no body.
	ContentLength int64

	Method semantics.Method // the method, if it is one of package semantics
	Form   TargetForm       // form of the target

	// Minor is the minor version of the request: 0 for HTTP/1.0, and 1 for HTTP/1.1 and later versions of HTTP/1 (RFC 9110 §2.5).
	Minor uint8

	Chunked     bool // the body is chunked
	KeepAlive   bool // the client asks to keep the connection open
	Expect100   bool // the client waits for 100 (Continue) before it sends the body
	Upgrade     bool // Upgrade is present and Connection names it (HTTP/1.1)
	PathEscaped bool // Path has well-formed percent escapes

	// State derived from the parsed field lines.
	hasHost         bool
	hasUpgrade      bool
	expectContinue  bool
	requestLineOnly bool // the head consists of the request line only, see Parse
	connection      connectionOptions

	state   headState
	line    int // start of the first incomplete line
	scanned int // end of the bytes that were searched for the LF of the line at line

	method, target, path, query, host span

	fields []fieldSpan
	buf    []byte // the complete head, or nil
}

// connectionOptions are options of Connection.
type connectionOptions uint8

const (
	optionClose connectionOptions = 1 << iota
	optionKeepAlive
	optionUpgrade
	optionOther
)

// NamesFields reports whether Connection has options other than close, keep-alive and upgrade. Such options are names of fields.
func (h *Head) NamesFields() bool { return h.connection&optionOther != 0 }

// A span is the bytes [start, end) of the head.
type span struct{ start, end uint32 }

// A fieldSpan is one field line: its name, and its value without surrounding white space.
type fieldSpan struct{ name, value span }

// Reset clears the state of the last request, even if that request is incomplete, and removes the reference to its buffer.
func (h *Head) Reset() {
	*h = Head{ContentLength: -1, fields: h.fields[:0]}
}

// Rebase records that the bytes of a complete head have moved to buf, which must start with these bytes. Later views are views into
// buf.
func (h *Head) Rebase(buf []byte) { h.buf = buf[:len(h.buf)] }

// CopyTo copies the complete head h to dst. buf must start with the bytes of the head (see [Head.Bytes]), and the views of dst are
// views into buf. dst shares no memory with h except buf, if h also uses it.
func (h *Head) CopyTo(dst *Head, buf []byte) {
	fields := append(dst.fields[:0], h.fields...)
	*dst = *h
	dst.fields = fields
	dst.buf = buf[:len(h.buf)]
}

func (h *Head) view(s span) []byte { return h.buf[s.start:s.end:s.end] }

// Bytes returns the whole head, including the empty line at its end.
func (h *Head) Bytes() []byte { return h.buf }

// MethodBytes returns the method as it was sent.
func (h *Head) MethodBytes() []byte { return h.view(h.method) }

// Target returns the request target as it was sent.
func (h *Head) Target() []byte { return h.view(h.target) }

// Path returns the path of the target without percent decoding. It is "/" for an absolute URI without a path, "*" for the asterisk
// form, and empty for CONNECT.
func (h *Head) Path() []byte { return h.view(h.path) }

// Query returns the part of the target after the first '?', without decoding.
func (h *Head) Query() []byte { return h.view(h.query) }

// EmptyQuery reports whether the target ends with its first '?'.
func (h *Head) EmptyQuery() bool { return h.query.end > 0 && h.query.start == h.query.end }

// Host returns the authority of the request. The authority of an absolute target or a CONNECT target takes precedence over the value
// of Host (RFC 9112 §3.2.2). Host returns an empty slice for an HTTP/1.0 request without a Host field, and for an empty Host field,
// which RFC 9112 §3.2 permits.
func (h *Head) Host() []byte { return h.view(h.host) }

// HasBody reports whether bytes of a body follow the head.
func (h *Head) HasBody() bool { return h.Chunked || h.ContentLength > 0 }

// Len returns the number of field lines.
func (h *Head) Len() int { return len(h.fields) }

// Field returns field line i, in the order of the head. The name has its original case, and the value has no surrounding white space.
func (h *Head) Field(i int) (name, value []byte) {
	f := h.fields[i]
	return h.view(f.name), h.view(f.value)
}

// Get returns the value of the first field line with the given name. Case is ignored.
func (h *Head) Get(name string) (value []byte, ok bool) {
	i := h.Index(name, 0)
	if i < 0 {
		return nil, false
	}
	return h.view(h.fields[i].value), true
}

// Index returns the index of the first field line at or after the index from that has the given name, or -1 if there is no such line.
// Case is ignored.
func (h *Head) Index(name string, from int) int {
	for i := from; i < len(h.fields); i++ {
		n := h.fields[i].name
		if int(n.end-n.start) == len(name) && h.isNamed(n, name) {
			return i
		}
	}
	return -1
}

// Lines returns the indexes of the first two field lines with the given name, or -1 for a line that does not exist. Case is ignored.
func (h *Head) Lines(name string) (first, second int) {
	first = -1
	for i := range h.fields {
		n := h.fields[i].name
		if int(n.end-n.start) == len(name) && h.isNamed(n, name) {
			if first >= 0 {
				return first, i
			}
			first = i
		}
	}
	return first, -1
}

// Three finds the field lines with the names one, two and three in one pass. Case is ignored. An empty name matches no line. said
// reports whether the field one has a value. second and third are the values of the fields two and three, or nil. twice reports
// whether one of the fields occurs twice.
func (h *Head) Three(one, two, three string) (said bool, second, third []byte, twice bool) {
	first, other, last := -1, -1, -1
	for i := range h.fields {
		n := h.fields[i].name
		size := int(n.end - n.start)
		if size == len(one) && h.isNamed(n, one) {
			twice, first = twice || first >= 0, i
		}
		if size == len(two) && h.isNamed(n, two) {
			twice, other = twice || other >= 0, i
		}
		if size == len(three) && h.isNamed(n, three) {
			twice, last = twice || last >= 0, i
		}
	}
	if first >= 0 {
		v := h.fields[first].value
		said = v.end > v.start
	}
	if other >= 0 {
		second = h.view(h.fields[other].value)
	}
	if last >= 0 {
		third = h.view(h.fields[last].value)
	}
	return said, second, third, twice
}

// isNamed reports whether the name n equals name. Case is ignored. For most names it needs no loop. It is not inlined, so that the
// code stays small in the processor's cache.
//
//go:noinline
func (h *Head) isNamed(n span, name string) bool {
	a := h.buf[n.start:n.end]
	if len(a) != len(name) {
		return false
	}
	differ := uint64(0x20) // the bytes may differ only in case
	switch size := len(name); {
	case size >= 8 && size <= 16:
		differ = (word(a) ^ word(name)) | (word(a[size-8:]) ^ word(name[size-8:]))
	case size >= 4 && size < 8:
		differ = uint64(half(a)^half(name)) | uint64(half(a[size-4:])^half(name[size-4:]))
	}
	return differ == 0 || differ&^0x2020202020202020 == 0 && equalFold(a, name)
}

// half returns the first four bytes of a name.
func half[S string | []byte](s S) uint32 {
	_ = s[3]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// word returns the first eight bytes of a name.
func word[S string | []byte](s S) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// Names is an approximate set of field names, as a bit set of their hashes. Case is ignored. Because different names may have the
// same hash, a name that is not in the set may seem to be in it.
type Names uint64

// Names returns the set of the names of the field lines.
func (h *Head) Names() (all Names) {
	for i := range h.fields {
		all |= nameOf(h.view(h.fields[i].name))
	}
	return all
}

// Lacks reports whether the set certainly does not contain the given name.
func (all Names) Lacks(name string) bool { return name != "" && all&nameOf(name) == 0 }

// nameOf returns the set that contains only name. name must not be empty. Setting bit 5 of a byte makes the hash equal for upper and
// lower case.
func nameOf[S string | []byte](name S) Names {
	n := len(name)
	h := uint32(n) | uint32(name[0]|0x20)<<8 | uint32(name[n/2]|0x20)<<16 | uint32(name[n-1]|0x20)<<24
	return 1 << (h * 0x9e3779b1 >> 26)
}
