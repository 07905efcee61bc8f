package dunlin

import (
	"net/http"
	"strings"

	"github.com/dunlinhttp/dunlin/internal/http1"
)

// respond appends a settled response to the driver's output and lets go of
// what the response owned.
func (x *loopExchange) respond(resp *Response) {
	switch resp.kind {
	case kindSent:
		x.release(resp)
		return
	case kindStream:
		x.respondStream(resp)
		x.release(resp)
		return
	}
	body := resp.body
	x.appendHead(resp, resp.announced())
	switch {
	case body == "" || !http1.BodyAllowed(x.head.Method, int(resp.status)):
		x.release(resp)
	case len(body) < ownedBody || x.viewsRequest(body):
		x.d.Out = append(x.d.Out, body...)
		x.release(resp)
	case resp.x != nil:
		resp.x.used = resp.ver.fields()
		x.d.WriteOwned(viewBytes(body), resp.x)
	default:
		x.d.WriteOwned(viewBytes(body), nil)
	}
}

func (x *loopExchange) release(resp *Response) {
	if resp.x != nil {
		resp.x.release(resp.ver.fields())
	}
}

// Release gives the extra back when the engine has sent the body it owns.
func (x *extra) Release() { x.release(x.used) }

// appendHead appends the head of a response: status line, date, the response's
// headers, framing. length is that of the body, -1 for a chunked one.
func (x *loopExchange) appendHead(resp *Response, length int) {
	out := x.d.Out
	status := int(resp.status)
	if x.minor == 0 {
		out = http1.AppendStatusLine10(out, status)
	} else {
		out = http1.AppendStatusLine(out, status)
	}
	out = x.date.AppendField(out, x.d.Unix())
	switch {
	case len(resp.own()) > 0 || status == http.StatusNotModified:
		for name, value := range resp.headers {
			if status == http.StatusNotModified && strings.EqualFold(name, "Content-Type") {
				continue // it describes a body that is not sent; net/http leaves it out, too
			}
			out = http1.AppendField(out, name, value)
		}
	case resp.base != nil:
		out = append(out, resp.base.wire...)
	}
	if length >= 0 {
		if http1.LengthAllowed(x.head.Method, status) && status != http.StatusNotModified {
			out = http1.AppendContentLength(out, int64(length))
		}
	} else if x.minor == 0 {
		x.closing = true // the end of the connection is the end of the body
	} else {
		out = append(out, http1.TransferEncodingChunked...)
	}
	switch {
	case x.closing:
		out = append(out, http1.ConnectionClose...)
	case x.minor == 0:
		out = append(out, http1.ConnectionKeepAlive...)
	}
	x.d.Out = append(out, http1.CRLF...)
}

// A loopStream writes a body whose length is not known before its end: in
// chunks, each when it has gathered enough or is told to.
type loopStream struct {
	x     *loopExchange
	buf   []byte // room for a chunk header, then data
	plain bool   // no chunks: the length was announced, or the connection ends the body
	err   error
}

func (x *loopExchange) newStream(plain bool) loopStream {
	return loopStream{x: x, plain: plain || x.minor == 0, buf: make([]byte, chunkRoom, chunkRoom+streamChunk+len(http1.CRLF+http1.EndOfChunks))}
}

const (
	// streamChunk is how much a stream gathers before it sends it, in bytes.
	streamChunk = 8 << 10
	// chunkRoom is left in front of the data for a chunk's header.
	chunkRoom = http1.MaxChunkHeader
)

// respondStream sends the head and then what the response's function writes.
// A function that fails ends the connection without the end of the body, so
// that the client knows.
func (x *loopExchange) respondStream(resp *Response) {
	x.appendHead(resp, -1)
	if !http1.BodyAllowed(x.head.Method, int(resp.status)) {
		return
	}
	x.begun = true
	s := x.newStream(false)
	if err := x.handler.app.runStream(resp.x.stream, &s, &x.request); err != nil {
		x.c.Close()
		x.closing = true
		return
	}
	s.send(true)
}

// Write adds p to the body.
func (s *loopStream) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 && s.err == nil {
		room := chunkRoom + streamChunk - len(s.buf)
		if room == 0 {
			s.send(false)
			continue
		}
		n := min(room, len(p))
		s.buf = append(s.buf, p[:n]...)
		p = p[n:]
		written += n
	}
	return written, s.err
}

// Flush sends what has been written so far.
func (s *loopStream) Flush() error {
	s.send(false)
	return s.err
}

// send writes the gathered data as a chunk, and the end of the body if it is
// the last.
func (s *loopStream) send(last bool) {
	if s.err != nil {
		return
	}
	timeout := timeLeft(s.x.writeBy, s.x.handler.app.config.WriteTimeout)
	if s.err = s.x.d.Flush(timeout); s.err != nil {
		return
	}
	out := s.buf[chunkRoom:]
	if n := len(out); n > 0 && !s.plain {
		start := http1.PutChunkHeader(s.buf[:chunkRoom], n)
		out = append(s.buf, http1.CRLF...)[start:]
	}
	if last && !s.plain {
		out = append(out, http1.EndOfChunks...)
	}
	if len(out) > 0 {
		_, s.err = s.x.c.Write(out, timeout)
	}
	s.buf = s.buf[:chunkRoom]
}
