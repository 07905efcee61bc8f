package http1

import (
	"encoding/binary"
	"math/bits"

	"github.com/dunlinhttp/dunlin/internal/semantics"
)

// TargetForm is one of the four forms of a request target (RFC 9112 §3.2).
type TargetForm uint8

const (
	OriginForm    TargetForm = iota // /path?query
	AbsoluteForm                    // http://host/path?query
	AuthorityForm                   // host:port, only for CONNECT
	AsteriskForm                    // *, only for OPTIONS
)

// A target consists of visible ASCII characters except '#'. RFC 3986 allows fewer characters in a URI, but browsers send characters
// such as '|', '^' and '"' without encoding. Bytes above ASCII are refused, as RFC 9112 §3.2 requires: a client that sends such bytes
// has not encoded its target, and the character set of the target is unknown.

// scanPath returns the index of the first byte at or after i that ends a path or is a percent sign, or len(w).
func scanPath(w []byte, i int) int {
	for ; i+8 <= len(w); i += 8 {
		x := binary.LittleEndian.Uint64(w[i:])
		// The method is that of scanValue. It marks bytes up to ' ', the bytes '#', '%', '?' and 0x7F, and, by "| x", bytes from 0x80
		// on. One term finds both '?' and 0x7F, because they differ in one bit.
		mark := (((x-ones*0x21)|((x^ones*'#')-ones)|((x^ones*'%')-ones)|(((x|ones*0x40)^ones*0x7F)-ones))&^x | x) & highs
		if mark != 0 {
			return i + bits.TrailingZeros64(mark)/8
		}
	}
	for i < len(w) && class[w[i]]&isPath != 0 {
		i++
	}
	return i
}

// scanQuery returns the index of the first byte at or after i that is not allowed in a target, or len(w).
func scanQuery(w []byte, i int) int {
	for ; i+8 <= len(w); i += 8 {
		x := binary.LittleEndian.Uint64(w[i:])
		mark := (((x-ones*0x21)|((x^ones*'#')-ones)|((x^ones*0x7F)-ones))&^x | x) & highs
		if mark != 0 {
			return i + bits.TrailingZeros64(mark)/8
		}
	}
	for i < len(w) && class[w[i]]&isTarget != 0 {
		i++
	}
	return i
}

// scanTarget returns the end of the path that starts at i, and the end of the target. It sets PathEscaped if the path has a percent
// sign.
func (h *Head) scanTarget(w []byte, i int) (pathEnd, end int) {
	i = scanPath(w, i)
	h.PathEscaped = i < len(w) && w[i] == '%'
	if h.PathEscaped {
		for i < len(w) && (class[w[i]]&isPath != 0 || w[i] == '%') {
			i++
		}
	}
	pathEnd = i
	if i < len(w) && w[i] == '?' {
		i = scanQuery(w, i)
	}
	return pathEnd, i
}

// setTarget finds the form of the target w[start:end] and sets its parts. pathEnd is the end of the path, or of the authority if there
// is no path. p is the reason why the target is refused, or noProblem. at is the position of the problem in w.
func (h *Head) setTarget(w []byte, start, pathEnd, end int) (at int, p problem) {
	h.target = span{uint32(start), uint32(end)}
	h.Form = OriginForm
	h.query = span{}
	if pathEnd < end {
		h.query = span{uint32(pathEnd + 1), uint32(end)}
	}
	switch {
	case h.Method == semantics.MethodConnect && w[start] != '/':
		return h.authorityTarget(w, start, end)
	case w[start] == '/':
		if h.Method == semantics.MethodConnect {
			h.Method = semantics.MethodOther // CONNECT with a path names no host to connect to, so it is treated as an unknown method
		}
		h.path = span{uint32(start), uint32(pathEnd)}
	case w[start] == '*' && end == start+1:
		if h.Method != semantics.MethodOptions {
			return start, asteriskWithoutOptions
		}
		h.Form = AsteriskForm
		h.path = h.target
	default:
		if at, p = h.absoluteTarget(w, start, pathEnd); p != noProblem {
			return at, p
		}
	}
	if h.PathEscaped {
		return h.checkEscapes(w)
	}
	return 0, noProblem
}

// authorityTarget parses the target of CONNECT. The target must have a host and a port (RFC 9110 §9.3.6).
func (h *Head) authorityTarget(w []byte, start, end int) (at int, p problem) {
	authority := w[start:end]
	if !validAuthority(authority) || !isDigit(authority[len(authority)-1]) || portStart(authority) <= 0 {
		return start, connectWithoutAuthority
	}
	h.Form = AuthorityForm
	h.PathEscaped = false
	h.path = span{}
	h.query = span{}
	h.host = h.target
	return 0, noProblem
}

// absoluteTarget parses an http or https URI. pathEnd is the end of its path, or of its authority if it has no path. User information
// is refused (RFC 9110 §4.2.4), because '@' is not valid in an authority.
func (h *Head) absoluteTarget(w []byte, start, pathEnd int) (at int, p problem) {
	uri := w[start:pathEnd]
	scheme := 0
	for scheme < len(uri) && uri[scheme] != ':' {
		scheme++
	}
	known := isWord(uri[:scheme], "http") || isWord(uri[:scheme], "https")
	if !known || len(uri) < scheme+3 || uri[scheme+1] != '/' || uri[scheme+2] != '/' {
		return start, badScheme
	}
	authority := start + scheme + len("://")
	slash := authority
	for slash < pathEnd && w[slash] != '/' {
		slash++
	}
	if !validAuthority(w[authority:slash]) {
		return authority, badAuthority
	}
	h.Form = AbsoluteForm
	h.host = span{uint32(authority), uint32(slash)}
	h.path = span{uint32(slash), uint32(pathEnd)}
	if slash == pathEnd {
		// An empty path means "/" (RFC 9110 §4.2.3). The slash before the authority is used as the path.
		h.path = span{uint32(authority - 1), uint32(authority)}
	}
	return 0, noProblem
}

// checkEscapes checks that each percent sign of the path is followed by two hex digits.
func (h *Head) checkEscapes(w []byte) (at int, p problem) {
	path := w[h.path.start:h.path.end]
	escaped := false
	for i, c := range path {
		if c != '%' {
			continue
		}
		if i+2 >= len(path) || class[path[i+1]]&class[path[i+2]]&isHex == 0 {
			return int(h.path.start) + i, badEscape
		}
		escaped = true
	}
	h.PathEscaped = escaped
	return 0, noProblem
}

// targetProblem returns the reason why the byte w[at] cannot follow a target.
func targetProblem(w []byte, at int) problem {
	if w[at] == '#' {
		return fragmentInTarget
	}
	return wrongByte(w, at, badTarget)
}
