package http1

import (
	"encoding/binary"

	"github.com/dunlinhttp/dunlin/internal/semantics"
)

// plainVersion is the length of the request line after the target.
const plainVersion = len(" ") + versionLength + len(CRLF)

// minPlain is the length of the shortest request line of a plain head, see plain.
const minPlain = len("GET / HTTP/1.1\r\n")

// Parts of a head as little-endian words: "host: " and the ends of lines.
const (
	hostIs     = 'h' | 'o'<<8 | 's'<<16 | 't'<<24 | ':'<<32 | ' '<<40
	hostIsMask = 1<<48 - 1
	hostCase   = 0x20202020
	crlf       = '\r' | '\n'<<8
)

// plain is a fast path of Parse for the most common heads. Such a plain head is complete at the first call and has
// HTTP/1.1 and a target in origin form without escapes. plain parses the head in one pass and keeps no state. For any
// other head it returns 0; the state machine then parses the head from its start.
func (h *Head) plain(buf []byte, lim *Limits) (n int) {
	w := buf[:min(len(buf), lim.MaxHead)]
	if len(w) < minPlain {
		return 0
	}
	method, space := semantics.MethodGet, len("GET")
	if string(w[:4]) != "GET " {
		if space = scanToken(w, 0); space == 0 || space > maxMethod || space+1 >= len(w) || w[space] != ' ' {
			return 0
		}
		if method = semantics.MethodOf(w[:space]); method == semantics.MethodConnect {
			return 0
		}
	}
	target := space + 1
	if w[target] != '/' {
		return 0
	}
	pathEnd := scanPath(w, target+1)
	end := pathEnd
	if end < len(w) && w[end] == '?' {
		end = scanQuery(w, end)
	}
	if end+plainVersion > len(w) || end-target > lim.MaxTarget {
		return 0
	}
	if v := (*[plainVersion]byte)(w[end:]); v[0] != ' ' || binary.LittleEndian.Uint64(v[1:]) != http11 ||
		binary.LittleEndian.Uint16(v[1+versionLength:]) != crlf {
		return 0
	}
	h.Reset()
	h.Method, h.Minor = method, 1
	h.method, h.target, h.path = span{0, uint32(space)}, span{uint32(target), uint32(end)}, span{uint32(target), uint32(pathEnd)}
	if pathEnd < end {
		h.query = span{uint32(pathEnd + 1), uint32(end)}
	}
	i := end + plainVersion
	for rest := w[i:]; len(rest) >= 8; rest = w[i:] {
		var f fieldSpan
		next := 0
		if binary.LittleEndian.Uint64(rest)&hostIsMask|hostCase == hostIs && !h.hasHost {
			if n := plainHost(rest[len("Host: "):]); n > 0 {
				host := i + len("Host: ")
				f = fieldSpan{span{uint32(i), uint32(i + len("Host"))}, span{uint32(host), uint32(host + n)}}
				h.hasHost, h.host, next = true, f.value, host+n+len(CRLF)
			}
		}
		if next == 0 {
			var p problem
			if f, next, p = scanField(w, i); next == 0 || p != noProblem || h.interpret(w, f) != noProblem {
				return 0
			}
		}
		if len(h.fields) >= lim.MaxFields {
			return 0
		}
		h.fields = append(h.fields, f)
		i = next
		if rest = w[i:]; len(rest) < len(CRLF) {
			return 0
		}
		if binary.LittleEndian.Uint16(rest) == crlf {
			if !h.hasHost {
				return 0
			}
			h.conclude()
			h.state = headDone
			h.buf = buf[:i+len(CRLF)]
			return i + len(CRLF)
		}
	}
	return 0
}

// plainHost returns the length of the value of a Host line. b begins with the value. The result is 0 unless the value
// is an ordinary name or an IPv4 address, with an optional port, and CRLF follows it.
func plainHost(b []byte) (length int) {
	length = scanHost(b)
	if b = b[length:]; length == 0 || len(b) < len(CRLF) {
		return 0
	}
	if b[0] == ':' {
		end, port := 1, uint32(0)
		for _, c := range b[1:min(len(b), len(":65535")+1)] {
			d := c - '0'
			if d > 9 {
				break
			}
			port = 10*port + uint32(d)
			end++
		}
		if b = b[end:]; port > 65535 || end > len(":65535") || len(b) < len(CRLF) {
			return 0
		}
		length += end
	}
	if binary.LittleEndian.Uint16(b) != crlf {
		return 0
	}
	return length
}
