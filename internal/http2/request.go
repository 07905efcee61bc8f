package http2

import (
	"github.com/dunlinhttp/dunlin/internal/hpack"
	"github.com/dunlinhttp/dunlin/internal/http1"
)

// A Request is the head of a request. Its methods return borrowed memory, which is valid until the next call of
// [Conn.Next] on a connection with the same pool. After [Request.CopyTo], the memory of the copy belongs to the
// copy.
type Request struct {
	// Fields has all fields. The pseudo-header fields are first.
	Fields hpack.List

	// ContentLength is the value of Content-Length, or -1 if the field is absent.
	ContentLength int64

	// Status is the status of the answer to a request that is well-formed but must be refused, otherwise 0. Why
	// is the reason.
	Status int
	Why    string

	Expect100 bool // the client waits for 100 (Continue) before its body
	Escaped   bool // Path has well-formed percent escapes
	Priority  Priority

	method, scheme, authority, path, protocol, host int32 // indexes of fields, -1 if absent
	pathEnd                                         uint32
}

// Method returns the method.
func (r *Request) Method() []byte { return r.value(r.method) }

// Scheme returns "http" or "https". It is empty for an ordinary CONNECT.
func (r *Request) Scheme() []byte { return r.value(r.scheme) }

// Authority returns :authority, or the value of Host if :authority is absent.
func (r *Request) Authority() []byte {
	if r.authority >= 0 {
		return r.value(r.authority)
	}
	return r.value(r.host)
}

// Protocol returns the :protocol of an extended CONNECT (RFC 8441 §4). It is empty for any other request.
func (r *Request) Protocol() []byte { return r.value(r.protocol) }

// Target returns :path as it was sent. It is empty for an ordinary CONNECT.
func (r *Request) Target() []byte { return r.value(r.path) }

// Path returns the path without percent decoding. It is "*" for the asterisk form and empty for an ordinary
// CONNECT.
func (r *Request) Path() []byte { return r.value(r.path)[:r.pathEnd] }

// Query returns the part of :path after the first '?', without decoding.
func (r *Request) Query() []byte {
	if target := r.value(r.path); int(r.pathEnd) < len(target) {
		return target[r.pathEnd+1:]
	}
	return nil
}

// EmptyQuery reports whether the first '?' of :path is its last byte.
func (r *Request) EmptyQuery() bool { return int(r.pathEnd)+1 == len(r.value(r.path)) }

// Begin returns the index of the first field that is not a pseudo-header field.
func (r *Request) Begin() int {
	n := 0
	for _, i := range [...]int32{r.method, r.scheme, r.authority, r.path, r.protocol} {
		if i >= 0 {
			n++
		}
	}
	return n
}

// CopyTo copies the request to dst. The copy shares no memory with r.
func (r *Request) CopyTo(dst *Request) {
	r.Fields.CopyTo(&dst.Fields)
	fields := dst.Fields
	*dst = *r
	dst.Fields = fields
}

func (r *Request) value(i int32) []byte {
	if i < 0 {
		return nil
	}
	return r.Fields.Value(int(i))
}

// interpret sets the properties of the request from the decoded fields. It returns a problem if the request is
// malformed.
func (r *Request) interpret(lim *Limits) problem {
	r.ContentLength, r.Status, r.Why, r.Expect100, r.Escaped = -1, 0, "", false, false
	r.Priority = defaultPriority
	r.method, r.scheme, r.authority, r.path, r.protocol, r.host = -1, -1, -1, -1, -1, -1
	r.pathEnd = 0
	regular := false
	for i := range r.Fields.Len() {
		class := r.Fields.Class(i)
		if class == fieldOrdinary || class == fieldForbidden {
			regular = true
			continue
		}
		if p := r.field(i, class, regular); p != noProblem {
			return p
		}
		kind := class & fieldKind
		regular = regular || kind == fieldOrdinary || kind > fieldOtherPseudo
	}
	if r.Fields.TooLarge() {
		r.pathEnd = uint32(len(r.Target()))
		r.refuse(431, "request header fields too large")
		return noProblem
	}
	return r.conclude(lim)
}

// field evaluates a field of a special kind that is not a pseudo-header field.
func (r *Request) field(i int, class hpack.Class, regular bool) problem {
	kind := class & fieldKind
	if kind != fieldOrdinary && kind <= fieldOtherPseudo {
		return r.pseudo(i, class, regular)
	}
	switch {
	case class&fieldBadName != 0:
		return badFieldName
	case class&fieldBad != 0:
		return badFieldValue
	case class&fieldBlank != 0:
		r.Fields.TrimValue(i) // grpc-go sends values with surrounding white space, contrary to RFC 9113 §8.2.1
	}
	value := r.Fields.Value(i)
	switch kind {
	case fieldConnection:
		return connectionField
	case fieldTE:
		if !http1.EqualFold(value, []byte("trailers")) {
			return badTE
		}
	case fieldHost:
		if r.host >= 0 {
			return repeatedHost
		}
		r.host = int32(i)
	case fieldContentLength:
		if r.ContentLength >= 0 {
			return repeatedLength
		}
		n, ok := http1.ParseContentLength(value)
		if !ok {
			return badLength
		}
		r.ContentLength = n
	case fieldExpect:
		continues, known := http1.ReadExpect(value)
		if !known {
			r.refuse(417, "expectation other than 100-continue")
		}
		r.Expect100 = r.Expect100 || continues
	case fieldPriority:
		r.Priority = ParsePriority(value, r.Priority)
	}
	return noProblem
}

// pseudo evaluates a pseudo-header field (RFC 9113 §8.3).
func (r *Request) pseudo(i int, class hpack.Class, regular bool) problem {
	at := &r.method
	switch class & fieldKind {
	case fieldScheme:
		at = &r.scheme
	case fieldAuthority:
		at = &r.authority
	case fieldPath:
		at = &r.path
	case fieldProtocol:
		at = &r.protocol
	case fieldOtherPseudo:
		return pseudoUnknown
	}
	switch {
	case regular:
		return pseudoLate
	case *at >= 0:
		return pseudoRepeated
	case class&(fieldBad|fieldBlank) != 0:
		return badFieldValue
	}
	*at = int32(i)
	return noProblem
}

func (r *Request) refuse(status int, why string) {
	if r.Status == 0 {
		r.Status, r.Why = status, why
	}
}

// conclude checks whether the fields are valid together.
func (r *Request) conclude(lim *Limits) problem {
	method := r.Method()
	if !http1.IsToken(method) {
		return pseudoMissing
	}
	if len(method) > http1.MaxMethod {
		r.refuse(501, "method too long")
	}
	if r.host >= 0 && len(r.value(r.host)) == 0 {
		r.host = -1 // ignored, as in HTTP/1.1
	}
	if r.authority >= 0 && r.host >= 0 && !http1.EqualFold(r.value(r.authority), r.value(r.host)) {
		return hostDiffers
	}
	if authority := r.Authority(); len(authority) > 0 && !http1.ValidAuthority(authority) {
		r.refuse(400, "invalid :authority or Host") // this is not a stream error, because a proxy would repeat a reset request indefinitely
	}
	connect := string(method) == "CONNECT"
	if r.protocol >= 0 && (!connect || !lim.ConnectProtocol || len(r.value(r.protocol)) == 0) {
		return protocolUnasked
	}
	if connect && r.protocol < 0 {
		return r.concludeConnect()
	}
	if r.scheme < 0 || r.path < 0 {
		return pseudoMissing
	}
	if scheme := r.Scheme(); !http1.EqualFold(scheme, []byte("http")) && !http1.EqualFold(scheme, []byte("https")) {
		return badScheme
	}
	if len(r.Authority()) == 0 {
		r.refuse(400, "missing :authority and Host")
	}
	return r.concludeTarget(string(method) == "OPTIONS", lim)
}

// concludeConnect checks an ordinary CONNECT (RFC 9113 §8.5).
func (r *Request) concludeConnect() problem {
	if r.scheme >= 0 || r.path >= 0 || r.authority < 0 || len(r.value(r.authority)) == 0 {
		return pseudoWithConnect
	}
	if !http1.HasPort(r.value(r.authority)) {
		r.refuse(400, "CONNECT without host:port")
	}
	return noProblem
}

// concludeTarget checks :path.
func (r *Request) concludeTarget(options bool, lim *Limits) problem {
	target := r.Target()
	switch {
	case len(target) == 0 || target[0] != '/' && string(target) != "*":
		return badPath
	case target[0] == '*' && !options:
		r.refuse(400, "target * without OPTIONS")
	case len(target) > lim.MaxTarget:
		r.refuse(414, "target too long")
	}
	end, escaped, ok := http1.ScanTarget(target)
	if !ok {
		r.refuse(400, "invalid byte or malformed percent escape in the target")
		end = len(target)
	}
	r.pathEnd, r.Escaped = uint32(end), escaped
	return noProblem
}

// checkTrailers returns the problem of invalid trailers (RFC 9113 §8.1, RFC 9110 §6.5.1).
func checkTrailers(l *hpack.List) problem {
	for i := range l.Len() {
		class := l.Class(i)
		kind := class & fieldKind
		switch {
		case class&fieldBadName != 0:
			return badFieldName
		case kind == fieldConnection:
			return connectionField
		case kind != fieldOrdinary && kind <= fieldOtherPseudo:
			return pseudoInTrailers
		case class&fieldBad != 0:
			return badFieldValue
		case class&fieldBlank != 0:
			l.TrimValue(i)
		}
		if kind != fieldOrdinary && kind != fieldPriority {
			return forbiddenTrailer
		}
	}
	if l.TooLarge() {
		return trailersTooLarge
	}
	return noProblem
}
