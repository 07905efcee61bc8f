package router

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// The host is the most significant part of a route: routes for the exact host are tried first, then those of
// matching host patterns, then those for any host. If a request matches no route of a host, the
// next host is tried. Labels are compared from the right, since the right ones are more significant. Letter case, the port and a
// final dot are ignored.

type hosts struct {
	exact    node // its static edges are host names, each leads to the tree of that host's paths
	patterns atomic.Pointer[[]hostPattern]
}

// A hostPattern is a host with parameters and the tree of its paths. Patterns are tried one after the other: patterns are few, and most do
// not match by their last label.
type hostPattern struct {
	pattern *pattern
	params  int
	site    *node
}

// maxHost is the maximum length of a host name (RFC 1035) with a final dot. Longer names match no route's host.
const maxHost = 256

// insert adds the route to the routes of its host.
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

// shape joins the shapes of the labels.
func (p *pattern) shape() string {
	labels := make([]string, len(p.segments))
	for i, seg := range p.segments {
		labels[i] = seg.shape
	}
	return strings.Join(labels, ".")
}

// compareHosts orders host patterns by precedence: by rank and shape of the first label from the right in which they differ, then by
// length, the longer pattern first.
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

// hosts returns a host that both patterns match, if neither pattern takes precedence.
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

// find searches the trees of the matching hosts.
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

// matchHost matches a folded host and records the values of its parameters.
func (p *pattern) matchHost(host string, s *state) bool {
	// From the right, where most patterns differ.
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

// foldHost removes the port and a final dot and folds the case in place. It returns "" for a host that is too long.
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

// checkHostPattern refuses a host pattern with a port, since routes do not depend on the port.
func checkHostPattern(text string) error {
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.ContainsAny(text[i:], "]}") {
		return errors.New("a host pattern cannot have a port; ports are ignored")
	}
	return nil
}
