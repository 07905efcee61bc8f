package router

import "strings"

// This file matches one segment. A segment with several parameters is parsed from right to left. Each text is found at its last
// occurrence, so the leftmost parameter is as long as possible: {file}.{ext} parses "archive.tar.gz" as "archive.tar" and "gz".
// A segment is parsed in exactly one way, without backtracking, so the time is linear in its length. Constraints do not affect
// how a segment is divided; they only accept or refuse the values.

// match matches the segment path[start:end] and records the values of its parameters. The first parameter has the index k.
func (seg *segment) match(path string, start, end, k int, s *state) bool {
	if end == start || path[start] == '.' && isDotSegment(path[start:end]) {
		return false
	}
	if len(seg.parts) == 1 {
		p := &seg.parts[0]
		if p.constraint != nil && !p.constraint.match(path[start:end], s) {
			return false
		}
		s.setSpan(k, start, end)
		return true
	}
	return seg.matchParts(path, start, end, k, s)
}

// matchParts matches a segment in which parameters and text alternate.
func (seg *segment) matchParts(path string, start, end, k int, s *state) bool {
	parts := seg.parts
	if first := parts[0].literal; first != "" {
		if !strings.HasPrefix(path[start:end], first) {
			return false
		}
		start += len(first)
		parts = parts[1:]
	}
	if last := parts[len(parts)-1].literal; last != "" {
		if !strings.HasSuffix(path[start:end], last) || insideEscape(path[start:end], end-start-len(last)) {
			return false
		}
		end -= len(last)
		parts = parts[:len(parts)-1]
	}
	// Find the ends of the values from right to left. Then record the values from left to right.
	var ends [maxSegmentParams]int
	n := (len(parts) + 1) / 2
	for i := n - 1; i > 0; i-- {
		text := parts[2*i-1].literal
		at := lastIndex(path[start:end], text)
		if at < 0 {
			return false
		}
		value := start + at + len(text)
		ends[i] = end
		if p := &parts[2*i]; value == end || p.constraint != nil && !p.constraint.match(path[value:end], s) {
			return false
		}
		end = start + at
	}
	ends[0] = end
	if p := &parts[0]; start == end || p.constraint != nil && !p.constraint.match(path[start:end], s) {
		return false
	}
	for i := range n {
		s.setSpan(k+i, start, ends[i])
		if i+1 < n {
			start = ends[i] + len(parts[2*i+1].literal)
		}
	}
	return true
}

// lastIndex is strings.LastIndex for canonical text, except that it ignores occurrences that begin at a digit of an escape.
func lastIndex(s, text string) int {
	for end := len(s); ; {
		at := strings.LastIndex(s[:end], text)
		if at < 0 || !insideEscape(s, at) {
			return at
		}
		end = at + len(text) - 1
	}
}

// insideEscape reports whether offset i of s is inside an escape, after the percent sign.
func insideEscape(s string, i int) bool {
	return i > 0 && s[i-1] == '%' || i > 1 && s[i-2] == '%'
}
