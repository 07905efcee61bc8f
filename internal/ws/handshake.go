package ws

import (
	"crypto/sha1"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
)

// keyLength is the length of a decoded Sec-WebSocket-Key, in bytes.
const keyLength = 16

// ValidKey reports whether key is a valid Sec-WebSocket-Key: 16 bytes in base64 (RFC 6455, section 4.2.1).
func ValidKey(key string) bool {
	var decoded [keyLength + 2]byte
	if len(key) != base64.StdEncoding.EncodedLen(keyLength) {
		return false
	}
	n, err := base64.StdEncoding.Decode(decoded[:], []byte(key))
	return err == nil && n == keyLength
}

// AcceptKey returns the value of Sec-WebSocket-Accept for a Sec-WebSocket-Key.
func AcceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// HasToken reports whether list, the value of a header field, contains the token. Case is ignored.
func HasToken(list, token string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.Trim(one, " \t"), token) {
			return true
		}
	}
	return false
}

// Subprotocol returns the index in supported of the first subprotocol in offered that the server supports, or -1. The
// client lists subprotocols in the order of its preference.
func Subprotocol(offered string, supported []string) int {
	for one := range strings.SplitSeq(offered, ",") {
		one = strings.Trim(one, " \t")
		for i, s := range supported {
			if s == one {
				return i
			}
		}
	}
	return -1
}

// A Deflate is the result of the negotiation of permessage-deflate (RFC 7692). Neither side keeps its window between
// messages.
type Deflate struct {
	On     bool
	Window uint8 // the window of the server is 1<<Window bytes
	asked  bool  // the client has asked for this window
}

const (
	minWindow = 8
	// MostWindow is the base-2 logarithm of the largest window, which has 32 KiB.
	MostWindow = 15
)

// NegotiateDeflate returns the parameters that the server accepts. offers is the value of the client's
// Sec-WebSocket-Extensions. The first valid offer of permessage-deflate is accepted. Without such an offer, On is false.
func NegotiateDeflate(offers string) Deflate {
	for offer := range strings.SplitSeq(offers, ",") {
		params := strings.Split(offer, ";")
		if strings.Trim(params[0], " \t") != "permessage-deflate" {
			continue
		}
		if d, ok := parseOffer(params[1:]); ok {
			return d
		}
	}
	return Deflate{}
}

// parseOffer parses the parameters of an offer. An unknown, repeated or invalid parameter makes the offer invalid.
func parseOffer(params []string) (d Deflate, ok bool) {
	d = Deflate{On: true, Window: MostWindow}
	seen := map[string]bool{}
	for _, param := range params {
		name, value, valued := strings.Cut(strings.Trim(param, " \t"), "=")
		name, value = strings.TrimRight(name, " \t"), strings.TrimLeft(value, " \t")
		if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
			value = value[1 : len(value)-1]
		}
		if seen[name] {
			return Deflate{}, false
		}
		seen[name] = true
		switch name {
		case "server_no_context_takeover", "client_no_context_takeover":
			if valued {
				return Deflate{}, false
			}
		case "client_max_window_bits": // the server accepts any window of the client
			if _, ok := windowBits(value); valued && !ok {
				return Deflate{}, false
			}
		case "server_max_window_bits":
			bits, ok := windowBits(value)
			if !ok {
				return Deflate{}, false
			}
			d.Window, d.asked = bits, true
		default:
			return Deflate{}, false
		}
	}
	return d, true
}

func windowBits(value string) (uint8, bool) {
	n, err := strconv.ParseUint(value, 10, 8)
	return uint8(n), err == nil && minWindow <= n && n <= MostWindow && value[0] != '0'
}

// Field returns the value of the server's Sec-WebSocket-Extensions, or "" without compression.
func (d Deflate) Field() string {
	switch {
	case !d.On:
		return ""
	case d.asked:
		return "permessage-deflate; server_no_context_takeover; client_no_context_takeover; server_max_window_bits=" + strconv.Itoa(int(d.Window))
	}
	return "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
}

// AllowsOrigin reports whether a page of an origin may open a connection to the host: it is the origin of the host, or one of allowed, of
// which "*" stands for all. Requests without Origin are allowed.
func AllowsOrigin(allowed []string, origin, host string) bool {
	if origin == "" {
		return true
	}
	for _, a := range allowed {
		if a == "*" || strings.EqualFold(a, origin) {
			return true
		}
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}
