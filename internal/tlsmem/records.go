package tlsmem

// This file handles the framing of records, not their content (RFC 8446, section 5.1).

const (
	headerLen = 5

	// MaxRecord is the maximum length of a record that crypto/tls accepts, with its header, in
	// bytes. In TLS 1.2 a record may be 2 KB longer than its plaintext.
	MaxRecord = headerLen + maxCiphertext

	maxCiphertext = MaxPlaintext + 2048

	// MaxPlaintext is the maximum number of bytes that a record carries.
	MaxPlaintext = 1 << 14

	typeHandshake   = 22
	typeSSL2        = 0x80 // not a record type: first byte of the length in the first message of SSL 2
	typeClientHello = 1
	maxHello        = 1 << 16 // crypto/tls refuses a longer ClientHello
)

// Whole returns the total length of the complete records at the beginning of b. Bytes that cannot be a record count as complete,
// since crypto/tls refuses them by their header, without waiting for more bytes.
func Whole(b []byte) int {
	n, _ := Records(b)
	return n
}

// InHandshake is like [Whole], for records during a handshake. Then crypto/tls refuses the greeting
// of SSL 2 by its header.
func InHandshake(b []byte) int {
	if len(b) >= headerLen && b[0] == typeSSL2 {
		return len(b)
	}
	return Whole(b)
}

// Records is like [Whole], and also returns the number of records.
func Records(b []byte) (n, count int) {
	for len(b)-n >= headerLen {
		length := recordLen(b[n:])
		if length < 0 {
			return len(b), count + 1
		}
		if len(b)-n < length {
			break
		}
		n += length
		count++
	}
	return n, count
}

// First is like [Whole], for the first record only.
func First(b []byte) int {
	if len(b) < headerLen {
		return 0
	}
	switch length := recordLen(b); {
	case length < 0:
		return len(b)
	case length <= len(b):
		return length
	}
	return 0
}

// Missing returns the number of bytes that b, the beginning of a record, lacks: the rest of the
// header if that is incomplete, else the rest of the record.
func Missing(b []byte) int {
	if len(b) < headerLen {
		return headerLen - len(b)
	}
	return max(recordLen(b)-len(b), 0)
}

// recordLen returns the length of the record whose header is at the beginning of b, or -1 if the
// header is invalid.
func recordLen(b []byte) int {
	n := int(b[3])<<8 | int(b[4])
	if b[1] != 3 || n > maxCiphertext {
		return -1
	}
	return headerLen + n
}

// A Greeting is the kind of the first bytes from a client.
type Greeting uint8

const (
	Incomplete Greeting = iota // the beginning of a ClientHello, or nothing
	Complete                   // a ClientHello, or bytes that crypto/tls refuses at once
	NotTLS                     // a request in clear text
)

// Greet classifies the bytes that a client has sent so far. b may be empty.
func Greet(b []byte) Greeting {
	switch {
	case len(b) == 0:
		return Incomplete
	case b[0] != typeHandshake:
		if isText(b) {
			return NotTLS
		}
		return Complete
	}
	// The message may be spread over several records. need is its length, once that is known.
	have, need := 0, 4
	var start [4]byte
	for len(b) >= headerLen {
		length := recordLen(b)
		if length <= headerLen || b[0] != typeHandshake {
			return Complete
		}
		part := b[headerLen:min(length, len(b))]
		if have < len(start) {
			copy(start[have:], part)
		}
		if have += len(part); have > 0 && start[0] != typeClientHello {
			return Complete
		}
		if have >= len(start) {
			if need = 4 + (int(start[1])<<16 | int(start[2])<<8 | int(start[3])); need > maxHello {
				return Complete
			}
		}
		if len(b) < length {
			return Incomplete // crypto/tls reads complete records only
		}
		if have >= need {
			return Complete
		}
		b = b[length:]
	}
	return Incomplete
}

// isText reports whether b begins like an HTTP request: with the letters of a method.
func isText(b []byte) bool {
	for _, ch := range b[:min(len(b), 3)] {
		if ch < 'A' || ch > 'Z' {
			return false
		}
	}
	return true
}
