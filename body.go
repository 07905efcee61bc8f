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

// ContentLength returns the length of the body in bytes as the client announced it:
// 0 when there is none, -1 when it comes without a length (chunked).
func (r *Request) ContentLength() int64 {
	r.alive()
	if r.decoded() {
		return int64(len(r.s.Whole))
	}
	return r.wire.ContentLength()
}

// MaxBody returns a group whose routes take request bodies of up to n bytes, in place of Config.MaxBody; more is answered
// with 413, before anything is read where the client announces the length. It also limits what standard handlers read, with
// an *http.MaxBytesError. n must be positive; math.MaxInt64 stands for no bound.
func (g *Group) MaxBody(n int64) *Group {
	sub := g.set("MaxBody")
	sub.maxBody = g.app.lowerMaxBody(n)
	return sub
}

// MaxBody sets the limit of one route, see Group.MaxBody. It belongs before the
// route's first request.
func (r *Route) MaxBody(n int64) *Route {
	r.shared.MaxBody = r.app.lowerMaxBody(n)
	return r
}

// lowerMaxBody returns n, the MaxBody of some routes, and keeps the least of all.
func (a *App) lowerMaxBody(n int64) int64 {
	if n <= 0 {
		panic(fmt.Sprintf("dunlin: MaxBody(%d): it must be positive (called at %s)", n, callerPlace()))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leastBody.Store(min(n, a.leastBody.Load()))
	return n
}

// Body returns a reader of the body. It fails with a 413 problem where more than the limit (Config.MaxBody, Group.MaxBody)
// was announced, or was read, with a 408 problem when the body comes too slowly (Config.MinBodyRate), and with a 400 problem
// when it is cut short or malformed. Another reader, and Bytes, go on where it was left; after Bytes, it reads what Bytes returned.
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

// announced returns the problem of a body that is announced to be longer than
// MaxBody, and has it refused.
func (r *Request) announced(most int64) error {
	if r.wire.ContentLength() <= most {
		return nil
	}
	r.wire.RefuseBody()
	return r.app.server.BodyTooLarge(most)
}

// Bytes returns the whole body, borrowed: it is valid until the response has
// been sent. Its errors are those of [Request.Body], and a 503 problem when the memory
// budget has no room for the body.
func (r *Request) Bytes() ([]byte, error) {
	r.alive()
	r.s.Viewed = true
	return r.bytes(r.maxBody())
}

func (r *Request) bytes(most int64) ([]byte, error) {
	if r.s.Loaded {
		if int64(len(r.s.Whole)) > most {
			return nil, r.app.server.BodyTooLarge(most)
		}
		return r.s.Whole, nil
	}
	if r.bodyErr != nil {
		return nil, r.bodyErr // what is left of the body is not the body
	}
	if err := r.announced(most); err != nil {
		return nil, err
	}
	if b, whole := r.wire.Received(); whole {
		r.s.Whole, r.s.Loaded = b, true
		return r.bytes(most)
	}
	r.bodyErr = errBodyPartly // unless reading comes to its end
	b, err := r.readAll(exchange.Gathered(r.wire.Body(most), most), r.wire.ContentLength())
	if err != nil {
		r.bodyErr = r.app.server.BodyUnreadable(err)
		return nil, r.bodyErr
	}
	r.s.Whole, r.s.Loaded, r.bodyErr = b, true, nil
	return b, nil
}

var errBodyPartly = errors.New("reading the request body was given up")

// readAll reads src into the payload, whose memory it takes from the budget before it is
// filled. Of a large body that is announced, the budget has all from its first bytes on: several
// would wait for each other's rest, and those who wait are to hold little.
func (r *Request) readAll(src io.Reader, announced int64) ([]byte, error) {
	r.s.Payload = r.s.Payload[:0]
	want := int(min(announced, trustedBody)) + 1
	if announced > trustedBody {
		want = firstBody
	}
	if cap(r.s.Payload) > want && (announced > trustedBody || r.app.server.Budget.Tight()) {
		r.s.Payload = nil // which was kept of another request, and would count for this one
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
			want := int(min(int64(max(512, 2*cap(b))-1), r.maxBody())) + 1 // one more, to see the end
			if announced > trustedBody {
				want *= 2 // which it has the room for: fewer copies are left to the collector
			}
			if announced >= 0 && announced <= int64(want) {
				want = max(int(announced), cap(b)) + 1 // one more, to see the end
			}
			want = r.app.memory.Holders.MostGrown(want, len(b), announced < 0)
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
			return r.s.Payload, nil
		}
		return nil, err
	}
}

// growPayload gives the payload the given capacity.
func (r *Request) growPayload(capacity int, announced int64) error {
	if err := r.holdBody(capacity, announced); err != nil {
		return err
	}
	r.s.Payload = append(make([]byte, 0, capacity), r.s.Payload...)
	return nil
}

// endBody ends the loan of the body.
func (r *Request) endBody() {
	invariants.EndLoan(r.s.Payload[:cap(r.s.Payload)])
	if cap(r.s.Payload) > exchange.KeptPayload {
		r.s.Payload = nil
	}
	r.releaseBody()
	r.s.Whole, r.s.Loaded, r.bodyErr = nil, false, nil
}

// passOn takes out of the request the payload in which body lies, for whoever sends it.
// Its memory counts as theirs, with the capacity of what is returned, and goes to the
// collector.
func (r *Request) passOn(body string) []byte {
	from := view.Offset(body, r.s.Payload)
	b := r.s.Payload[from : from+len(body)]
	r.s.Payload, r.s.Whole = nil, nil
	r.releaseBody()
	return b
}

// DecodeBody is for middleware that takes the content coding off a request's body (RFC 9110 section 8.4). It reads the body, in
// whole, and what the reader makes of it that open returns; from then on that is the body: for [Request.Bytes], Body, forms, Decode and
// standard handlers. Content-Encoding and Content-Length are not seen any more.
//
// Both the body as sent and what becomes of it are bounded by the limit on bodies (Config.MaxBody, Group.MaxBody), and
// their memory counts in the budget while it is held. The errors are those of Bytes, and a 400 problem when open or its reader
// fails, unless that is a problem. An empty body is not decoded.
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

// decoded reports whether DecodeBody has taken the coding off the body.
func (r *Request) decoded() bool { return r.uncommon != nil && r.uncommon.decoded }

// stdRequest is the wire's, which says what the body has become.
func (r *Request) stdRequest() *http.Request {
	if r.decoded() {
		return exchange.WithBody(r.wire.StdRequest(), r.s.Whole)
	}
	return r.wire.StdRequest()
}
