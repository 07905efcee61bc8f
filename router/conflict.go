package router

import "fmt"

// This file detects conflicts. The more specific of two patterns is determined by the ranks of the first segments in which the patterns
// differ. If these segments are both constrained, neither pattern is more specific. Two such routes are refused if a request exists that
// both match. Two routes whose patterns differ only in the names of parameters are refused if they have a method and a version in common.

// A ConflictError reports that a route was refused because some requests would match both this route and an earlier route with equal
// precedence.
type ConflictError struct {
	Route, Other           string // "GET /users/{id:int}"
	RoutePlace, OtherPlace string
	Example                string // a path, or host and path, that both routes match with equal precedence
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

// path returns a path that the path patterns of both routes match. ok is false if no such path is known.
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

// isBelow reports whether the segment represents all paths below the prefix of a prefix route.
func (seg *segment) isBelow() bool { return seg.rank == catchAll && len(seg.parts) == 0 }

// tail returns an example of the text of segments, with a slash before each segment. The example for a catch-all is empty.
func (o *overlaps) tail(segments []segment) string {
	text := ""
	for i := range segments {
		text += "/" + o.sample(&segments[i])
	}
	return text
}

// sample returns a text that the segment matches. If no such text is known, it returns the empty text.
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

// segment returns a text that both segments match. Neither segment may be a catch-all.
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
