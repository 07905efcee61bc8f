package router

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// Routes for the exact host are tried first, then routes for matching host patterns, then routes for any host. If no route of a host
// matches the request, the next matching host is tried. Labels are compared from right to left, because the rightmost label is the most
// significant. Letter case, the port and a final dot are ignored.

type hosts struct {
	exact    node // each of its static edges is a host name, and leads to the tree of that host's paths
	patterns atomic.Pointer[[]hostPattern]
}

// A hostPattern is a host pattern with parameters, and the tree of its paths. Patterns are tried one after the other, because a router has
// few of them, and most patterns that do not match differ from the host in the last label.
type hostPattern struct {
	pattern *pattern
	params  int
	site    *node
}

// maxHost is the maximum length in bytes of a host name with a final dot (RFC 1035). Longer names match only routes for any host.
const maxHost = 256

// insert adds a route to the tree of its host.
func (h *hosts) insert(in *insertion) error {
	host := in.route.host
	if len(host.names) == 0 {
		in.add(h.exact.next(&segment{shape: host.shape()}))
		return nil
	}
	var patterns []hostPattern
	if p := h.patterns.Load(); p != nil {
		patterns = *p
	}
	i, found := slices.BinarySearchFunc(patterns, host, func(a hostPattern, b *pattern) int { return compareHosts(a.pattern, b) })
	if found {
		in.add(patterns[i].site)
		return nil
	}
	for _, other := range patterns {
		if example, ok := in.overlaps.hosts(host, other.pattern); ok {
			return fmt.Errorf("host %s is ambiguous with host %s: both match %s with equal precedence", host.text, other.pattern.text, example)
		}
	}
	site := new(node)
	in.add(site)
	patterns = slices.Insert(slices.Clone(patterns), i, hostPattern{pattern: host, params: len(host.names), site: site})
	h.patterns.Store(&patterns)
	return nil
}

// shape returns the shapes of all labels.
func (p *pattern) shape() string {
	labels := make([]string, len(p.segments))
	for i, seg := range p.segments {
		labels[i] = seg.shape
	}
	return strings.Join(labels, ".")
}

// compareHosts orders host patterns by precedence. It compares ranks and shapes of labels from right to left. If all of them are equal,
// the longer pattern takes precedence.
func compareHosts(a, b *pattern) int {
	for i, j := len(a.segments)-1, len(b.segments)-1; i >= 0 && j >= 0; i, j = i-1, j-1 {
		x, y := &a.segments[i], &b.segments[j]
		if x.rank != y.rank {
			return int(x.rank) - int(y.rank)
		}
		if c := strings.Compare(x.shape, y.shape); c != 0 {
			return c
		}
	}
	return len(b.segments) - len(a.segments)
}

// hosts returns a host that both patterns match, if neither pattern takes precedence over the other.
func (o *overlaps) hosts(a, b *pattern) (string, bool) {
	if len(a.segments) != len(b.segments) {
		return "", false
	}
	decided := false
	labels := make([]string, len(a.segments))
	for i := len(labels) - 1; i >= 0; i-- {
		x, y := &a.segments[i], &b.segments[i]
		if x.shape != y.shape && !decided {
			if x.rank != y.rank {
				return "", false
			}
			decided = true
		}
		label, ok := o.segment(x, y)
		if !ok {
			return "", false
		}
		labels[i] = label
	}
	return strings.Join(labels, "."), decided
}

// find searches the trees of the matching hosts in order of precedence.
func (h *hosts) find(host string, w *walk) *binding {
	host = w.s.foldHost(host)
	if host == "" {
		return nil
	}
	if site := h.exact.existingStatic(host); site != nil {
		if b := w.find(site, 0, 0); b != nil {
			return b
		}
	}
	patterns := h.patterns.Load()
	if patterns == nil {
		return nil
	}
	for i := range *patterns {
		p := &(*patterns)[i]
		if p.pattern.matchHost(host, w.s) {
			if b := w.find(p.site, 0, p.params); b != nil {
				return b
			}
		}
	}
	return nil
}

// matchHost matches a host in the form of foldHost and records the values of the parameters.
func (p *pattern) matchHost(host string, s *state) bool {
	// Match from right to left, because most patterns that do not match differ from the host in the last label.
	k, end := len(p.names), len(host)
	for i := len(p.segments) - 1; i >= 0; i-- {
		start := strings.LastIndexByte(host[:max(end, 0)], '.') + 1
		seg := &p.segments[i]
		switch {
		case end < 0, i == 0 && start > 0:
			return false
		case seg.rank == static:
			if host[start:end] != seg.shape {
				return false
			}
		default:
			k -= seg.params()
			if !seg.match(host, start, end, k, s) {
				return false
			}
		}
		end = start - 1
	}
	return true
}

// foldHost returns host in lower case, without its port and a final dot. The result may be in memory of s; it is then valid until the next
// call. For a host that is too long, foldHost returns "".
func (s *state) foldHost(host string) string {
	host = hostName(host)
	if len(host) > maxHost {
		return ""
	}
	for i := 0; i < len(host); i++ {
		if c := host[i]; 'A' <= c && c <= 'Z' {
			folded := &s.memory().host
			*folded = append((*folded)[:0], host...)
			for ; i < len(host); i++ {
				(*folded)[i] = lower(host[i])
			}
			return view(*folded)
		}
	}
	return host
}

// hostName returns a host without its port and final dot.
func hostName(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.LastIndexByte(host, ']') < i {
		host = host[:i]
	}
	return strings.TrimSuffix(host, ".")
}

// checkHostPattern refuses a host pattern with a port, because lookups ignore the port.
func checkHostPattern(text string) error {
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.ContainsAny(text[i:], "]}") {
		return errors.New("a host pattern cannot have a port; ports are ignored")
	}
	return nil
}
