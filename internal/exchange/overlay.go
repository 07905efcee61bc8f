package exchange

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// An overlay is a Wire with some header fields of its request changed.
type overlay struct {
	Wire
	names, values []string // the changed fields, ordered by name; the value "" removes the field
	std           *http.Request
}

// Overlay returns a wire for the same request with changed fields: each value replaces all fields of that name in the request,
// and "" removes them.
func Overlay(w Wire, fields map[string]string) Wire {
	o := &overlay{Wire: w}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		o.names, o.values = append(o.names, name), append(o.values, fields[name])
	}
	return o
}

// find returns the changed value of a field; other reports whether the field is changed.
func (o *overlay) find(name string) (value string, other bool) {
	for i, n := range o.names {
		if strings.EqualFold(n, name) {
			return o.values[i], true
		}
	}
	return "", false
}

// Overlaid returns the names of the changed fields of a wire.
func Overlaid(w Wire) (names []string) {
	for o, ok := w.(*overlay); ok; o, ok = w.(*overlay) {
		names = append(names, o.names...)
		w = o.Wire
	}
	return names
}

func (o *overlay) Header(name string) (string, bool) {
	if v, other := o.find(name); other {
		return v, v != ""
	}
	return o.Wire.Header(name)
}

func (o *overlay) List(name string) string {
	if v, other := o.find(name); other {
		return v
	}
	return o.Wire.List(name)
}

func (o *overlay) Glance(name string, _ bool) (named bool, origin string, ip, now int64) {
	return GlanceAt(o, name)
}

func (o *overlay) Among(names *Names) uint64 {
	set := o.Wire.Among(names)
	for _, name := range o.names {
		set |= names.Set(name) // List returns "" for removed fields
		if strings.EqualFold(name, "Connection") {
			set |= names.NamesFields
		}
	}
	return set
}

func (o *overlay) Headers(yield func(name, value string) bool) {
	going := true
	o.Wire.Headers(func(name, value string) bool {
		if _, other := o.find(name); !other {
			going = yield(name, value)
		}
		return going
	})
	for i, v := range o.values {
		if going && v != "" {
			going = yield(http.CanonicalHeaderKey(o.names[i]), v)
		}
	}
}

func (o *overlay) StdRequest() *http.Request {
	below := o.Wire.StdRequest()
	if o.std != nil {
		if ctx := below.Context(); ctx != o.std.Context() {
			o.std = o.std.WithContext(ctx)
		}
		o.std.Body = below.Body // the body may have been read in the meantime
		return o.std
	}
	own := *below
	own.Header = own.Header.Clone()
	for i, v := range o.values {
		if own.Header.Del(o.names[i]); v != "" {
			own.Header.Set(o.names[i], v)
		}
	}
	o.std = &own
	return o.std
}

// Lost calls the underlying wire, see Watcher.
func (o *overlay) Lost(left int64) bool {
	w, knows := o.Wire.(Watcher)
	if !knows {
		return o.Context().Err() != nil
	}
	return w.Lost(left)
}

// Credentials are the kinds of credentials that may distinguish a request from those of other users.
type Credentials uint8

const (
	Authorized  Credentials = 1 << iota // Authorization
	WithCookies                         // Cookie
	Identified                          // others: a key in another header, a certificate, a session
)

// CredentialsOf returns the credentials sent with a request, and those recorded in its state: middleware may have removed fields
// after it identified the user. If fields is false, the header fields are not inspected, because the caller knows that they
// contain no credentials.
func CredentialsOf(w Wire, s *State, fields bool) Credentials {
	c := s.Credentials
	if t := w.TLS(); t != nil && len(t.PeerCertificates) > 0 {
		c |= Identified
	}
	for fields {
		if w.List("Authorization") != "" {
			c |= Authorized
		}
		if w.List("Cookie") != "" {
			c |= WithCookies
		}
		o, more := w.(*overlay)
		if !more {
			return c
		}
		w = o.Wire
	}
	return c
}
