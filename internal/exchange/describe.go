package exchange

import (
	"fmt"
	"strings"
)

// AboutContent has the headers that describe the intended content of a response. If the response becomes a failure, it does not
// keep them: a problem must not be read as CSV, or be cached with the lifetime of the intended content.
var AboutContent = map[string]bool{
	"Accept-Ranges": true, "Cache-Control": true, "Content-Disposition": true, "Content-Encoding": true,
	"Content-Language": true, "Content-Location": true, "Content-Range": true, "Content-Type": true,
	"Etag": true, "Expires": true, "Last-Modified": true, "Location": true,
}

// First returns the first value of the named header, or "".
func (r *Answer) First(name string) string {
	if r.Lacks(name) {
		return ""
	}
	for n, v := range r.Headers {
		if strings.EqualFold(n, name) {
			return v
		}
	}
	return ""
}

// All returns all values of the named header.
func (r *Answer) All(name string) []string {
	var all []string
	for n, v := range r.Headers {
		if strings.EqualFold(n, name) {
			all = append(all, v)
		}
	}
	return all
}

// Varies reports whether Vary contains the name of a request header, or an asterisk (RFC 9110 section 12.5.5).
func (r *Answer) Varies(name string) bool {
	for _, line := range r.All("Vary") {
		for element := range strings.SplitSeq(line, ",") {
			if element = strings.TrimSpace(element); element == "*" || strings.EqualFold(element, name) {
				return true
			}
		}
	}
	return false
}

// Describe describes the answer for logs and debuggers: status, media type and length. err is the cause of a failure, or nil.
func (r *Answer) Describe(err error) string {
	if r.Kind() == Missing {
		return "no response"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d", r.Status())
	if ct := r.First("Content-Type"); ct != "" {
		b.WriteString(" " + ct)
	}
	switch r.Kind() {
	case Later:
		b.WriteString(" stream")
	case Sent:
		b.WriteString(" sent")
	default:
		fmt.Fprintf(&b, " %d bytes", len(r.Body))
	}
	if err != nil {
		fmt.Fprintf(&b, " (%v)", err)
	}
	return b.String()
}
