package http1

import "github.com/dunlinhttp/dunlin/internal/semantics"

// The following functions write the parts of a response head: the status line, the field lines, and CRLF. Each function appends to
// dst and returns the extended slice, without allocation if dst has room. The functions do not check their arguments, see
// semantics.CheckField.

// AppendStatusLine appends the status line of HTTP/1.1 for a code from 100 to 999. It panics for other codes, because HTTP/1.1 does
// not allow them.
func AppendStatusLine(dst []byte, code int) []byte {
	if i := uint(code - firstStatus); i < uint(len(statusLines)) && statusLines[i] != "" {
		return append(dst, statusLines[i]...)
	}
	return appendOtherStatusLine(dst, code)
}

// AppendStatusLine10 is AppendStatusLine for a client that uses HTTP/1.0.
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

// AppendLastLength appends Content-Length as the last field of a head, for n ≥ 0 bytes, and the end of the head.
func AppendLastLength(dst []byte, n int) []byte {
	dst = append(dst, "Content-Length: "...)
	dst = appendDecimal(dst, uint64(n))
	return append(dst, CRLF+CRLF...)
}

// These are field lines and a response that servers write themselves.
const (
	// ConnectionClose tells the client that the server closes the connection after this response.
	ConnectionClose = "Connection: close\r\n"

	// ConnectionKeepAlive tells an HTTP/1.0 client that the connection remains open.
	ConnectionKeepAlive = "Connection: keep-alive\r\n"

	// TransferEncodingChunked announces a chunked body. It must be sent only to HTTP/1.1 clients.
	TransferEncodingChunked = "Transfer-Encoding: chunked\r\n"

	// Continue is the interim response that asks the client to send the body.
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

// BodyAllowed reports whether a response with the given status to a request with the given method has a body (RFC 9112 §6.3). A
// response to HEAD and a response with status 1xx, 204 or 304 ends with its head, whatever its Content-Length. A 2xx response to
// CONNECT also ends with its head, because it opens a tunnel.
func BodyAllowed(method semantics.Method, status int) bool {
	return method != semantics.MethodHead && status != 304 && LengthAllowed(method, status)
}

// LengthAllowed reports whether a response with the given status to a request with the given method may have Content-Length or
// Transfer-Encoding. Responses with status 1xx or 204 and 2xx responses to CONNECT must not have them (RFC 9110 §8.6, RFC 9112
// §6.1). Responses to HEAD and responses with status 304 may have them, to describe the omitted body.
func LengthAllowed(method semantics.Method, status int) bool {
	if status < 200 || status == 204 {
		return false
	}
	return method != semantics.MethodConnect || status >= 300
}
