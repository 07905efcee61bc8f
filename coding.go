package dunlin

import (
	"bytes"
	"io"
	"net/http"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// Bodies in a content coding (RFC 9110 section 8.4): encoded as they are sent, decoded when they have been read.

// A BodyEncoder encodes a body as it is sent, see [Response.EncodeLater]: a Writer and Closer, and Flush, which writes what the other end
// needs to decode all of the body so far. It writes to what it was made with. Its methods are called by one goroutine at a time; Close is
// called once, also after an error and where the stream fails: then that writer fails, too.
type BodyEncoder = exchange.Encoder

// EncodeLater is for middleware that encodes bodies that do not exist yet, which Len reports as -1: streams, events, files, long
// answers of standard handlers. It returns the response with decide called when its head is settled, once:
//
//   - Where the body has become complete after all, decide gets the response with it, as [Response.Body], and changes it by WithBody.
//   - Otherwise it gets the head, as a stream, and the size of the body in bytes, -1 if it is not known. It returns the head
//     with headers changed, and the function that makes the encoder, nil if the body is to go as it is. So it is for HEAD, where
//     no encoder is made; if a standard handler has answered that, decide is called at once.
//
// It may use the request. Other responses that are complete are returned as they are. The one added last encodes last.
func (r Response) EncodeLater(decide func(head Response, size int64) (Response, func(io.Writer) BodyEncoder)) Response {
	announces := r.a.Kind() == exchange.Complete && r.a.Body == "" && r.a.Announced() != 0
	if r.a.Failed() || decide == nil || r.a.Kind() != exchange.Later && !announces {
		return r
	}
	a, ok := r.a.Branch() // the value that this one is made of is not to be encoded
	if !ok {
		return Response{}.fail(exchange.ErrStale)
	}
	encoding := func() *exchange.Encoding {
		return &exchange.Encoding{Decide: func(a exchange.Answer, size int64) (exchange.Answer, func(io.Writer) BodyEncoder) {
			resp, encoder := decide(Response{a}, size)
			return resp.a, encoder
		}}
	}
	if announces {
		return Response{encoding().Head(a)}
	}
	made := a.Own().Make.(producer)
	a.Own().Make = producer(func(req *Request, resp *Response) Response {
		e, more := encoding(), req.more()
		e.Around, more.encoding = more.encoding, e
		defer func() {
			more.encoding = e.Around
			e.End()
		}()
		done := made(req, resp)
		e.Complete(&resp.a, &done.a, req.s.Method)
		return done
	})
	return Response{a}
}

// beginEncoded is Wire.Begin for an answer that is encoded as it is sent, if middleware wants it so. settle, which
// has the policies add theirs, comes in between.
func (r *Request) beginEncoded(resp *Response, length int64, claimed bool, settle func()) exchange.Sink {
	var wrap func(exchange.Sink) exchange.Sink
	if r.uncommon != nil && r.uncommon.encoding != nil {
		claimed = claimed && resp.a.Own() != nil
		if claimed {
			resp.a.Reopen()
		}
		wrap = r.uncommon.encoding.Begin(&resp.a, r.s.Method, length, func(from, to exchange.Answer) {
			r.app.log.Error("what encodes a stream changed more than headers", "from", Response{from}.String(), "to", Response{to}.String())
		})
		if claimed {
			resp.a.Claim()
		}
	}
	settle()
	if wrap == nil {
		return r.wire.Begin(&resp.a, length)
	}
	return wrap(r.wire.Begin(&resp.a, -1))
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

// hides reports whether a header field says of the body what is not so any more.
func (r *Request) hides(name string) bool {
	if !r.decoded() || len(name) != len("Content-Encoding") && len(name) != len("Content-Length") {
		return false
	}
	name = http.CanonicalHeaderKey(name)
	return name == "Content-Encoding" || name == "Content-Length"
}

// stdRequest is the wire's, which says what the body has become.
func (r *Request) stdRequest() *http.Request {
	req := r.wire.StdRequest()
	if !r.decoded() {
		return req
	}
	own := *req
	own.Header = req.Header.Clone()
	own.Header.Del("Content-Encoding")
	own.Header.Del("Content-Length")
	own.ContentLength, own.TransferEncoding = int64(len(r.s.Whole)), nil
	own.Body = io.NopCloser(&exchange.Reader{Rest: r.s.Whole})
	return &own
}
