package http1

// interpret evaluates a complete field line if the field affects framing, routing or the connection. For other fields it
// only compares the length and the first byte of the name.
func (h *Head) interpret(w []byte, f fieldSpan) problem {
	name := w[f.name.start:f.name.end]
	first := name[0] | 0x20
	switch len(name) {
	case len("host"):
		if first == 'h' && isWord(name, "host") {
			return h.hostField(w, f.value)
		}
	case len("expect"):
		if first == 'e' && isWord(name, "expect") {
			return h.expectField(w[f.value.start:f.value.end])
		}
	case len("upgrade"):
		if first == 'u' && isWord(name, "upgrade") {
			h.hasUpgrade = true
		}
	case len("connection"):
		if first == 'c' && isWord(name, "connection") {
			h.connectionField(w[f.value.start:f.value.end])
		}
	case len("content-length"):
		if first == 'c' && isWord(name, "content-length") {
			return h.contentLengthField(w[f.value.start:f.value.end])
		}
	case len("transfer-encoding"):
		if first == 't' && isWord(name, "transfer-encoding") {
			return h.transferEncodingField(w[f.value.start:f.value.end])
		}
	}
	return noProblem
}

// conclude sets the properties of the head that depend on several field lines.
func (h *Head) conclude() {
	if h.Minor == 0 {
		// HTTP/1.0 has neither 100 (Continue) nor Upgrade, so these fields are ignored (RFC 9110 §10.1.1 and §7.8).
		h.KeepAlive = h.connection&(optionKeepAlive|optionClose) == optionKeepAlive
		return
	}
	h.KeepAlive = h.connection&optionClose == 0
	h.Expect100 = h.expectContinue && h.HasBody()
	h.Upgrade = h.hasUpgrade && h.connection&optionUpgrade != 0
}

// contentLengthField parses Content-Length. RFC 9110 §8.6 allows a recipient to accept a repeated field or a list if all
// values are equal. This parser refuses both: ordinary clients do not send them, and attackers use them to find out which
// value each server on the path uses.
func (h *Head) contentLengthField(value []byte) problem {
	if h.Chunked {
		return lengthAndChunked
	}
	if h.ContentLength >= 0 {
		return repeatedContentLength
	}
	if len(value) == 0 {
		return badContentLength
	}
	const maxInt64 = 1<<63 - 1
	var n uint64
	overflow := false
	for _, c := range value {
		if !isDigit(c) {
			return badContentLength
		}
		d := uint64(c - '0')
		overflow = overflow || n > (maxInt64-d)/10
		n = n*10 + d
	}
	if overflow {
		return contentLengthOverflow
	}
	h.ContentLength = int64(n)
	return noProblem
}

// transferEncodingField parses Transfer-Encoding (RFC 9112 §6.1 and §6.3). Only "chunked" is accepted. Another coding, alone
// or before chunked, is refused with 501. A coding after chunked, or a malformed value, is refused with 400.
func (h *Head) transferEncodingField(value []byte) problem {
	switch {
	case h.Minor == 0:
		return codingInHTTP10
	case h.ContentLength >= 0:
		return lengthAndChunked
	case h.Chunked:
		return repeatedTransferEncoding
	case isWord(value, "chunked"):
		h.Chunked = true
		return noProblem
	}
	chunkedSeen, others := false, false
	for len(value) > 0 {
		var coding []byte
		coding, value = nextMember(value)
		if len(coding) == 0 {
			continue // RFC 9110 §5.6.1.2
		}
		if chunkedSeen || !isCoding(coding) {
			return chunkedNotFinal
		}
		if isWord(coding, "chunked") {
			chunkedSeen = true
		} else {
			others = true
		}
	}
	if others {
		return unknownCoding
	}
	return chunkedNotFinal
}

// isCoding reports whether b is the name of a transfer coding, with or without parameters. The coding chunked must not have
// parameters (RFC 9112 §7).
func isCoding(b []byte) bool {
	end := scanToken(b, 0)
	name := b[:end]
	for end < len(b) && isBlank(b[end]) {
		end++
	}
	return len(name) > 0 && (end == len(b) || b[end] == ';' && !isWord(name, "chunked"))
}

// connectionField parses the options of Connection that affect a server (RFC 9110 §7.6.1) and ignores other options.
func (h *Head) connectionField(value []byte) {
	if isWord(value, "keep-alive") { // the most common value
		h.connection |= optionKeepAlive
		return
	}
	for len(value) > 0 {
		var option []byte
		option, value = nextMember(value)
		switch {
		case isWord(option, "close"):
			h.connection |= optionClose
		case isWord(option, "keep-alive"):
			h.connection |= optionKeepAlive
		case isWord(option, "upgrade"):
			h.connection |= optionUpgrade
		case len(option) > 0:
			h.connection |= optionOther
		}
	}
}

// expectField parses Expect.
func (h *Head) expectField(value []byte) problem {
	continues, known := ReadExpect(value)
	if !known {
		return unknownExpectation
	}
	h.expectContinue = h.expectContinue || continues
	return noProblem
}

// hostField parses Host.
func (h *Head) hostField(w []byte, value span) problem {
	if h.hasHost {
		return repeatedHost
	}
	h.hasHost = true
	host := w[value.start:value.end]
	if len(host) > 0 && !validAuthority(host) {
		return badHost
	}
	if h.Form == OriginForm || h.Form == AsteriskForm {
		h.host = value
	}
	return noProblem
}

// nextMember removes the first member from a comma-separated list and returns it without surrounding white space.
func nextMember(list []byte) (member, rest []byte) {
	end := 0
	for end < len(list) && list[end] != ',' {
		end++
	}
	if end < len(list) {
		rest = list[end+1:]
	}
	start := 0
	for start < end && isBlank(list[start]) {
		start++
	}
	for end > start && isBlank(list[end-1]) {
		end--
	}
	return list[start:end], rest
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
