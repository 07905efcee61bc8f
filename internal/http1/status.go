package http1

import "strings"

// firstStatus is the code of the first entry of statusLines.
const firstStatus = 100

// reasons has the reason phrases of the registered status codes. The phrases are those of net/http, so that both engines send the same
// bytes. Clients ignore reason phrases (RFC 9112 §4).
var reasons = [512]string{
	100: "Continue",
	101: "Switching Protocols",
	102: "Processing",
	103: "Early Hints",

	200: "OK",
	201: "Created",
	202: "Accepted",
	203: "Non-Authoritative Information",
	204: "No Content",
	205: "Reset Content",
	206: "Partial Content",
	207: "Multi-Status",
	208: "Already Reported",
	226: "IM Used",

	300: "Multiple Choices",
	301: "Moved Permanently",
	302: "Found",
	303: "See Other",
	304: "Not Modified",
	305: "Use Proxy",
	307: "Temporary Redirect",
	308: "Permanent Redirect",

	400: "Bad Request",
	401: "Unauthorized",
	402: "Payment Required",
	403: "Forbidden",
	404: "Not Found",
	405: "Method Not Allowed",
	406: "Not Acceptable",
	407: "Proxy Authentication Required",
	408: "Request Timeout",
	409: "Conflict",
	410: "Gone",
	411: "Length Required",
	412: "Precondition Failed",
	413: "Request Entity Too Large",
	414: "Request URI Too Long",
	415: "Unsupported Media Type",
	416: "Requested Range Not Satisfiable",
	417: "Expectation Failed",
	418: "I'm a teapot",
	421: "Misdirected Request",
	422: "Unprocessable Entity",
	423: "Locked",
	424: "Failed Dependency",
	425: "Too Early",
	426: "Upgrade Required",
	428: "Precondition Required",
	429: "Too Many Requests",
	431: "Request Header Fields Too Large",
	451: "Unavailable For Legal Reasons",

	500: "Internal Server Error",
	501: "Not Implemented",
	502: "Bad Gateway",
	503: "Service Unavailable",
	504: "Gateway Timeout",
	505: "HTTP Version Not Supported",
	506: "Variant Also Negotiates",
	507: "Insufficient Storage",
	508: "Loop Detected",
	510: "Not Extended",
	511: "Network Authentication Required",
}

// statusLines has the status lines of the registered codes. Its index is code - firstStatus. The line of an unregistered code is
// empty.
var statusLines [len(reasons) - firstStatus]string

// init fills these package variables. As results of a function they would need 32 KB of stack, for which the runtime would have to
// copy the stack of the first goroutine.
func init() {
	var text strings.Builder // one string for all lines, because init runs at every program start
	text.Grow(2 << 10)
	for code, reason := range &reasons {
		if reason == "" {
			continue
		}
		start := text.Len()
		text.WriteString("HTTP/1.1 ")
		text.Write(threeDigits(code))
		text.WriteByte(' ')
		text.WriteString(reason)
		text.WriteString(CRLF)
		statusLines[code-firstStatus] = text.String()[start:]
	}
}

// appendOtherStatusLine appends the status line of an unregistered code, with the code as the reason phrase, as in net/http.
func appendOtherStatusLine(dst []byte, code int) []byte {
	if code < 100 || code > 999 {
		panic("http1: status code must have three digits")
	}
	digits := threeDigits(code)
	dst = append(dst, "HTTP/1.1 "...)
	dst = append(dst, digits...)
	dst = append(dst, " status code "...)
	dst = append(dst, digits...)
	return append(dst, CRLF...)
}

func threeDigits(code int) []byte {
	return []byte{byte('0' + code/100), byte('0' + code/10%10), byte('0' + code%10)}
}
