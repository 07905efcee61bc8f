package http1

// validAuthority reports whether b is uri-host [ ":" port ] (RFC 9110 §7.2, RFC 3986 §3.2.2) with a non-empty host. A port may be empty
// and is at most 65535.
func validAuthority(b []byte) bool {
	if len(b) > 0 && b[0] == '[' {
		return validLiteral(b)
	}
	end := scanHost(b)
	if end == 0 || end < len(b) && b[end] == '%' {
		end = scanEscapedHost(b)
	}
	return end > 0 && validPort(b[end:])
}

// scanHost returns the index of the first byte of b that is not allowed in a registered name, or len(b).
func scanHost(b []byte) int {
	rest := b
	for len(rest) >= 4 && class[rest[0]]&class[rest[1]]&class[rest[2]]&class[rest[3]]&isHost != 0 {
		rest = rest[4:]
	}
	for len(rest) > 0 && class[rest[0]]&isHost != 0 {
		rest = rest[1:]
	}
	return len(b) - len(rest)
}

// scanEscapedHost returns the length of the registered name with percent escapes at the start of b, or 0 if an escape is malformed.
func scanEscapedHost(b []byte) int {
	i := 0
	for i < len(b) {
		switch {
		case class[b[i]]&isHost != 0:
			i++
		case b[i] != '%':
			return i
		case i+2 < len(b) && class[b[i+1]]&class[b[i+2]]&isHex != 0:
			i += 3
		default:
			return 0
		}
	}
	return i
}

// validPort reports whether b is empty, or a colon and a port.
func validPort(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if b[0] != ':' || len(b) > len(":65535") {
		return false
	}
	port := 0
	for _, c := range b[1:] {
		if !isDigit(c) {
			return false
		}
		port = port*10 + int(c-'0')
	}
	return port <= 65535
}

// portStart returns the index of the first byte of the port in a valid authority, or -1 if there is no colon before a port.
func portStart(authority []byte) int {
	for i := len(authority); i > 0 && authority[i-1] != ']'; i-- {
		if authority[i-1] == ':' {
			return i
		}
	}
	return -1
}

// validLiteral reports whether b is an IPv6 address in brackets, with an optional port. IPvFuture addresses are refused because clients
// do not send them. Zone identifiers are refused because they have no meaning on another host (RFC 6874 §4).
func validLiteral(b []byte) bool {
	end := 1
	for end < len(b) && b[end] != ']' {
		end++
	}
	return end < len(b) && validIPv6(b[1:end]) && validPort(b[end+1:])
}

// validIPv6 reports whether b is an IPv6 address (RFC 3986 §3.2.2): eight groups of up to four hex digits, or fewer groups and one
// "::". An IPv4 address may replace the last two groups.
func validIPv6(b []byte) bool {
	parts, elided := 0, false
	i := 0
	if len(b) >= 2 && b[0] == ':' && b[1] == ':' {
		elided = true
		i = 2
	}
	for i < len(b) {
		start := i
		for i < len(b) && class[b[i]]&isHex != 0 {
			i++
		}
		if i < len(b) && b[i] == '.' {
			parts += 2
			return validIPv4(b[start:]) && (parts == 8 || elided && parts < 8)
		}
		if i == start || i-start > 4 {
			return false
		}
		parts++
		if i == len(b) {
			break
		}
		if b[i] != ':' || i+1 == len(b) {
			return false
		}
		i++
		if b[i] == ':' {
			if elided {
				return false
			}
			elided = true
			i++
		}
	}
	return parts == 8 || elided && parts < 8
}

// validIPv4 reports whether b is four numbers up to 255 without leading zeros.
func validIPv4(b []byte) bool {
	dots, number, digits := 0, 0, 0
	for _, c := range b {
		switch {
		case c == '.' && digits > 0 && dots < 3:
			dots++
			number, digits = 0, 0
		case isDigit(c) && !(digits > 0 && number == 0):
			number = number*10 + int(c-'0')
			digits++
			if number > 255 {
				return false
			}
		default:
			return false
		}
	}
	return dots == 3 && digits > 0
}
