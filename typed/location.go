package typed

import (
	"fmt"
	"strings"
)

// locationOf returns text as a URI reference (RFC 3986). It percent-encodes the bytes that a URI cannot contain, and each
// percent sign that is not followed by two hexadecimal digits. It returns an error if text contains a control character.
func locationOf(text string) (string, error) {
	var b strings.Builder
	from := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ' || c == 0x7f:
			return "", fmt.Errorf("typed: Location %.200q has a control character", text)
		case c == '%' && i+2 < len(text) && isHex(text[i+1]) && isHex(text[i+2]):
		case c == '%' || c >= 0x80 || strings.IndexByte(" \"<>\\^`{|}", c) >= 0:
			fmt.Fprintf(&b, "%s%%%02X", text[from:i], c)
			from = i + 1
		}
	}
	if from == 0 {
		return text, nil
	}
	return b.String() + text[from:], nil
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }
