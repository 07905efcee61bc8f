package exchange

import (
	"net/http"
	"strings"
)

// NewStdRequest makes the *http.Request for a wire's request with the given header fields. The adapter adds the protocol, the
// target, the body and the context.
func NewStdRequest(w Wire, method string, fields http.Header) *http.Request {
	req := &http.Request{
		Method: method, Header: fields, Host: w.Host(), ContentLength: w.ContentLength(), Body: http.NoBody, TLS: w.TLS(),
	}
	if remote := w.Remote(); remote.IsValid() {
		req.RemoteAddr = remote.String()
	}
	return req
}

// AnnounceTrailers adds a trailer key without a value for each name in the Trailer header, as net/http does, except for names
// that are forbidden in trailers.
func AnnounceTrailers(req *http.Request) {
	for _, list := range req.Header["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			switch name = http.CanonicalHeaderKey(strings.Trim(name, " \t")); name {
			case "", "Transfer-Encoding", "Trailer", "Content-Length":
			default:
				if req.Trailer == nil {
					req.Trailer = make(http.Header)
				}
				req.Trailer[name] = nil
			}
		}
	}
	delete(req.Header, "Trailer")
}
