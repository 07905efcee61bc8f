package semantics

import "strings"

// Reference returns text as a URI reference (RFC 3986): bytes that none can contain are percent-encoded, also a percent sign
// that two hexadecimal digits do not follow. Control characters stay, since no field value may contain them.
func Reference(text string) string {
	var b strings.Builder
	from := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '%' && i+2 < len(text) && isHex(text[i+1]) && isHex(text[i+2]):
		case c == '%' || c >= 0x80 || strings.IndexByte(" \"<>\\^`{|}", c) >= 0:
			const digits = "0123456789ABCDEF"
			b.WriteString(text[from:i])
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
			from = i + 1
		}
	}
	if from == 0 {
		return text
	}
	return b.String() + text[from:]
}
