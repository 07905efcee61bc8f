package exchange

import (
	"net/http"
	"strings"
)

// NewStdRequest makes the *http.Request of a wire's request with the given header fields, as far as it is not a matter
// of the protocol. The adapter adds the protocol, the target, the body and the context.
func NewStdRequest(w Wire, method string, fields http.Header) *http.Request {
	req := &http.Request{
		Method: method, Header: fields, Host: w.Host(), ContentLength: w.ContentLength(), Body: http.NoBody, TLS: w.TLS(),
	}
	if remote := w.Remote(); remote.IsValid() {
		req.RemoteAddr = remote.String()
	}
	return req
}

// AnnounceTrailers makes keys without a value of the names in the Trailer header, as net/http does, but for those that
// no trailer may have.
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
