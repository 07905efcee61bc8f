package router_test

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// The reference implementation of the router tries the patterns of a list, sorted by precedence, one after the other. It shares no code
// with
// the router. It supports methods, hosts and prefix routes, and the constraints below, as expressions. It does not support
// versions.

var naiveConstraints = map[string]*regexp.Regexp{
	"int":   regexp.MustCompile(`^-?[0-9]{1,18}$`),
	"alpha": regexp.MustCompile(`^[a-zA-Z]+$`),
	"hex":   regexp.MustCompile(`^[0-9a-fA-F]+$`),
	`a|b.*`: regexp.MustCompile(`^(?:a|b.*)$`),
	`\W+`:   regexp.MustCompile(`^\W+$`),
}

type naiveRoute struct {
	methods    []string
	host, path []string // segments as written; host from the right
	hasHost    bool
	prefix     bool
	index      int
}

type naiveRouter struct{ routes []naiveRoute }

func (n *naiveRouter) add(methods, host, pattern string, prefix bool) {
	r := naiveRoute{methods: strings.Split(methods, ","), prefix: prefix, index: len(n.routes), hasHost: host != ""}
	if r.hasHost {
		r.host = strings.Split(strings.ToLower(host), ".")
		slices.Reverse(r.host)
	}
	if prefix {
		pattern = strings.TrimSuffix(pattern, "/")
	}
	if pattern != "" {
		r.path = strings.Split(pattern[1:], "/")
	}
	n.routes = append(n.routes, r)
}

// find returns the index of the route, or -1 and the union of the methods of all matching routes.
func (n *naiveRouter) find(method, host, path string) (index int, params, allowed []string) {
	sorted := slices.Clone(n.routes)
	slices.SortStableFunc(sorted, func(a, b naiveRoute) int { return a.compare(&b) })
	// Routes of equal precedence match the same path only if their methods differ.
	for i := 0; i < len(sorted); {
		j := i + 1
		for j < len(sorted) && sorted[i].compare(&sorted[j]) == 0 {
			j++
		}
		group := sorted[i:j]
		for _, want := range [][]string{{method}, {"GET"}, {"*"}} {
			if want[0] == "GET" && method != "HEAD" && method != "GET" {
				continue
			}
			for _, r := range group {
				if values, ok := r.match(host, path); ok && slices.Contains(r.methods, want[0]) {
					return r.index, values, nil
				}
			}
		}
		for _, r := range group {
			if _, ok := r.match(host, path); ok {
				allowed = append(allowed, r.methods...)
			}
		}
		i = j
	}
	return -1, nil, allowed
}

// compare orders by precedence: by the ranks of the host from the right, then of the path.
func (r *naiveRoute) compare(o *naiveRoute) int {
	if r.hasHost != o.hasHost {
		if r.hasHost {
			return -1
		}
		return 1
	}
	return cmp.Or(compareNaive(r.host, o.host, 0, 0), compareNaive(r.path, o.path, r.ending(), o.ending()))
}

// ending returns the rank of the text after the last segment: 0 for none, 4 for any.
func (r *naiveRoute) ending() int {
	if r.prefix {
		return 4
	}
	return 0
}

func compareNaive(a, b []string, endA, endB int) int {
	for i := 0; ; i++ {
		x, y := endA, endB
		if i < len(a) {
			x = naiveRank(a[i])
		}
		if i < len(b) {
			y = naiveRank(b[i])
		}
		if x != y || i >= len(a) || i >= len(b) {
			return x - y
		}
		// Within a rank, any fixed order that distinguishes different segments is correct.
		if c := strings.Compare(naiveShape(a[i]), naiveShape(b[i])); c != 0 {
			return c
		}
	}
}

var paramName = regexp.MustCompile(`\{\w+`)

func naiveShape(seg string) string { return paramName.ReplaceAllString(seg, "{") }

func naiveRank(seg string) int {
	switch {
	case strings.HasSuffix(seg, "...}"):
		return 4
	case !strings.Contains(seg, "{"):
		return 1
	case strings.HasPrefix(seg, "{") && strings.HasSuffix(seg, "}") && !strings.Contains(seg, ":") && strings.Count(seg, "{") == 1:
		return 3
	default:
		return 2
	}
}

func (r *naiveRoute) match(host, path string) (values []string, ok bool) {
	if r.hasHost {
		host, _, _ = strings.Cut(strings.ToLower(host), ":")
		labels := strings.Split(strings.TrimSuffix(host, "."), ".")
		slices.Reverse(labels)
		if len(labels) != len(r.host) {
			return nil, false
		}
		for i := len(labels) - 1; i >= 0; i-- {
			v, ok := naiveSegment(r.host[i], labels[i])
			if !ok {
				return nil, false
			}
			values = append(values, v...)
		}
	}
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, pattern := range r.path {
		if naiveRank(pattern) == 4 {
			rest := segments[min(i, len(segments)):]
			return append(values, strings.Join(rest, "/")), len(rest) > 0 && naiveClean(rest)
		}
		if i >= len(segments) {
			return nil, false
		}
		v, ok := naiveSegment(pattern, segments[i])
		if !ok {
			return nil, false
		}
		values = append(values, v...)
	}
	rest := segments[len(r.path):]
	return values, len(rest) == 0 || r.prefix && naiveClean(rest)
}

func naiveClean(segments []string) bool {
	for i, s := range segments {
		if s == "." || s == ".." || s == "" && i+1 < len(segments) {
			return false
		}
	}
	return true
}

// naiveSegment matches one segment. Text is matched from right to left at its last occurrence.
func naiveSegment(pattern, s string) (values []string, ok bool) {
	if !strings.Contains(pattern, "{") {
		return nil, pattern == s
	}
	if s == "" || s == "." || s == ".." {
		return nil, false
	}
	for pattern != "" {
		if !strings.HasSuffix(pattern, "}") {
			i := strings.LastIndexByte(pattern, '}') + 1
			text := pattern[i:]
			if !strings.HasSuffix(s, text) {
				return nil, false
			}
			pattern, s = pattern[:i], s[:len(s)-len(text)]
			continue
		}
		i := strings.LastIndexByte(pattern, '{')
		_, constraint, _ := strings.Cut(pattern[i+1:len(pattern)-1], ":")
		pattern = pattern[:i]
		text := pattern[strings.LastIndexByte(pattern, '}')+1:]
		first := len(text) == len(pattern)
		at := strings.LastIndex(s, text)
		if first {
			at = 0
		}
		if at < 0 || !strings.HasPrefix(s[at:], text) {
			return nil, false
		}
		value := s[at+len(text):]
		s, pattern = s[:at], pattern[:len(pattern)-len(text)]
		if value == "" || constraint != "" && !naiveConstraints[constraint].MatchString(value) {
			return nil, false
		}
		values = append([]string{value}, values...)
		if first {
			return values, s == ""
		}
	}
	return values, s == ""
}
