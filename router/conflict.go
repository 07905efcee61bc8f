package router

import "fmt"

// This file detects conflicts. The first segments in which two patterns differ decide which is more specific, by their rank. Only constrained
// segments with different constraints can have the same rank; two such routes are refused if one request could match both.
// Two routes whose patterns differ only in the names of parameters are refused if they have a method and a version in common.

// A ConflictError reports that a route would be ambiguous together with an earlier one.
type ConflictError struct {
	Route, Other           string // "GET /users/{id:int}"
	RoutePlace, OtherPlace string
	Example                string // path, or host and path, that both match with equal precedence
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("conflicts with %s%s: both match %s with equal precedence", e.Other, at(e.OtherPlace), e.Example)
}

// example returns a path, or host and path, that both routes match.
func (o *overlaps) example(a, b *route) string {
	example, ok := o.path(a, b)
	if !ok {
		example = "the same paths"
	}
	if a.host != nil {
		example = a.host.sample(o) + example
	}
	return example
}

var restSegment = segment{rank: catchAll}

// path returns a path that both routes' path patterns match.
func (o *overlaps) path(a, b *route) (string, bool) {
	x, y := a.openSegments(), b.openSegments()
	path := ""
	for {
		switch {
		case len(x) == 0 && (len(y) == 0 || y[0].isBelow()), len(y) == 0 && x[0].isBelow():
			return path, true
		case len(x) == 0 || len(y) == 0:
			return "", false
		case x[0].rank == catchAll:
			return path + o.tail(y), true
		case y[0].rank == catchAll:
			return path + o.tail(x), true
		}
		text, ok := o.segment(&x[0], &y[0])
		if !ok {
			return "", false
		}
		path += "/" + text
		x, y = x[1:], y[1:]
	}
}

// openSegments returns the segments of the path. The segments of a prefix route end with a catch-all.
func (r *route) openSegments() []segment {
	if !r.prefix {
		return r.path.segments
	}
	if r.path.text == "/" {
		return []segment{restSegment}
	}
	return append(r.path.segments[:len(r.path.segments):len(r.path.segments)], restSegment)
}

// isBelow reports whether the segment is the part of a prefix route below its prefix.
func (seg *segment) isBelow() bool { return seg.rank == catchAll && len(seg.parts) == 0 }

// tail returns the text of segments, each after a slash. An empty rest stands for a catch-all.
func (o *overlaps) tail(segments []segment) string {
	text := ""
	for i := range segments {
		text += "/" + o.sample(&segments[i])
	}
	return text
}

// sample returns a text that the segment matches, or the best guess if none is known.
func (o *overlaps) sample(seg *segment) string {
	switch seg.rank {
	case static:
		return seg.shape
	case named:
		return "x"
	case constrained:
		if text, ok := o.find(seg, seg); ok {
			return text
		}
	}
	return ""
}

// segment returns a text that both segments match; neither is a catch-all.
func (o *overlaps) segment(a, b *segment) (string, bool) {
	if a.rank > b.rank {
		a, b = b, a
	}
	var s state
	switch {
	case a.rank == static && b.rank == static:
		return a.shape, a.shape == b.shape
	case a.rank == static:
		return a.shape, b.match(a.shape, 0, len(a.shape), 0, &s)
	case b.rank == constrained && a.shape != b.shape:
		return o.find(a, b)
	}
	text := o.sample(a)
	return text, text != "" && b.match(text, 0, len(text), 0, &s)
}

// sample returns a host that the pattern matches.
func (p *pattern) sample(o *overlaps) string {
	text := ""
	for i := range p.segments {
		if i > 0 {
			text += "."
		}
		text += o.sample(&p.segments[i])
	}
	return text
}
