package dunlin

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"
)

// FromStd makes an action of a standard handler, on either engine. What the
// handler writes is gathered and becomes the action's Response, so that
// middleware sees the real status, headers and body. A handler that writes
// more than 32 KB, flushes or hijacks answers for itself from there on:
// middleware then sees a response that has been sent, and headers it adds come
// too late. Config.MaxBody does not limit what the handler reads; use
// http.MaxBytesHandler.
func FromStd(h http.Handler) Action {
	if h == nil {
		panic("dunlin: FromStd: nil handler (called at " + callerPlace() + ")")
	}
	return func(r *Request) Response {
		w := &stdWriter{r: r, header: make(http.Header)}
		w.run(h)
		return w.response()
	}
}

// A stdSink is where an answer goes once it cannot be held back any longer.
type stdSink interface {
	io.Writer
	Flush() error
	// hijack hands the connection over, with what was read beyond the request.
	hijack() (net.Conn, *bufio.ReadWriter, error)
	setReadDeadline(time.Time) error
	setWriteDeadline(time.Time) error
	enableFullDuplex() error
	// finish ends the body.
	finish()
}

// gatherLimit is how many bytes of a standard handler's answer are held back,
// so that it can still become a Response.
const gatherLimit = 32 << 10

// A stdWriter is the ResponseWriter of a standard handler: it gathers the
// answer, and passes it on when it becomes too long or the handler insists.
type stdWriter struct {
	r        *Request
	header   http.Header
	status   int   // 0 until WriteHeader
	length   int64 // as the handler announced it, else -1
	omitted  int64 // bytes written in answer to HEAD, and not kept
	body     []byte
	sink     stdSink // non-nil once the head has been sent
	hijacked bool
}

// run calls the handler. A panic after the head was sent cannot become a 500
// any more: the connection is dropped.
func (w *stdWriter) run(h http.Handler) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if (w.sink == nil && !w.hijacked) || v == http.ErrAbortHandler {
			panic(v)
		}
		w.r.app.config.Logger.Error("panic in a handler that had begun to answer", "panic", fmt.Sprint(v),
			"route", w.r.Route(), "id", w.r.ID(), "stack", string(debug.Stack()))
		panic(http.ErrAbortHandler)
	}()
	h.ServeHTTP(w, w.r.wire.stdRequest())
}

func (w *stdWriter) Header() http.Header { return w.header }

// WriteHeader sets the status. A status below 200 is sent at once as an
// interim response.
func (w *stdWriter) WriteHeader(status int) {
	switch {
	case status < 100 || status > 999:
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	case w.hijacked || w.status != 0:
		return
	case status < 200 && status != http.StatusSwitchingProtocols:
		w.r.wire.interim(status, w.header)
		return
	}
	w.status = status
	w.length = -1
	if n, err := strconv.ParseInt(w.header.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
		w.length = n
	}
}

func (w *stdWriter) Write(p []byte) (int, error) {
	if w.hijacked {
		return 0, http.ErrHijacked
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !bodyAllowed(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	if w.r.method == http.MethodHead {
		w.sniff(p)
		w.omitted += int64(len(p))
		return len(p), nil
	}
	if w.sink == nil {
		if len(w.body)+len(p) <= gatherLimit {
			w.body = append(w.body, p...)
			return len(p), nil
		}
		if err := w.commit(p); err != nil {
			return 0, err
		}
	}
	return w.sink.Write(p)
}

// sniff sets the Content-Type from the first bytes of the body where the handler
// set none, as net/http does.
func (w *stdWriter) sniff(body []byte) {
	if _, has := w.header["Content-Type"]; has || len(body) == 0 || w.header.Get("Content-Encoding") != "" {
		return
	}
	w.header.Set("Content-Type", http.DetectContentType(body))
}

// commit sends the head and what was gathered; next is what will follow.
func (w *stdWriter) commit(next []byte) error {
	if w.sink != nil {
		return nil
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	first := w.body
	if len(first) == 0 {
		first = next
	}
	w.sniff(first)
	w.sink = w.r.wire.begin(w.status, w.header, w.length)
	if len(w.body) == 0 {
		return nil
	}
	_, err := w.sink.Write(w.body)
	w.body = nil
	return err
}

// FlushError sends what has been written so far.
func (w *stdWriter) FlushError() error {
	if w.hijacked {
		return http.ErrHijacked
	}
	if err := w.commit(nil); err != nil {
		return err
	}
	return w.sink.Flush()
}

// Flush is FlushError for handlers that know http.Flusher.
func (w *stdWriter) Flush() { _ = w.FlushError() }

// Hijack hands the connection over to the handler.
func (w *stdWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.hijacked {
		return nil, nil, http.ErrHijacked
	}
	sink := w.sink
	if sink == nil {
		sink = w.r.wire.sink()
	}
	conn, rw, err := sink.hijack()
	if err == nil {
		w.hijacked = true
	}
	return conn, rw, err
}

// The methods that http.ResponseController looks for.

func (w *stdWriter) SetReadDeadline(t time.Time) error  { return w.r.wire.sink().setReadDeadline(t) }
func (w *stdWriter) SetWriteDeadline(t time.Time) error { return w.r.wire.sink().setWriteDeadline(t) }
func (w *stdWriter) EnableFullDuplex() error            { return w.r.wire.sink().enableFullDuplex() }

// response makes the Response of what the handler has done.
func (w *stdWriter) response() Response {
	if w.hijacked {
		return Response{kind: kindSent, status: http.StatusSwitchingProtocols}
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	// Trailers need the chunked coding, a wrong length an error on the wire.
	if w.sink == nil && (w.header.Get("Trailer") != "" || w.length > int64(len(w.body)) && bodyAllowed(w.status) && w.r.method != http.MethodHead) {
		if err := w.commit(nil); err != nil {
			return Response{kind: kindSent, status: uint16(w.status)}
		}
	}
	if w.sink != nil {
		w.sink.finish()
		return Response{kind: kindSent, status: uint16(w.status)}
	}
	w.sniff(w.body)
	resp := Response{body: viewString(w.body), status: uint16(w.status), kind: kindBody}
	if w.r.method == http.MethodHead && max(w.length, w.omitted) < 1<<32-1 {
		resp.length = uint32(max(w.length, w.omitted)) + 1
	}
	for _, name := range sortedKeys(w.header) {
		if ownHeader(name) != "" {
			if name == "Connection" && w.header.Get(name) == "close" {
				w.r.wire.closeAfter()
			}
			continue
		}
		for _, v := range w.header[name] {
			if checkField(name, v) == nil { // net/http leaves invalid ones out, too
				resp = resp.push(field{name: name, value: v})
			}
		}
	}
	return resp
}
