package router

import (
	"fmt"
	"strings"
)

// URL builds the escaped path of the route with the given name. args are the values of the route's parameters in order, the
// parameters of the host first. They are formatted as by fmt.Sprint. For a route with a host the result begins with "//" and the
// host. URL returns an error if a value does not match its parameter or would be parsed differently. Therefore the route's
// pattern matches the result with the same values. A lookup of the result may still find a route with higher precedence.
func (r *Router[T]) URL(name string, args ...any) (string, error) {
	r.mu.RLock()
	e := r.names[name]
	r.mu.RUnlock()
	if name == "" || e == nil {
		return "", fmt.Errorf("router: no route is named %q", name)
	}
	url, err := e.route.url(args)
	if err != nil {
		return "", fmt.Errorf("router: URL of route %q, %s: %w", name, e, err)
	}
	return url, nil
}

func (r *route) url(args []any) (string, error) {
	if len(args) != len(r.names) {
		return "", fmt.Errorf("%d values for %d parameters", len(args), len(r.names))
	}
	values := make([]string, len(args))
	for i, arg := range args {
		values[i] = fmt.Sprint(arg)
	}
	var out []byte
	if r.host != nil {
		out = append(out, "//"...)
		for i := range r.host.segments {
			if i > 0 {
				out = append(out, '.')
			}
			label, rest, err := r.host.segments[i].fill(values, hostValue)
			if err != nil {
				return "", err
			}
			out, values = append(out, label...), rest
		}
	}
	for i := range r.path.segments {
		seg := &r.path.segments[i]
		encode := canonicalValue
		if seg.rank == catchAll {
			encode = canonicalRest
		}
		text, rest, err := seg.fill(values, encode)
		if err != nil {
			return "", err
		}
		out, values = AppendEscaped(append(out, '/'), text), rest
	}
	return string(out), nil
}

// fill returns the text of the segment for the first values, and the values that remain.
func (seg *segment) fill(values []string, encode func(string) (string, error)) (string, []string, error) {
	if seg.rank == static {
		return seg.shape, values, nil
	}
	var text strings.Builder
	var want []Span
	for _, p := range seg.parts {
		if p.name == "" {
			text.WriteString(p.literal)
			continue
		}
		value, err := encode(values[0])
		if err != nil {
			return "", nil, fmt.Errorf("parameter %q: %w", p.name, err)
		}
		want = append(want, Span{uint32(text.Len()), uint32(text.Len() + len(value))})
		text.WriteString(value)
		if !p.accepts(value) {
			return "", nil, fmt.Errorf("parameter %q: %q is not %s", p.name, values[0], p.constraint)
		}
		values = values[1:]
	}
	if seg.rank != catchAll {
		var s state
		ok := seg.match(text.String(), 0, text.Len(), 0, &s)
		for i := range want {
			ok = ok && s.span(i) == want[i]
		}
		if !ok {
			return "", nil, fmt.Errorf("the segment %q would not be parsed into these values", text.String())
		}
	}
	return text.String(), values, nil
}

func (p *part) accepts(canonical string) bool {
	return p.constraint == nil || p.constraint.match(canonical, new(state))
}

// canonicalValue returns a value in the form that it has in a canonical path.
func canonicalValue(value string) (string, error) {
	return strings.NewReplacer("%", "%25", "/", "%2F").Replace(value), nil
}

// canonicalRest returns the value of a catch-all in the form that it has in a canonical path. The slashes of the value separate
// segments.
func canonicalRest(value string) (string, error) {
	if isDirty(value) {
		return "", fmt.Errorf("%q has empty or dot segments", value)
	}
	return strings.ReplaceAll(value, "%", "%25"), nil
}

// hostValue returns an error if a value cannot be part of a host label.
func hostValue(value string) (string, error) {
	for i := 0; i < len(value); i++ {
		if !isHostByte(value[i]) {
			return "", fmt.Errorf("%q cannot occur in a host", value[i])
		}
	}
	return value, nil
}
