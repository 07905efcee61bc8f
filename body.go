package dunlin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/invariants"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// ContentLength returns the length of the request body in bytes, as announced by the client, or that of
// the decoded body after DecodeBody. It returns 0 if there is no body, and -1 for an unknown length (chunked).
func (r *Request) ContentLength() int64 {
	r.alive()
	if r.decoded() {
		return int64(len(r.s.Whole))
	}
	return r.wire.ContentLength()
}

// WithMaxBody returns a group whose routes take request bodies of at most n bytes, in place of
// Config.Limits.MaxBody. Larger bodies are answered with 413, before any of the body is read if the client
// announces its length. Standard handlers get an *http.MaxBytesError when they read beyond n. n
// must be positive; math.MaxInt64 removes the limit.
func (g *Group) WithMaxBody(n ByteSize) *Group {
	sub := g.derive()
	sub.maxBody = g.app.lowerMaxBody("WithMaxBody", n)
	return sub
}

// MaxBody sets the body limit of one route, see Group.WithMaxBody. Call it before the first request of
// the route.
func (r *Route) MaxBody(n ByteSize) *Route {
	r.shared.MaxBody = r.app.lowerMaxBody("MaxBody", n)
	return r
}

// lowerMaxBody returns n, a body limit of routes, and records the smallest limit of the app.
func (a *App) lowerMaxBody(what string, n ByteSize) int64 {
	if n <= 0 {
		panic(fmt.Sprintf("dunlin: %s(%d): it must be positive (called at %s)", what, n, callerPlace()))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.minBody.Store(min(int64(n), a.minBody.Load()))
	return int64(n)
}

// Body returns a reader of the request body. Reading fails with a 413 problem if the announced
// length or the data read exceeds the limit (Config.Limits.MaxBody, Group.WithMaxBody), with a 408 problem if
// the client sends too slowly (Config.Limits.MinBodyRate), and with a 400 problem if the body is truncated
// or malformed. A second reader, or Bytes, continues where the first reader stopped. After a call of
// Bytes, Body reads the bytes that Bytes returned.
func (r *Request) Body() io.Reader {
	r.alive()
	r.s.Viewed = true
	if r.s.Loaded {
		return &exchange.Reader{Rest: r.s.Whole}
	}
	most := r.maxBody()
	if err := r.announced(most); err != nil {
		return exchange.FailedReader{Err: err}
	}
	return exchange.While(&r.ended, r.wire.Body(most))
}

// announced returns a problem for a body whose announced length exceeds the limit.
func (r *Request) announced(limit int64) error {
	if r.wire.ContentLength() <= limit {
		return nil
	}
	r.wire.RefuseBody()
	return r.app.server.BodyTooLarge(limit)
}

// Bytes returns the whole request body. The slice is borrowed: it is valid until the response has
// been sent. The errors are those of [Request.Body], and a 503 problem if the memory budget has no
// room for the body.
func (r *Request) Bytes() ([]byte, error) {
	r.alive()
	r.s.Viewed = true
	return r.bytes(r.maxBody())
}

func (r *Request) bytes(limit int64) ([]byte, error) {
	if r.s.Loaded {
		if int64(len(r.s.Whole)) > limit {
			return nil, r.app.server.BodyTooLarge(limit)
		}
		return r.s.Whole, nil
	}
	if r.bodyErr != nil {
		return nil, r.bodyErr // a partly read body cannot be returned completely
	}
	if err := r.announced(limit); err != nil {
		return nil, err
	}
	if b, whole := r.wire.Received(); whole {
		r.s.Whole, r.s.Loaded = b, true
		return r.bytes(limit)
	}
	r.bodyErr = errBodyPartly // cleared once the body has been read to its end
	b, err := r.readAll(exchange.Gathered(r.wire.Body(limit), limit), r.wire.ContentLength())
	if err != nil {
		r.bodyErr = r.app.server.BodyUnreadable(err)
		return nil, r.bodyErr
	}
	r.s.Whole, r.s.Loaded, r.bodyErr = b, true, nil
	return b, nil
}

var errBodyPartly = errors.New("reading the request body was given up")

// readAll reads src into the payload. It charges the memory to the budget before it fills it. A large
// announced body is charged completely when its first bytes arrive, because several partly charged
// bodies would wait for each other, and a waiting request should hold little memory.
func (r *Request) readAll(src io.Reader, announced int64) ([]byte, error) {
	r.s.Payload = r.s.Payload[:0]
	want := int(min(announced, trustedBody)) + 1
	if announced > trustedBody {
		want = firstBody
	}
	if cap(r.s.Payload) > want && (announced > trustedBody || r.app.server.Budget.Tight()) {
		r.s.Payload = nil // the buffer of an earlier request, which would be charged to this request
	}
	if err := r.holdBody(cap(r.s.Payload), announced); err != nil {
		return nil, err
	}
	if announced >= 0 && cap(r.s.Payload) < want {
		if err := r.growPayload(want, announced); err != nil {
			return nil, err
		}
	}
	for {
		if b := r.s.Payload; len(b) == cap(b) {
			want := int(min(int64(max(512, 2*cap(b))-1), r.maxBody())) + 1 // one more byte detects the end
			if announced > trustedBody {
				want *= 2 // the whole body is charged; larger steps leave fewer copies to the collector
			}
			if announced >= 0 && announced <= int64(want) {
				want = max(int(announced), cap(b)) + 1 // one more byte detects the end
			}
			want = r.app.memory.Budget.MostGrown(want, len(b), announced < 0)
			if err := r.growPayload(want, announced); err != nil {
				return nil, err
			}
		}
		b := r.s.Payload
		n, err := src.Read(b[len(b):cap(b)])
		r.s.Payload = b[:len(b)+n]
		left := int64(-1)
		if announced >= 0 {
			left = max(announced-int64(len(r.s.Payload)), 0)
		}
		r.noteBody(n, left)
		if err == nil {
			continue
		}
		if err = r.bodyEnded(err); err == io.EOF {
			if more := r.bodyHeld - int64(cap(r.s.Payload)); more > 0 {
				r.account.ReleaseBody(more) // all of the body is here
				r.bodyHeld -= more
			}
			return r.s.Payload, nil
		}
		return nil, err
	}
}

// growPayload grows the payload to the given capacity.
func (r *Request) growPayload(capacity int, announced int64) error {
	if err := r.holdBody(capacity, announced); err != nil {
		return err
	}
	r.s.Payload = append(make([]byte, 0, capacity), r.s.Payload...)
	return nil
}

// endBody ends the validity of borrowed body bytes.
func (r *Request) endBody() {
	invariants.EndLoan(r.s.Payload[:cap(r.s.Payload)])
	if cap(r.s.Payload) > exchange.KeptPayload {
		r.s.Payload = nil
	}
	r.releaseBody()
	r.s.Whole, r.s.Loaded, r.bodyErr = nil, false, nil
}

// passOn detaches the payload that contains body from the request and returns it to the sender, which
// charges the capacity of the result to the budget. The garbage collector frees the payload.
func (r *Request) passOn(body string) []byte {
	from := view.Offset(body, r.s.Payload)
	b := r.s.Payload[from : from+len(body)]
	r.s.Payload, r.s.Whole = nil, nil
	r.releaseBody()
	return b
}

// DecodeBody removes the content coding of the request body (RFC 9110 section 8.4), for middleware.
// It reads the whole body through the reader that open returns. The result replaces the body for
// [Request.Bytes], Body, forms, Decode and standard handlers. The request then has no headers
// Content-Encoding and Content-Length.
//
// The limit on bodies (Config.Limits.MaxBody, Group.WithMaxBody) applies to both the encoded and the decoded
// body. Both count in the memory budget while the request holds them. The errors are those of Bytes,
// and a 400 problem if open or its reader fails with an error that is not a problem. An empty body is
// not decoded.
func (r *Request) DecodeBody(open func(io.Reader) (io.Reader, error)) error {
	encoded, err := r.Bytes()
	if err == nil && len(encoded) > 0 {
		before := cap(r.s.Payload)
		var src io.Reader
		var plain []byte
		if src, err = open(bytes.NewReader(encoded)); err != nil {
			err = r.app.server.NotDecoded(err)
		} else {
			plain, err = r.app.server.Decode(src, r.maxBody(), func(capacity int) error { return r.holdBody(before+capacity, -1) })
		}
		r.s.Payload, r.s.Whole, r.s.Loaded, r.bodyErr = plain, plain, err == nil, err
	}
	if err != nil {
		return err
	}
	r.more().decoded = true
	return nil
}

// decoded reports whether DecodeBody has decoded the body.
func (r *Request) decoded() bool { return r.uncommon != nil && r.uncommon.decoded }

// stdRequest returns the request of the wire, with the decoded body if there is one.
func (r *Request) stdRequest() *http.Request {
	if r.decoded() {
		return exchange.WithBody(r.wire.StdRequest(), r.s.Whole)
	}
	return r.wire.StdRequest()
}
