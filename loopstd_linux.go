package dunlin

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/dunlinhttp/dunlin/internal/http1"
)

// stdRequest makes the *http.Request of the current request, once.
func (x *loopExchange) stdRequest() *http.Request {
	if x.std != nil {
		return x.std
	}
	h := &x.head
	req := &http.Request{
		Method:        x.request.method,
		Proto:         "HTTP/1." + strconv.Itoa(int(h.Minor)),
		ProtoMajor:    1,
		ProtoMinor:    int(h.Minor),
		Header:        make(http.Header, h.Len()),
		Host:          x.host(),
		RequestURI:    string(h.Target()),
		ContentLength: x.contentLength(),
		Close:         x.closing,
		Body:          http.NoBody,
	}
	if remote := x.remote(); remote.IsValid() {
		req.RemoteAddr = remote.String()
	}
	for name, value := range x.headers {
		if name != "Host" {
			req.Header[name] = append(req.Header[name], value)
		}
	}
	if h.Chunked {
		req.TransferEncoding = []string{"chunked"}
		req.Header.Del("Transfer-Encoding")
	}
	if h.HasBody() {
		const noLimit = 1<<63 - 1 // http.MaxBytesHandler sets one
		req.Body = io.NopCloser(x.body(noLimit))
	}
	req.URL = targetURL(h.Form, req.RequestURI)
	x.std = req.WithContext(x.context())
	return x.std
}

// targetURL makes the URL of a request target, as net/http does.
func targetURL(form http1.TargetForm, target string) *url.URL {
	if form == http1.AuthorityForm {
		return &url.URL{Host: target}
	}
	u, err := url.ParseRequestURI(target)
	if err != nil { // what the parser let pass and package url does not
		return &url.URL{Path: target}
	}
	return u
}

func (x *loopExchange) body(limit int64) io.Reader {
	if x.streaming {
		x.stream.limit = limit
		return &x.stream
	}
	if int64(len(x.whole)) > limit {
		return failedBody{bodyTooLarge(limit)}
	}
	return &bytesReader{x.whole}
}

// failedBody is a body that cannot be read.
type failedBody struct{ err error }

func (b failedBody) Read([]byte) (int, error) { return 0, b.err }

// begin sends the head of a standard handler's answer.
func (x *loopExchange) begin(status int, h http.Header, length int64) stdSink {
	resp := Response{status: uint16(status), kind: kindBody}
	for _, name := range sortedKeys(h) {
		if ownHeader(name) != "" {
			if name == "Connection" && h.Get(name) == "close" {
				x.closing = true
			}
			continue
		}
		for _, v := range h[name] {
			if checkField(name, v) == nil {
				resp = resp.push(field{name: name, value: v})
			}
		}
	}
	x.appendHead(&resp, int(length))
	x.release(&resp)
	x.begun = true
	return &loopSink{loopStream: x.newStream(length >= 0)}
}

func (x *loopExchange) sink() stdSink { return &loopSink{loopStream: loopStream{x: x}} }

func (x *loopExchange) closeAfter() { x.closing = true }

// interim sends a response below 200, which an HTTP/1.0 client would not know.
func (x *loopExchange) interim(status int, h http.Header) {
	if x.minor == 0 {
		return
	}
	out := http1.AppendStatusLine(x.d.Out, status)
	for _, name := range sortedKeys(h) {
		for _, v := range h[name] {
			if checkField(name, v) == nil {
				out = http1.AppendField(out, name, v)
			}
		}
	}
	x.d.Out = append(out, http1.CRLF...)
	_ = x.d.Flush(x.handler.app.config.WriteTimeout) // a dead connection shows in the answer
}

// A loopSink is the way to the connection for a standard handler.
type loopSink struct{ loopStream }

func (s *loopSink) finish() { s.send(true) }

// hijack takes the connection out of the engine. What had arrived beyond the
// request is in the reader's buffer.
func (s *loopSink) hijack() (net.Conn, *bufio.ReadWriter, error) {
	x := s.x
	if err := x.d.Flush(x.handler.app.config.WriteTimeout); err != nil {
		return nil, nil, err
	}
	rest := bytes.Clone(x.after)
	conn, err := x.c.Hijack()
	if err != nil {
		return nil, nil, err
	}
	x.hijacked = true
	r := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(rest), conn), max(4<<10, len(rest)))
	_, _ = r.Peek(len(rest)) // they are in memory: it cannot fail
	return conn, bufio.NewReadWriter(r, bufio.NewWriter(conn)), nil
}

func (s *loopSink) setReadDeadline(t time.Time) error {
	s.x.readBy = t
	return nil
}

func (s *loopSink) setWriteDeadline(t time.Time) error {
	s.x.writeBy = t
	return nil
}

// enableFullDuplex has nothing to do: reading the body and writing the answer
// do not get in each other's way here.
func (s *loopSink) enableFullDuplex() error { return nil }

// timeLeft returns how long an operation may block: until the deadline, if one
// is set, and no longer than most.
func timeLeft(deadline time.Time, most time.Duration) time.Duration {
	if deadline.IsZero() {
		return most
	}
	// A deadline that has passed still needs a positive time to wait.
	return max(min(time.Until(deadline), most), time.Nanosecond)
}
