package request

import (
	"iter"
	"net/http"
	"net/url"
)

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
