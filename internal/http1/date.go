package http1

import "time"

// dateFormat is IMF-fixdate (RFC 9110 §5.6.7), which is always in GMT.
const dateFormat = "Mon, 02 Jan 2006 15:04:05 GMT"

const (
	dateLineLength  = dateStart + len(dateFormat) + len("\r\n")
	dateStart       = len("Date: ")
	dateValueLength = len(dateFormat)
)

// DateCache formats the Date field once per second. The zero value is ready for use. It has neither a clock nor a lock: only one
// goroutine may use it, and passes the time to it.
type DateCache struct {
	filled bool
	second int64
	line   [dateLineLength]byte
}

// Append appends the date without the field name, which is 29 bytes long. unixSeconds is the time in seconds since 1970.
func (d *DateCache) Append(dst []byte, unixSeconds int64) []byte {
	if !d.filled || d.second != unixSeconds {
		d.render(unixSeconds)
	}
	return append(dst, d.line[dateStart:dateStart+dateValueLength]...)
}

// AppendField appends the whole field line, from "Date: " to CRLF.
func (d *DateCache) AppendField(dst []byte, unixSeconds int64) []byte {
	if !d.filled || d.second != unixSeconds {
		d.render(unixSeconds)
	}
	return append(dst, d.line[:]...)
}

// render formats the field line. IMF-fixdate ends with the year 9999. Later times are replaced by the last second of that year, and
// times before 1970 by 1970.
func (d *DateCache) render(unixSeconds int64) {
	const last = 253402300799 // 9999-12-31T23:59:59Z
	at := time.Unix(min(max(unixSeconds, 0), last), 0).UTC()
	line := append(d.line[:0], "Date: "...)
	line = at.AppendFormat(line, dateFormat)
	_ = append(line, "\r\n"...)
	d.filled = true
	d.second = unixSeconds
}

// An Opening formats the beginning of an answer: the status line and the Date field. It keeps the result, because most consecutive
// answers have the same status and second. The zero value is ready for use. Only one goroutine may use it.
type Opening struct {
	Date   DateCache
	status int
	second int64
	length int
	text   [longestStatusLine + dateLineLength]byte
}

// longestStatusLine is the length of the status line of 431, which has the longest reason phrase.
const longestStatusLine = len("HTTP/1.1 431 Request Header Fields Too Large\r\n")

// Append appends the status line of HTTP/1.1 and the Date field, for a time in seconds since 1970.
func (o *Opening) Append(dst []byte, status int, unixSeconds int64) []byte {
	if o.status != status || o.second != unixSeconds {
		o.render(status, unixSeconds)
	}
	return append(dst, o.text[:o.length]...)
}

func (o *Opening) render(status int, unixSeconds int64) {
	o.length = len(o.Date.AppendField(AppendStatusLine(o.text[:0], status), unixSeconds))
	o.status, o.second = status, unixSeconds
}
