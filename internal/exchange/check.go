package exchange

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dunlinhttp/dunlin/internal/semantics"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// ownHeader returns the reason why only Dunlin may write the named header, or "" if other code may write it. For the headers of
// framing, a second writer could break the connection.
func ownHeader(name string) string {
	is := func(own string) bool { return strings.EqualFold(name, own) }
	switch len(name) {
	case len("Trailer"):
		if is("Trailer") {
			return "follows from how the body is sent"
		}
		if is("Upgrade") {
			return "belongs to the connection, not to the response"
		}
	case len("Connection"):
		if is("Connection") || is("Keep-Alive") {
			return "belongs to the connection, not to the response"
		}
	case len("Content-Length"):
		if is("Content-Length") {
			return "is counted from the body"
		}
	case len("Transfer-Encoding"):
		if is("Transfer-Encoding") {
			return "follows from how the body is sent"
		}
	}
	return ""
}

// CheckField returns an error if a response must not contain name and value: a name that is not a token, a value with a control
// byte (RFC 9110 section 5.5), or a header that only Dunlin writes.
func CheckField(name, value string) error {
	if err := semantics.CheckField(name, value); err != nil {
		return fmt.Errorf("response header %q: %w", name, err)
	}
	if why := ownHeader(name); why != "" {
		return fmt.Errorf("response header %q: %s", name, why)
	}
	if isDate(name) {
		if _, err := time.Parse(http.TimeFormat, TrimBlanks(value)); err != nil {
			return fmt.Errorf("response header %q: %q is not an HTTP date (RFC 9110 section 5.6.7)", name, value)
		}
	}
	return nil
}

// isDate reports whether a header is Date. An action may set Date if the content was made elsewhere.
func isDate(name string) bool { return len(name) == len("Date") && strings.EqualFold(name, "Date") }

// PlainField reports whether a response may contain name and value unchanged. It is a fast form of CheckField for common names
// and values. If it returns false, the caller must call CheckField.
func PlainField(name, value string) bool {
	return (plainName(name) || spelledPlain(name)) && plainValue(value)
}

// plainName reports whether name is one of the most common names.
func plainName(name string) bool {
	switch name {
	case "Access-Control-Allow-Origin", "Age", "Allow", "Cache-Control", "Content-Disposition", "Content-Encoding",
		"Content-Language", "Content-Type", "Deprecation", "Etag", "Expires", "Last-Modified", "Link", "Location", "Retry-After",
		"Server-Timing", "Set-Cookie", "Traceparent", "Vary", "Www-Authenticate", "X-Correlation-Id", "X-Request-Id", "X-Trace-Id":
		return true
	}
	return false
}

// spelledPlain reports whether name is canonical, and not reserved for Dunlin.
func spelledPlain(name string) bool {
	if name == "" || ownHeader(name) != "" || isDate(name) {
		return false
	}
	wrong := uint8(lowerLetter) // at the beginning of a word
	for i := 0; i < len(name); i++ {
		class := nameClass[name[i]]
		if class&wrong != 0 || class == 0 {
			return false
		}
		wrong = upperLetter
		if name[i] == '-' {
			wrong = lowerLetter
		}
	}
	return true
}

// plainValue reports whether value has no control byte, and no blank at its beginning or end. It checks eight bytes at once.
func plainValue(value string) bool {
	n := len(value)
	if n == 0 {
		return true
	}
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	var wrong uint64 // has the high bit of each invalid byte
	look := func(w uint64) {
		low := w &^ highs
		below := ^(low + (0x80-' ')*ones)     // high bit: the low seven bits are less than a blank
		above := low + ones                   // high bit: the low seven bits are 0x7f
		wrong |= (below | above) & highs &^ w // bytes from 0x80 on are valid
	}
	b := view.Bytes(value)
	if n < 8 {
		for _, c := range b {
			if c < ' ' || c == 0x7f {
				return false
			}
		}
	} else {
		look(binary.LittleEndian.Uint64(b[n-8:])) // the last eight bytes; the loop may check some of them again
		for ; len(b) > 8; b = b[8:] {
			look(binary.LittleEndian.Uint64(b))
		}
	}
	return wrong == 0 && value[0] != ' ' && value[n-1] != ' '
}

// Classes of bytes in a header name; 0 is for bytes that are not allowed in a token (RFC 9110 section 5.6.2).
const (
	lowerLetter = 1 << iota
	upperLetter
	otherInName
)

var nameClass = func() (class [256]uint8) {
	for c := 'a'; c <= 'z'; c++ {
		class[c], class[c-'a'+'A'] = lowerLetter, upperLetter
	}
	for _, c := range "0123456789!#$%&'*+-.^_`|~" {
		class[c] = otherInName
	}
	return class
}()

// TrimBlanks removes the white space around a value, which is not a part of the value (RFC 9110 section 5.5).
func TrimBlanks(value string) string {
	if n := len(value); n > 0 && (value[0] <= ' ' || value[n-1] <= ' ') {
		return strings.Trim(value, " \t")
	}
	return value
}

// BodyAllowed reports whether a response with the status may have a body
// (RFC 9110 sections 15.3.5 and 15.4.5).
func BodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// SortedKeys returns the keys of a map in ascending order.
func SortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// OfConnection reports whether a field is connection-specific, and therefore not allowed in HTTP/2 (RFC 9113 section 8.2.2).
func OfConnection(name string) bool {
	switch len(name) {
	case len("Upgrade"):
		return strings.EqualFold(name, "Upgrade")
	case len("Connection"):
		return strings.EqualFold(name, "Connection") || strings.EqualFold(name, "Keep-Alive")
	case len("Proxy-Connection"):
		return strings.EqualFold(name, "Proxy-Connection")
	case len("Transfer-Encoding"):
		return strings.EqualFold(name, "Transfer-Encoding")
	}
	return false
}
