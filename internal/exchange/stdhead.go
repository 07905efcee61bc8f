package exchange

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/internal/clientaddr"
)

// A StdHead implements the methods of a Wire about the head of a request, for a request of net/http.
type StdHead struct{ Req *http.Request }

func (h *StdHead) Host() string { return h.Req.Host }

func (h *StdHead) Header(name string) (string, bool) {
	if v := h.Req.Header[name]; len(v) > 0 {
		return v[0], true
	}
	var v []string
	if !isCanonical(name) {
		v = h.Req.Header.Values(name)
	}
	if len(v) == 0 {
		if strings.EqualFold(name, "Host") { // net/http moves it to Req.Host
			return h.Req.Host, h.Req.Host != ""
		}
		return "", false
	}
	return v[0], true
}

func (h *StdHead) List(name string) string {
	v := h.Req.Header[name]
	if v == nil && !isCanonical(name) {
		v = h.Req.Header.Values(name)
	}
	if len(v) == 0 && len(name) == len("Host") && strings.EqualFold(name, "Host") {
		return h.Req.Host // net/http moves it to Req.Host
	}
	return strings.Join(v, Separator(name))
}

// Separator returns the separator for joining the values of a header that was sent in several lines: a semicolon for Cookie
// (RFC 9113 section 8.2.3), otherwise a comma.
func Separator(name string) string {
	if len(name) == len("Cookie") && strings.EqualFold(name, "Cookie") {
		return "; "
	}
	return ", "
}

// isCanonical reports whether a header name has the spelling of net/http's maps. Most names do; a second lookup for them would
// cost more than the first.
func isCanonical(name string) bool {
	first := true
	for i := range len(name) {
		c := name[i]
		if first && 'a' <= c && c <= 'z' || !first && 'A' <= c && c <= 'Z' {
			return false
		}
		first = c == '-'
	}
	return true
}

func (h *StdHead) Headers(yield func(name, value string) bool) {
	if h.Req.Host != "" && !yield("Host", h.Req.Host) {
		return
	}
	for _, name := range SortedKeys(h.Req.Header) {
		for _, v := range h.Req.Header[name] {
			if !yield(name, v) {
				return
			}
		}
	}
}

func (h *StdHead) Glance(name string, _ bool) (named bool, origin string, ip, now int64) {
	return name != "" && h.List(name) != "", h.List("Origin"), -1, 0
}

func (h *StdHead) Among(names *Names) (set uint64) {
	for name := range h.Req.Header {
		set |= names.Set(name)
	}
	if h.Req.Header["Connection"] != nil {
		set |= names.NamesFields
	}
	return set
}

func (h *StdHead) Now() time.Time { return time.Now() }

func (h *StdHead) Remote() netip.AddrPort {
	addr, err := clientaddr.ParseAddrPort(h.Req.RemoteAddr)
	if err != nil {
		return netip.AddrPort{} // a Unix socket, or a test without an address
	}
	return addr
}

// ContentLength returns the length of the body, 0 for none, -1 if unknown.
func (h *StdHead) ContentLength() int64 {
	if h.Req.Body == nil || h.Req.Body == http.NoBody {
		return 0
	}
	return h.Req.ContentLength
}

// Version returns the version of HTTP, "" for a request that was made without a version.
func (h *StdHead) Version() string {
	switch major := h.Req.ProtoMajor; major {
	case 0:
		return ""
	case 1:
		return "1." + strconv.Itoa(h.Req.ProtoMinor)
	default:
		return strconv.Itoa(major)
	}
}

// Spelling returns the path as the client sent it, if it has escapes or an empty query follows it, otherwise "".
func (h *StdHead) Spelling() string {
	path := h.Req.URL.RawPath
	if path == "" {
		path = h.Req.URL.EscapedPath()
	}
	if h.Req.URL.ForceQuery && h.Req.URL.RawQuery == "" {
		return path + "?"
	}
	if strings.IndexByte(path, '%') < 0 {
		return ""
	}
	return path
}

// Secure reports whether the request was sent over TLS.
func (h *StdHead) Secure() bool { return h.Req.TLS != nil }

// TLS returns the state of the connection's TLS handshake, nil without TLS.
func (h *StdHead) TLS() *tls.ConnectionState { return h.Req.TLS }
