package tlsmem

// The types of extensions (RFC 8446, section 4.2) that carry a session.
const (
	extSessionTicket = 35 // TLS 1.2: RFC 5077, section 3.2
	extPreSharedKey  = 41 // TLS 1.3
)

// AsksToResume reports whether records begin with a ClientHello that carries a session: a pre_shared_key, or a
// session_ticket that is not empty. Whether it is one of ours is not known yet.
//
// The message must be one that RFC 8446, section 4.1.2, allows, as far as lengths say, and lie in the first record, as
// all usual clients have it. Of any other it reports false. It reads each byte once at most, and allocates nothing.
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
			return len(content) > 0 && len(extensions) == 0 // it is the last one (section 4.2.11)
		case kind == extSessionTicket && len(content) > 0:
			resumes = true
		}
	}
	return resumes
}

// A field is what is left of a part of a message; nil once more was asked of it than it has.
type field []byte

// skip drops n bytes, and returns the first of them, 0 if there are not so many.
func (f *field) skip(n int) (first byte) {
	if len(*f) < n {
		*f = nil
		return 0
	}
	first, *f = (*f)[0], (*f)[n:]
	return first
}

// number takes a number of so many bytes.
func (f *field) number(size int) (n int) {
	for range size {
		n = n<<8 | int(f.skip(1))
	}
	return n
}

// vector takes what is preceded by its length in so many bytes: not nil, unless there is not as much.
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
