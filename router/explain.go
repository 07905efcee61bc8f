package router

import (
	"fmt"
	"strings"
)

// Explain describes step by step how a request is matched: which segments of patterns are tried, and with what
// result. The steps are those of LookupAccept, in the same order. Explain is meant for people who examine an
// application, and is much slower than a lookup.
func (r *Router[T]) Explain(method, host, path, accept string) string {
	var m Match[T]
	outcome := r.LookupAccept(method, host, path, accept, &m)

	e := &explainer{route: func(found *route) string {
		entry := found.entry.(*entry[T])
		return entry.String() + at(entry.position())
	}}
	e.line(0, "%s %s%s", method, host, path)
	e.walk = walk{path: path, accept: accept, method: r.table.methods.Load().bit(method), s: new(state)}
	if path == "" || path[0] != '/' {
		e.line(1, "a path begins with a slash")
	} else {
		e.table(&r.table, host)
	}
	switch outcome {
	case OutcomeFound:
		e.line(0, "found: %s%s", m.Route(), at(m.Route().position()))
		for i := range m.Len() {
			from := path
			if m.InHost(i) {
				from = host
			}
			e.line(1, "%s = %q", m.Name(i), Unescape(m.Span(i).Of(from)))
		}
		if m.HeadFromGet() {
			e.line(1, "a route for GET answers HEAD")
		}
	case OutcomeMethodNotAllowed:
		e.line(0, "method not allowed; allowed are %s", m.Allow())
	case OutcomeNotAcceptable:
		e.line(0, "not acceptable; the versions are %s", strings.Join(m.Versions(), ", "))
	default:
		e.line(0, "not found")
		if clean, dirty := Clean(path); dirty {
			e.line(1, "a path with empty or dot segments matches no pattern; the clean path is %s", clean)
		} else if r.OtherSlash(method, host, path, &m) {
			e.line(1, "the path would match if its trailing slash were added or removed")
		}
	}
	return e.out.String()
}

// An explainer repeats a lookup and records its steps.
type explainer struct {
	walk  walk
	route func(*route) string
	out   strings.Builder
}

func (e *explainer) line(depth int, format string, args ...any) {
	e.out.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(&e.out, format, args...)
	e.out.WriteByte('\n')
}

// table repeats the steps of table.find.
func (e *explainer) table(t *table, host string) bool {
	if h := t.hosts.Load(); h != nil {
		host = e.walk.s.foldHost(host)
		if site := h.exact.existingStatic(host); site != nil && host != "" {
			e.line(1, "host %s has routes", host)
			if e.node(site, 0, 0, 2) {
				return true
			}
		}
		if patterns := h.patterns.Load(); patterns != nil {
			for _, p := range *patterns {
				if !p.pattern.matchHost(host, e.walk.s) {
					e.line(1, "host pattern %s does not match", p.pattern.text)
					continue
				}
				e.line(1, "host pattern %s matches", p.pattern.text)
				if e.node(p.site, 0, p.params, 2) {
					return true
				}
			}
		}
		e.line(1, "routes for any host")
	}
	return e.node(&t.anyHost, 0, 0, 1)
}

// node repeats the steps of walk.find.
func (e *explainer) node(n *node, pos, k, depth int) bool {
	path := e.walk.path
	if pos == len(path) {
		return e.leaf(n.end.Load(), "the path ends here", depth)
	}
	start := pos + 1
	end := segmentEnd(path, start)
	text := path[start:end]
	if child := n.existingStatic(text); child != nil {
		e.line(depth, "%q is a static segment", text)
		if e.node(child, end, k, depth+1) {
			return true
		}
	}
	params, rest := n.allParams(), n.rest()
	if len(params) == 0 && rest == nil {
		e.line(depth, "%q: no pattern continues with this segment", text)
		return false
	}
	for _, next := range params {
		switch accepted := next.segment.match(path, start, end, k, e.walk.s); {
		case next.segment.rank == named && !accepted:
			e.line(depth, "%q cannot be the value of a parameter", text)
			continue
		case next.segment.rank == named:
			e.line(depth, "%q is the value of a parameter", text)
		case !accepted:
			e.line(depth, "%q is refused by %s", text, next.segment)
			continue
		default:
			e.line(depth, "%q is accepted by %s", text, next.segment)
		}
		if e.node(next, end, k+int(next.params), depth+1) {
			return true
		}
	}
	return e.rest(rest, pos, depth)
}

// rest repeats the steps of walk.matchRest.
func (e *explainer) rest(l *leaf, pos, depth int) bool {
	switch {
	case l == nil:
		return false
	case isDirty(e.walk.path[pos+1:]):
		e.line(depth, "%q has empty or dot segments, which a catch-all does not match", e.walk.path[pos:])
		return false
	default:
		return e.leaf(l, fmt.Sprintf("a catch-all or prefix matches %q", e.walk.path[pos:]), depth)
	}
}

// leaf repeats the steps of walk.bindingOf.
func (e *explainer) leaf(l *leaf, how string, depth int) bool {
	if l == nil {
		e.line(depth, "%s, but no pattern does", how)
		return false
	}
	b := e.walk.bindingOf(l)
	if b != nil {
		e.line(depth, "%s: %s", how, e.route(b.route))
		return true
	}
	e.line(depth, "%s, but not for this method and version:", how)
	for _, b := range l.bindings {
		if !b.implied {
			e.line(depth+1, "%s", e.route(b.route))
		}
	}
	return false
}

// String returns the segment in the syntax of a pattern.
func (seg *segment) String() string {
	if seg.rank == static {
		return seg.shape
	}
	text := ""
	for _, p := range seg.parts {
		switch {
		case p.name == "":
			text += p.literal
		case p.constraint == nil:
			text += "{" + p.name + "}"
		default:
			text += "{" + p.name + ":" + p.constraint.text + "}"
		}
	}
	return text
}
