package request

import (
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// Sendable yields the fields of an interim answer, or of trailers, that may be sent, sorted by name. A name may have
// http.TrailerPrefix.
func Sendable(fields http.Header) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for _, key := range exchange.SortedKeys(fields) {
			name, prefixed := strings.CutPrefix(key, http.TrailerPrefix)
			if prefixed {
				name = http.CanonicalHeaderKey(name)
			}
			for _, value := range fields[key] {
				if exchange.CheckField(name, value) == nil && !yield(name, exchange.TrimBlanks(value)) {
					return
				}
			}
		}
	}
}

// StdFields returns the map of net/http for the fields of a request, of which there are about n. Host is omitted, as in net/http.
func StdFields(n int, fields iter.Seq2[string, string]) http.Header {
	h := make(http.Header, n)
	for name, value := range fields {
		if name != "Host" {
			h[name] = append(h[name], value)
		}
	}
	return h
}

// TargetURL returns the URL of a request target, as net/http builds it. authority reports that the target is a host, as in CONNECT.
func TargetURL(authority bool, target string) *url.URL {
	if authority {
		return &url.URL{Host: target}
	}
	u, err := url.ParseRequestURI(target)
	if err != nil { // accepted by the parser, but refused by package url
		return &url.URL{Path: target}
	}
	return u
}
