package stdhttp

import (
	"fmt"
	"net/http"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// malformed returns the reason why an HTTP/2 request is malformed, or "" (RFC 9113, section 8.1.1). net/http accepts such
// requests, but its HTTP/1.1 server and the loop engine do not. A proxy and a server could interpret such a request
// differently.
func malformed(req *http.Request) string {
	if !http1.IsToken(view.Bytes(req.Method)) {
		return "invalid method"
	}
	if what := malformedTarget(req); what != "" {
		return what
	}
	if what := malformedHost(req); what != "" {
		return what
	}
	if what := malformedLength(req); what != "" {
		return what
	}
	return ""
}

// trimFields removes white space around field values. grpc-go sends such values over HTTP/2, contrary to RFC 9113, section
// 8.2.1. net/http removes the white space only in HTTP/1.1.
func trimFields(h http.Header) {
	for name, values := range h {
		if name == ":protocol" {
			continue // pseudo-header field
		}
		for i, v := range values {
			values[i] = exchange.TrimBlanks(v)
		}
	}
}

// expectsOther reports whether an HTTP/2 request has an expectation other than 100-continue, which the server does not
// support (RFC 9110, section 10.1.1). net/http has removed 100-continue.
func expectsOther(req *http.Request) bool {
	for _, v := range req.Header["Expect"] {
		if v != "" {
			return true
		}
	}
	return false
}

// malformedTarget checks :path, which must be a path, or an asterisk with the method OPTIONS.
func malformedTarget(req *http.Request) string {
	target := req.RequestURI
	switch {
	case req.Method == http.MethodConnect && req.Header[":protocol"] == nil: // checked by net/http
	case target == "*" && req.Method == http.MethodOptions:
	case target == "" || target[0] != '/':
		return "path that does not begin with a slash"
	default:
		if _, _, ok := http1.ScanTarget(view.Bytes(target)); !ok {
			return "invalid path"
		}
	}
	return ""
}

// malformedHost checks :authority and Host. If both are present, they must be equal.
func malformedHost(req *http.Request) string {
	if req.Host == "" {
		return "missing :authority and Host"
	}
	if !http1.ValidAuthority(view.Bytes(req.Host)) {
		return "invalid host"
	}
	switch host := req.Header["Host"]; {
	case len(host) > 1:
		return "repeated Host"
	case len(host) == 1 && host[0] != "" && !http1.EqualFold(view.Bytes(host[0]), view.Bytes(req.Host)):
		return "Host that differs from :authority"
	}
	return ""
}

// malformedLength checks Content-Length. It must be one number and equal the length of the body. net/http counts the bytes of
// the body.
func malformedLength(req *http.Request) string {
	length := req.Header["Content-Length"]
	if len(length) == 0 {
		return ""
	}
	n, ok := http1.ParseContentLength(view.Bytes(length[0]))
	switch {
	case len(length) > 1:
		return "repeated Content-Length"
	case !ok:
		return "malformed Content-Length"
	case n != req.ContentLength:
		return "Content-Length other than the length of the body"
	}
	return ""
}

// tooManyHeaders refuses a request with more fields than MaxHeaders. net/http has already limited the bytes of the fields.
func (s *Service) tooManyHeaders(w http.ResponseWriter, req *http.Request) {
	if req.ProtoMajor < 2 { // an HTTP/2 connection has other streams
		w.Header().Set("Connection", "close")
	}
	s.refuse(w, req, http.StatusRequestHeaderFieldsTooLarge, fmt.Sprintf("too many fields (the limit is %d)", s.MaxHeaders))
}

// refuse answers a request without finding a route.
func (s *Service) refuse(w http.ResponseWriter, req *http.Request, status int, why string) {
	x := s.wires.Get().(*wire)
	x.w, x.Req = w, req
	x.s.Set(req.Method, req.URL.Path, req.URL.RawQuery, false)
	x.call.Begin(true)
	if x.s.Watched {
		x.call.Clock()
	}
	resp := s.Pipeline.Answer(s.Pipeline.Problem(status, why, nil))
	if s.Counting.Load() {
		defer endCount(x.startCount())
		x.count.end(x.s, &resp)
	}
	x.answerAlone(resp, exchange.FromProtocol)
	x.release()
}
