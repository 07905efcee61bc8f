package tlsmem

// Extension types (RFC 8446, section 4.2) that carry a session.
const (
	extSessionTicket = 35 // TLS 1.2: RFC 5077, section 3.2
	extPreSharedKey  = 41 // TLS 1.3
)

// AsksToResume reports whether records begin with a ClientHello that carries a session: a
// pre_shared_key, or a session_ticket that is not empty. It does not check whether the server
// issued the session.
//
// The lengths in the message must be valid according to RFC 8446, section 4.1.2, and the message
// must be complete in the first record, as with all common clients. Otherwise AsksToResume reports
// false. It reads each byte at most once, and does not allocate.
func AsksToResume(records []byte) bool {
	b := field(records)
	if len(records) < headerLen || records[0] != typeHandshake {
		return false
	}
	b.skip(3)
	record := b.vector(2)
	if record.skip(1) != typeClientHello {
		return false
	}
	hello := record.vector(3)
	hello.skip(2 + 32) // version, random
	session := hello.vector(1)
	suites := hello.vector(2)
	methods := hello.vector(1)
	extensions := hello.vector(2)
	if hello == nil || len(hello) > 0 || len(session) > 32 || len(suites) < 2 || len(suites)%2 != 0 || len(methods) < 1 {
		return false
	}
	resumes := false
	for len(extensions) > 0 {
		kind := extensions.number(2)
		content := extensions.vector(2)
		switch {
		case content == nil:
			return false
		case kind == extPreSharedKey:
			return len(content) > 0 && len(extensions) == 0 // pre_shared_key must be the last extension (section 4.2.11)
		case kind == extSessionTicket && len(content) > 0:
			resumes = true
		}
	}
	return resumes
}

// A field is the unread rest of a part of a message. It becomes nil when a read exceeds it.
type field []byte

// skip drops n bytes and returns the first of them, or 0 if the field is shorter.
func (f *field) skip(n int) (first byte) {
	if len(*f) < n {
		*f = nil
		return 0
	}
	first, *f = (*f)[0], (*f)[n:]
	return first
}

// number reads a number of size bytes.
func (f *field) number(size int) (n int) {
	for range size {
		n = n<<8 | int(f.skip(1))
	}
	return n
}

// vector reads a vector with a length prefix of size bytes. It returns nil only if the field is
// shorter.
func (f *field) vector(size int) field {
	n := f.number(size)
	if *f == nil || len(*f) < n {
		*f = nil
		return nil
	}
	v := (*f)[:n:n]
	*f = (*f)[n:]
	return v
}
