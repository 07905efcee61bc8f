package dunlin

import (
	"fmt"
	"io"
	"net/http"

	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// ContentLength returns the length of the body in bytes as the client
// announced it, -1 when it did not.
func (r *Request) ContentLength() int64 { return r.wire.contentLength() }

// Body returns a reader of the body. It fails with a 413 problem once more than
// Config.MaxBody bytes were read. After Bytes, it reads what Bytes returned.
func (r *Request) Body() io.Reader {
	if r.loaded {
		return &bytesReader{r.whole}
	}
	return r.wire.body(r.app.config.MaxBody)
}

// Bytes returns the whole body, borrowed: it is valid until the response has
// been sent. A body of more than Config.MaxBody bytes is a 413 problem.
func (r *Request) Bytes() ([]byte, error) { return r.bytes(r.app.config.MaxBody) }

// A bodyHolder is a wire that can hold the whole body already.
type bodyHolder interface {
	// held returns the body, borrowed until the message ends; false when it is
	// not here in whole and must be read.
	held() ([]byte, bool)
}

func (r *Request) bytes(limit int64) ([]byte, error) {
	if r.loaded {
		if int64(len(r.whole)) > limit {
			return nil, bodyTooLarge(limit)
		}
		return r.whole, nil
	}
	if r.bodyErr != nil {
		return nil, r.bodyErr // what is left of the body is not the body
	}
	if n := r.wire.contentLength(); n > limit {
		return nil, bodyTooLarge(limit)
	}
	if h, ok := r.wire.(bodyHolder); ok {
		if b, here := h.held(); here {
			r.whole, r.loaded = b, true
			return r.bytes(limit)
		}
	}
	b, err := readAll(r.payload[:0], r.wire.body(limit), r.wire.contentLength())
	r.payload = b
	if err != nil {
		r.bodyErr = bodyError(err)
		return nil, r.bodyErr
	}
	r.whole, r.loaded = b, true
	return b, nil
}

// readAll appends what src yields to b. It trusts an announced length only up
// to 64 KB before the bytes have come: a client that announces much and sends
// nothing must not cost memory.
func readAll(b []byte, src io.Reader, announced int64) ([]byte, error) {
	const trust = 64 << 10
	if want := min(announced, trust) + 1; announced >= 0 && int64(cap(b)) < want {
		b = make([]byte, 0, want)
	}
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := src.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}

// endBody ends the loan of the body.
func (r *Request) endBody() {
	invariants.EndLoan(r.payload[:cap(r.payload)])
	if cap(r.payload) > maxKept {
		r.payload = nil
	}
	r.whole, r.loaded, r.bodyErr = nil, false, nil
}

// bodyTooLarge is the problem of a body over the limit.
func bodyTooLarge(limit int64) error {
	return &ProblemDetails{
		Status: http.StatusRequestEntityTooLarge,
		Detail: fmt.Sprintf("the request body is larger than the limit of %d bytes", limit),
	}
}

// bodyError is the problem of a body that could not be read; one that is a
// problem already stays as it is.
func bodyError(err error) error {
	if statusOf(err) != http.StatusInternalServerError {
		return err
	}
	return badRequest("the request body could not be read to its end", err)
}

// bytesReader reads a borrowed slice.
type bytesReader struct{ rest []byte }

func (b *bytesReader) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}
