package http2

import (
	"github.com/dunlinhttp/dunlin/internal/hpack"
	"github.com/dunlinhttp/dunlin/internal/http1"
)

// The low byte of a field's class is the kind of the field. The bits above it describe problems of
// the name or the value.
const (
	fieldOrdinary hpack.Class = iota
	fieldMethod
	fieldScheme
	fieldAuthority
	fieldPath
	fieldProtocol
	fieldOtherPseudo
	fieldHost
	fieldContentLength
	fieldExpect
	fieldTE
	fieldPriority
	fieldConnection // connection-specific field, RFC 9113 §8.2.2
	fieldForbidden  // field that is forbidden in trailers, if no other kind applies

	fieldKind    hpack.Class = 0xff
	fieldBadName hpack.Class = 1 << 8
	fieldBad     hpack.Class = 1 << 9  // invalid value
	fieldBlank   hpack.Class = 1 << 10 // white space around the value
)

// classes holds the classes of request fields.
var classes = hpack.NewClasses(classify)

func classify(name, value []byte) hpack.Class {
	kind := kindOf(name)
	if (kind == fieldOrdinary || kind == fieldForbidden) && !validName(name) {
		kind |= fieldBadName
	}
	if !http1.IsValue(value) {
		kind |= fieldBad
	}
	if n := len(value); n > 0 && (hpack.IsBlank(value[0]) || hpack.IsBlank(value[n-1])) {
		kind |= fieldBlank
	}
	return kind
}

func kindOf(name []byte) hpack.Class {
	if len(name) == 0 {
		return fieldOrdinary
	}
	if name[0] == ':' {
		switch string(name) {
		case ":method":
			return fieldMethod
		case ":scheme":
			return fieldScheme
		case ":authority":
			return fieldAuthority
		case ":path":
			return fieldPath
		case ":protocol":
			return fieldProtocol
		}
		return fieldOtherPseudo
	}
	switch string(name) {
	case "host":
		return fieldHost
	case "content-length":
		return fieldContentLength
	case "expect":
		return fieldExpect
	case "te":
		return fieldTE
	case "priority":
		return fieldPriority
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		return fieldConnection
	}
	if http1.ForbiddenInTrailer(name) {
		return fieldForbidden
	}
	return fieldOrdinary
}

// validName reports whether a name is a token in lower case (RFC 9113 §8.2.1).
func validName(name []byte) bool {
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			return false
		}
	}
	return http1.IsToken(name)
}
