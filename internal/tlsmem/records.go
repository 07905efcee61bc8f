package tlsmem

// The record layer as it is seen from outside: where records begin and end, nothing of
// what they mean (RFC 8446, section 5.1).

const (
	headerLen = 5

	// MaxRecord is the longest record in bytes that crypto/tls takes, with its header: in
	// TLS 1.2 a record may be 2 KB longer than what it carries.
	MaxRecord = headerLen + maxCiphertext

	maxCiphertext = MaxPlaintext + 2048

	// MaxPlaintext is how many bytes a record carries at most.
	MaxPlaintext = 1 << 14

	typeHandshake   = 22
	typeSSL2        = 0x80 // no type of a record: the length of SSL 2's first message begins so
	typeClientHello = 1
	maxHello        = 1 << 16 // crypto/tls refuses longer ones
)

// Whole returns the length of the whole records at the beginning of b. What cannot be a
// record counts as whole: crypto/tls refuses it by its header, and need not wait for the
// rest.
func Whole(b []byte) int {
	n, _ := Records(b)
	return n
}

// InHandshake is [Whole] for records of a handshake, in which crypto/tls refuses the greeting of SSL 2 by its header.
func InHandshake(b []byte) int {
	if len(b) >= headerLen && b[0] == typeSSL2 {
		return len(b)
	}
	return Whole(b)
}

// Records is [Whole] that also counts the records.
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

// First is [Whole] for the first record alone.
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

// Missing returns how many bytes b, the beginning of a record, lacks as far as can be
// said: those of its header, or of all of it.
func Missing(b []byte) int {
	if len(b) < headerLen {
		return headerLen - len(b)
	}
	return max(recordLen(b)-len(b), 0)
}

// recordLen returns the length of the record whose header is at the beginning of b, or -1
// if it is none.
func recordLen(b []byte) int {
	n := int(b[3])<<8 | int(b[4])
	if b[1] != 3 || n > maxCiphertext {
		return -1
	}
	return headerLen + n
}

// What a client has sent first.
type Greeting uint8

const (
	Incomplete Greeting = iota // the beginning of a ClientHello
	Complete                   // a ClientHello, or what crypto/tls refuses without more
	NotTLS                     // a request in clear text
)

// Greet looks at what a client has sent so far, be it nothing.
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
	// The message may be spread over records; need is its length once it is known.
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
			return Incomplete // crypto/tls takes whole records only
		}
		if have >= need {
			return Complete
		}
		b = b[length:]
	}
	return Incomplete
}

// isText reports whether b begins as the requests of HTTP do: with the letters of a method.
func isText(b []byte) bool {
	for _, ch := range b[:min(len(b), 3)] {
		if ch < 'A' || ch > 'Z' {
			return false
		}
	}
	return true
}
