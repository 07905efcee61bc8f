package http1

import (
	"bytes"
	"encoding/binary"

	"github.com/dunlinhttp/dunlin/internal/semantics"
)

// A headState says which line of a head is the next to parse.
type headState uint8

const (
	headNew         headState = iota // at the start, or after an empty line
	headRequestLine                  // request line
	headFields                       // field line, or the empty line at the end of the head
	headDone                         // complete, or refused; the next Parse starts a new head
)

// http11 is "HTTP/1.1" as a little-endian word.
const http11 = 'H' | 'T'<<8 | 'T'<<16 | 'P'<<24 | '/'<<32 | '1'<<40 | '.'<<48 | '1'<<56

// Parse reads a request head from the start of buf. There are three outcomes:
//
//   - n > 0: the head is complete and has n bytes. The next byte belongs to the body or to the next request.
//   - n == 0 and err == nil: the head is incomplete. Call Parse again with the same bytes followed by more input. Complete lines
//     are not parsed again, and in the incomplete line only the new bytes are searched for its end.
//   - err is an [Error]: answer with its status and close the connection.
//
// After n > 0 or an error, the next call starts a new head. Parse skips one empty line before the request line and counts it in n (RFC
// 9112 §2.2).
//
// A line is parsed only after its LF has arrived, so that the outcome does not depend on the division of the input. The exception is a
// first byte that cannot begin a method. It is refused immediately, so that a TLS client that connects to a cleartext port gets an
// early error.
//
// Lines end in CRLF. A line may end in LF only in one kind of head: a CONNECT request of HTTP/1.0 with a path and without fields. The
// clients of net/rpc send such heads (rpc.DialHTTP). The end of such a head is unambiguous, because no data follows it.
func (h *Head) Parse(buf []byte, lim *Limits) (n int, err error) {
	if h.state == headNew || h.state == headDone {
		if n = h.plain(buf, lim); n > 0 {
			return n, nil
		}
		h.Reset()
		at, p := h.start(buf)
		if p != noProblem {
			return 0, h.refuse(buf, lim, at, p)
		}
		if h.state == headNew {
			return 0, nil
		}
	}
	w := buf[:min(len(buf), lim.MaxHead)]
	if h.state == headRequestLine {
		line := w[:min(len(w), h.line+maxMethod+1+lim.MaxTarget+1+versionLength+2)]
		if h.unfinished(line) {
			return 0, h.more(line, lim)
		}
		next, p := h.requestLine(line, lim)
		if next == 0 || p != noProblem {
			return 0, h.stop(line, lim, next, p)
		}
		h.line = next
		h.scanned = next
		h.state = headFields
	}
	if h.unfinished(w) {
		return 0, h.more(w, lim)
	}
	next, p := h.fieldLines(w, lim)
	if next == 0 || p != noProblem {
		return 0, h.stop(w, lim, next, p)
	}
	h.state = headDone
	h.buf = buf[:next]
	return next, nil
}

// start skips one empty line and checks the first byte of the request line. If this byte has arrived and can begin a method, start
// changes the state to headRequestLine.
func (h *Head) start(buf []byte) (at int, p problem) {
	if len(buf) > 0 && buf[0] == '\r' {
		if len(buf) == 1 {
			return 0, noProblem
		}
		if buf[1] != '\n' {
			return 0, bareCR
		}
		at = 2
	}
	if at == len(buf) {
		return at, noProblem
	}
	switch c := buf[at]; {
	case class[c]&isToken != 0:
		h.state = headRequestLine
		h.line = at
		h.scanned = at
		return at, noProblem
	case c == '\n':
		return at, bareLF
	case c == '\r':
		return at, emptyLine
	}
	return at, badMethod
}

// unfinished reports whether an earlier call has searched the current line and w still does not contain the end of the line.
func (h *Head) unfinished(w []byte) bool {
	return h.scanned > h.line && bytes.IndexByte(w[h.scanned:], '\n') < 0
}

// stop handles a line of w that could not be parsed. If the line is complete, stop returns the error for the problem p at the position
// at. If the line is incomplete, stop returns the result of more.
func (h *Head) stop(w []byte, lim *Limits, at int, p problem) error {
	if p != noProblem && bytes.IndexByte(w[h.line:], '\n') >= 0 {
		return h.refuse(w, lim, at, p)
	}
	return h.more(w, lim)
}

// more records that w does not contain the end of the current line. It refuses the head if the limits do not allow more bytes.
func (h *Head) more(w []byte, lim *Limits) error {
	h.scanned = len(w)
	if h.state == headRequestLine && h.scanned > h.line && w[h.scanned-1] == '\n' {
		h.scanned-- // the LF is examined when the next byte has arrived
	}
	full := len(w) >= lim.MaxHead
	switch {
	case h.state != headRequestLine:
		if full {
			return h.refuse(w, lim, len(w), headTooLarge)
		}
	case full || len(w)-h.line >= maxMethod+1+lim.MaxTarget+1+versionLength+2:
		method, _, ended := bytes.Cut(w[h.line:min(h.line+maxMethod+1, len(w))], []byte{' '})
		if !ended {
			return h.refuse(w, lim, h.line, methodTooLong)
		}
		h.Method = semantics.MethodOf(method) // the caller needs the method, because an answer to HEAD has no body
		return h.refuse(w, lim, len(w), targetTooLong)
	}
	return nil
}

func (h *Head) refuse(buf []byte, lim *Limits, at int, p problem) error {
	h.state = headDone
	e := Error{problem: p, part: inHead, offset: int64(at), limit: lim.of(p)}
	if problems[p].withByte {
		e.char = buf[at]
	}
	return e
}

// requestLine parses the request line (RFC 9112 §3). next is the start of the first field line, or 0 if the line is incomplete in w. If
// p is a problem, next is its position.
func (h *Head) requestLine(w []byte, lim *Limits) (next int, p problem) {
	start := h.line
	space := scanToken(w, start)
	if space == len(w) {
		return 0, noProblem
	}
	if w[space] != ' ' {
		return space, wrongByte(w, space, badMethod)
	}
	if space-start > maxMethod {
		return start, methodTooLong
	}
	h.method = span{uint32(start), uint32(space)}
	h.Method = semantics.MethodOf(w[start:space])

	target := space + 1
	pathEnd, end := h.scanTarget(w, target)
	if end == len(w) {
		return 0, noProblem
	}
	if w[end] != ' ' {
		return end, targetProblem(w, end)
	}
	if end == target {
		return end, extraSpace
	}
	if end-target > lim.MaxTarget {
		return target + lim.MaxTarget, targetTooLong
	}
	// The version is checked before the target, because the target of another protocol has no meaning.
	v := end + 1
	if v+versionLength+2 <= len(w) && binary.LittleEndian.Uint64(w[v:]) == http11 &&
		w[v+versionLength] == '\r' && w[v+versionLength+1] == '\n' {
		h.Minor = 1
		next = v + versionLength + 2
	} else if next, p = h.otherVersion(w, v); next == 0 || p != noProblem {
		return next, p
	}
	if at, p := h.setTarget(w, target, pathEnd, end); p != noProblem {
		return at, p
	}
	return next, noProblem
}

// otherVersion parses the end of a request line from the version at v on, if the version is not exactly HTTP/1.1. The results are those
// of requestLine.
func (h *Head) otherVersion(w []byte, v int) (next int, p problem) {
	lf := bytes.IndexByte(w[v:], '\n')
	if lf < 0 {
		return 0, noProblem
	}
	next = v + lf + 1
	line := w[v : v+lf]
	if len(line) == 0 || line[len(line)-1] != '\r' {
		if h.Method != semantics.MethodConnect || w[h.method.end+1] != '/' || string(line) != "HTTP/1.0" || next < len(w) && w[next] != '\n' {
			return v + lf, bareLF
		}
		if next == len(w) {
			return 0, noProblem
		}
		h.requestLineOnly = true
		return next, noProblem
	}
	line = line[:len(line)-1]
	if i := bytes.IndexByte(line, '\r'); i >= 0 {
		return v + i, bareCR
	}
	if len(line) == 0 {
		return v, missingVersion
	}
	if i := bytes.IndexByte(line, ' '); i >= 0 {
		return v + i, extraSpace
	}
	isVersion := len(line) == versionLength && string(line[:5]) == "HTTP/" &&
		isDigit(line[5]) && line[6] == '.' && isDigit(line[7])
	if !isVersion {
		return v, badVersion
	}
	if line[5] != '1' {
		return v, unsupportedVersion
	}
	h.Minor = min(line[7]-'0', 1)
	return next, noProblem
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// wrongByte returns the reason why w[at] cannot follow the method or the target. The reason is bad, unless the line ends at this byte.
func wrongByte(w []byte, at int, bad problem) problem {
	switch {
	case w[at] == '\n':
		return bareLF
	case w[at] == '\r' && at+1 < len(w) && w[at+1] == '\n':
		return missingVersion
	case w[at] == '\r':
		return bareCR
	}
	return bad
}

// fieldLines parses the field lines that are complete in w, and the end of the head. next is the length of the head, or 0 if the head
// is incomplete in w. If p is a problem, next is its position.
func (h *Head) fieldLines(w []byte, lim *Limits) (next int, p problem) {
	if h.requestLineOnly {
		h.conclude()
		return h.line + 1, noProblem
	}
	for {
		i := h.line
		if i+1 < len(w) && w[i] == '\r' && w[i+1] == '\n' {
			if h.Minor == 1 && !h.hasHost && h.Form != AuthorityForm { // the target of AuthorityForm names the host
				return i, missingHost
			}
			h.conclude()
			return i + 2, noProblem
		}
		f, next, p := scanField(w, i)
		if next == 0 || p != noProblem {
			return next, p
		}
		if len(h.fields) >= lim.MaxFields {
			return i, tooManyFields
		}
		h.fields = append(h.fields, f)
		if p := h.interpret(w, f); p != noProblem {
			return int(f.value.start), p
		}
		h.line = next
		h.scanned = next
	}
}
