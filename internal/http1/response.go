package http1

import "github.com/dunlinhttp/dunlin/internal/semantics"

// Functions that write a response head: a status line, field lines, CRLF. Each appends to dst and returns it, without
// allocation if dst has room. They do not check their arguments, see [CheckField].

// AppendStatusLine appends the status line of HTTP/1.1 for a code from 100 to 999. It panics for other codes, which are not valid in
// HTTP/1.1.
func AppendStatusLine(dst []byte, code int) []byte {
	if i := uint(code - firstStatus); i < uint(len(statusLines)) && statusLines[i] != "" {
		return append(dst, statusLines[i]...)
	}
	return appendOtherStatusLine(dst, code)
}

// AppendStatusLine10 is AppendStatusLine for a client that speaks HTTP/1.0.
func AppendStatusLine10(dst []byte, code int) []byte {
	start := len(dst)
	dst = AppendStatusLine(dst, code)
	dst[start+len("HTTP/1.")] = '0'
	return dst
}

// AppendField appends a field line.
func AppendField(dst []byte, name, value string) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, CRLF...)
}

// AppendContentLength appends a Content-Length field line for n ≥ 0 bytes.
func AppendContentLength(dst []byte, n int64) []byte {
	dst = append(dst, "Content-Length: "...)
	dst = appendDecimal(dst, uint64(n))
	return append(dst, CRLF...)
}

// AppendLastLength appends the end of a head whose last field is Content-Length, for n ≥ 0 bytes.
func AppendLastLength(dst []byte, n int) []byte {
	dst = append(dst, "Content-Length: "...)
	dst = appendDecimal(dst, uint64(n))
	return append(dst, CRLF+CRLF...)
}

// Field lines that a server adds itself.
const (
	// ConnectionClose announces that the connection closes after this response.
	ConnectionClose = "Connection: close\r\n"

	// ConnectionKeepAlive tells an HTTP/1.0 client that the connection stays open.
	ConnectionKeepAlive = "Connection: keep-alive\r\n"

	// TransferEncodingChunked announces a chunked body. Only for HTTP/1.1.
	TransferEncodingChunked = "Transfer-Encoding: chunked\r\n"

	// Continue is the interim response that asks the client for the body.
	Continue = "HTTP/1.1 100 Continue\r\n\r\n"
)

// appendDecimal appends n in decimal.
func appendDecimal(dst []byte, n uint64) []byte {
	if n < 10 {
		return append(dst, byte('0'+n))
	}
	if n < 100 {
		return append(dst, byte('0'+n/10), byte('0'+n%10))
	}
	var digits [20]byte
	i := len(digits)
	for n > 0 {
		i--
		digits[i] = byte('0' + n%10)
		n /= 10
	}
	return append(dst, digits[i:]...)
}

// BodyAllowed reports whether a response with this status to a request with this method has a body (RFC 9112 §6.3). Responses
// to HEAD, and 1xx, 204 and 304, end with the head regardless of Content-Length, and so does a 2xx to CONNECT, which opens a
// tunnel.
func BodyAllowed(method semantics.Method, status int) bool {
	return method != semantics.MethodHead && status != 304 && LengthAllowed(method, status)
}

// LengthAllowed reports whether such a response may have Content-Length or Transfer-Encoding: not with 1xx, 204, or a 2xx to
// CONNECT (RFC 9110 §8.6, RFC 9112 §6.1). Responses to HEAD and 304 may, to describe the omitted body.
func LengthAllowed(method semantics.Method, status int) bool {
	if status < 200 || status == 204 {
		return false
	}
	return method != semantics.MethodConnect || status >= 300
}
