// Package stdwriter implements http.ResponseWriter for standard handlers. The output of a handler becomes an answer,
// complete or streamed, with the fields and trailers that net/http would send. writer.go contains the Writer, and
// multiplexed.go its form for HTTP/2.
package stdwriter

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/semantics"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// maxGathered is the maximum size of a body that is buffered, in bytes. A buffered answer can still become a
// dunlin.Response, which middleware can change. Some requests have a larger maximum, see exchange.State.
const maxGathered = 32 << 10

// An Owner is the owner of the request that a Writer answers.
type Owner interface {
	// Begin sends the head of a streamed answer. length is the length of the body, or -1 if it is unknown. Begin
	// returns an error if another answer has replaced this one.
	Begin(head *exchange.Answer, length int64) (exchange.Sink, error)

	// Account returns the account of the request. It returns nil if the request was answered without its action.
	Account() *memory.Account

	// Fail returns an answer that reports err.
	Fail(err error) exchange.Answer
}

// A Writer is the ResponseWriter of a standard handler. It buffers the answer. When the answer becomes too long, or
// when the handler flushes it, the Writer sends it.
type Writer struct {
	wire     exchange.Wire
	method   string
	maxBody  int64 // maximum size of a buffered body whose length was announced, see bufferLimit
	owner    Owner
	header   http.Header
	status   int             // 0 until WriteHeader
	head     exchange.Answer // status and fields at the call of WriteHeader
	typed    bool            // the handler has set Content-Type, or has disabled its detection
	declared []string        // names of the trailers that the handler announced
	length   int64           // length that the handler announced, or -1
	unsized  bool            // the handler has disabled Content-Length
	written  int64           // number of bytes of the body that were written, including bytes that are not sent because the method is HEAD
	body     []byte
	charges  charges
	sink     exchange.Sink // nil until the head was sent, or the connection is hijacked or switched
	hijacked bool

	discarded error // the reason why further output is ignored

	// A goroutine of the handler may still write after the handler has returned. Therefore every method of
	// http.ResponseWriter holds mu. After End no such method runs or begins, because the connection may belong to
	// another request.
	mu      sync.Mutex
	setting sync.Mutex // guards the fields that the deadline methods use, because a deadline may have to end a Write that holds mu
	over    bool       // guarded by both locks

	hangup hangup
}

// A hangup is the state of CloseNotify. The Writer's mu guards it.
type hangup struct {
	closed chan bool   // the result of CloseNotify, nil before the first call
	stop   func() bool // ends the wait for the end of the context
}

// notify returns a channel that receives a value when ctx ends.
func (h *hangup) notify(ctx context.Context) <-chan bool {
	if h.closed == nil {
		h.closed = make(chan bool, 1)
		h.stop = context.AfterFunc(ctx, func() { h.closed <- true })
	}
	return h.closed
}

func (h *hangup) end() {
	if h.stop != nil {
		h.stop()
	}
}

// Init prepares the writer for the answer to the request of wire.
func (w *Writer) Init(wire exchange.Wire, s *exchange.State, owner Owner) {
	w.wire, w.method, w.maxBody, w.owner, w.header = wire, s.Method, s.Gathers(), owner, make(http.Header)
}

// bufferLimit returns the maximum size of the buffered body, in bytes.
func (w *Writer) bufferLimit() int64 {
	if w.length <= w.maxBody { // true also if the length is unknown (-1)
		return max(w.length, maxGathered)
	}
	return maxGathered
}

// Status returns the status that the handler has written, or 0.
func (w *Writer) Status() int { return w.status }

// Length returns the length of the body that the handler has announced, or -1.
func (w *Writer) Length() int64 { return w.length }

// charges records what was charged for the answer in addition to the buffered part of the body.
type charges struct {
	body   bool            // a body whose announced length exceeds maxGathered
	stream *memory.Account // account that is charged for the goroutine of a handler whose answer has no announced length, until End; or nil
}

// Head returns the status and the fields as the handler has written them.
func (w *Writer) Head() exchange.Answer { return w.head }

// Begun reports whether the head was sent.
func (w *Writer) Begun() bool { return w.sink != nil }

// End ends the use of the writer by the handler.
func (w *Writer) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setting.Lock()
	defer w.setting.Unlock()
	w.over = true
	if a := w.charges.stream; a != nil {
		a.Release(memory.Input, exchange.BackgroundCost)
	}
	w.hangup.end()
}

// errOver is the error of a write after End.
var errOver = errors.New("dunlin: the handler has returned: its ResponseWriter is no longer valid")

// use locks the writer for a call by the handler. If it returns nil, the caller must unlock the writer.
func (w *Writer) use() error {
	w.mu.Lock()
	if w.over {
		w.mu.Unlock()
		return errOver
	}
	return nil
}

func (w *Writer) Header() http.Header { return w.header }

// WriteHeader sets the status and the fields of the answer. If the status is below 200, it sends an interim response
// at once.
func (w *Writer) WriteHeader(status int) {
	if w.use() == nil {
		defer w.mu.Unlock()
		w.writeHeader(status)
	}
}

func (w *Writer) writeHeader(status int) {
	switch {
	case w.hijacked || w.status != 0:
		return
	case status < 100 || status > 999:
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	case status < 200:
		w.wire.Interim(status, w.header)
		if status == http.StatusSwitchingProtocols { // this status is final, and Hijack follows
			w.status, w.sink = status, w.wire.Sink()
		}
		return
	}
	w.status = status
	w.length = -1
	if values, set := w.header["Content-Length"]; set && len(values) == 0 {
		w.unsized = true
	}
	if n, err := strconv.ParseInt(w.header.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
		w.length = n
	}
	_, w.typed = w.header["Content-Type"]
	w.typed = w.typed || w.header.Get("Content-Encoding") != ""
	w.head = exchange.Bare(status, exchange.Complete)
	for _, name := range exchange.SortedKeys(w.header) {
		w.setField(name, w.header[name])
	}
}

// setField adds a field that the handler has set to the head. Like net/http it omits invalid fields and fields that
// frame the message.
func (w *Writer) setField(name string, values []string) {
	switch {
	case name == "Trailer":
		w.declare(values)
	case name == "Date" && len(values) == 0:
		w.wire.OmitDate()
	case name == "Date" && exchange.CheckField(name, values[0]) == nil:
		w.push(exchange.Field{Name: name, Value: exchange.TrimBlanks(values[0])})
	case name == "Date": // the engine writes a more accurate Date
	case name == "Connection":
		w.setConnection(values)
	case name == "Upgrade":
		for _, v := range values {
			if semantics.CheckField(name, v) == nil {
				w.push(exchange.Field{Name: name, Value: exchange.TrimBlanks(v)})
			}
		}
	default:
		for _, v := range values {
			if exchange.CheckField(name, v) == nil {
				w.push(exchange.Field{Name: name, Value: exchange.TrimBlanks(v)})
			}
		}
	}
}

// setConnection adds the handler's options of Connection to the head. It omits close and keep-alive, which the engine
// writes.
func (w *Writer) setConnection(values []string) {
	if len(values) > 0 && values[0] == "close" {
		w.wire.CloseAfter()
		return
	}
	var options []string
	for _, list := range values {
		for option := range strings.SplitSeq(list, ",") {
			option = exchange.TrimBlanks(option)
			switch {
			case option == "" || semantics.CheckField(option, "") != nil: // an option must be a token, like the name of a field
			case strings.EqualFold(option, "close"):
				w.wire.CloseAfter()
			case !strings.EqualFold(option, "keep-alive"):
				options = append(options, option)
			}
		}
	}
	if len(options) > 0 {
		w.push(exchange.Field{Name: "Connection", Value: strings.Join(options, ", ")})
	}
}

// push adds a field to the head.
func (w *Writer) push(f exchange.Field) {
	head, err := w.head.Push(f)
	if err != nil {
		head = w.owner.Fail(err)
	}
	w.head = head
}

// declare stores the names of trailers and adds the field Trailer to the head.
func (w *Writer) declare(values []string) {
	for _, list := range values {
		for name := range strings.SplitSeq(list, ",") {
			name = http.CanonicalHeaderKey(exchange.TrimBlanks(name))
			if exchange.CheckField(name, "") == nil {
				w.declared = append(w.declared, name)
				w.push(exchange.Field{Name: "Trailer", Value: name})
			}
		}
	}
}

// trailers returns the trailers that the handler has set, or nil.
func (w *Writer) trailers() http.Header {
	var t http.Header
	add := func(name string, values []string) {
		if t == nil {
			t = make(http.Header)
		}
		t[name] = values
	}
	for _, name := range w.declared {
		if values := w.header[name]; len(values) > 0 {
			add(name, values)
		}
	}
	for name, values := range w.header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			add(name, values)
		}
	}
	return t
}

// admit counts n bytes of the body. It returns an error if they must not be written.
func (w *Writer) admit(n int64) error {
	switch {
	case w.hijacked:
		return http.ErrHijacked
	case w.discarded != nil:
		return w.discarded
	case w.status == 0:
		w.writeHeader(http.StatusOK)
	}
	if !exchange.BodyAllowed(w.status) {
		return http.ErrBodyNotAllowed
	}
	if w.length >= 0 && w.written+n > w.length {
		return http.ErrContentLength
	}
	w.written += n
	return nil
}

// WriteString is Write for a string. [io.WriteString] calls it.
func (w *Writer) WriteString(s string) (int, error) { return w.Write(view.Bytes(s)) }

func (w *Writer) Write(p []byte) (int, error) {
	if err := w.use(); err != nil {
		return 0, err
	}
	defer w.mu.Unlock()
	if err := w.admit(int64(len(p))); err != nil {
		return 0, err
	}
	if w.method == http.MethodHead {
		w.sniff(p)
		return len(p), nil
	}
	if w.sink == nil {
		if n := int64(len(w.body) + len(p)); n <= w.bufferLimit() && (n <= maxGathered || w.reserveLength()) {
			w.body = append(w.body, p...)
			return len(p), nil
		}
		if err := w.commit(p); err != nil {
			return 0, err
		}
	}
	return w.sink.Write(p)
}

// reserveLength charges the announced length of the body. If no memory is available, it returns false and the answer
// is streamed.
func (w *Writer) reserveLength() bool {
	if w.charges.body {
		return true
	}
	a := w.owner.Account()
	if w.charges.body = a != nil && a.TryReserve(memory.Output, w.length); w.charges.body {
		w.body = slices.Grow(w.body, int(w.length)-len(w.body))
	} else {
		w.maxBody = 0
	}
	return w.charges.body
}

// ReadFrom copies src to the body. A large file whose length is known is sent from the page cache, without a copy
// into the process.
func (w *Writer) ReadFrom(src io.Reader) (int64, error) {
	n, whole, err := w.readWhole(src)
	if whole || err != nil {
		return n, err
	}
	return exchange.CopyPieces(w, src)
}

// readWhole is ReadFrom for a source that the connection can send directly. For other sources it reads nothing, and
// whole is false.
func (w *Writer) readWhole(src io.Reader) (n int64, whole bool, err error) {
	if err := w.use(); err != nil {
		return 0, false, err
	}
	defer w.mu.Unlock()
	if err := w.admit(0); err != nil {
		return 0, false, err
	}
	left := w.length - w.written
	if !w.typed || w.length < 0 || w.method == http.MethodHead || w.sink == nil && int64(len(w.body))+left <= w.bufferLimit() {
		return 0, false, nil
	}
	if err := w.commit(nil); err != nil {
		return 0, false, err
	}
	if r, ok := src.(*io.LimitedReader); !ok || r.N > left {
		return 0, false, nil // src may be longer than the announced length
	}
	n, err = w.sink.ReadFrom(src)
	w.written += n
	return n, true, err
}

// sniff sets Content-Type from the first bytes of the body, as net/http does, unless the handler has set it.
func (w *Writer) sniff(body []byte) {
	if w.typed || len(body) == 0 {
		return
	}
	w.typed = true
	w.push(exchange.Field{Name: "Content-Type", Value: http.DetectContentType(body)})
}

// commit sends the head and the buffered part of the body. next is the output that follows.
func (w *Writer) commit(next []byte) error {
	if w.sink != nil {
		return nil
	}
	if w.status == 0 {
		w.writeHeader(http.StatusOK)
	}
	first := w.body
	if len(first) == 0 {
		first = next
	}
	w.sniff(first)
	if w.discarded != nil {
		return w.discarded
	}
	sink, err := w.owner.Begin(&w.head, w.length)
	if err != nil {
		w.discarded = err
		return err
	}
	w.sink = sink
	if w.length < 0 && !w.over { // the answer may be an event stream
		if a := w.owner.Account(); a != nil {
			a.Force(memory.Input, exchange.BackgroundCost)
			w.charges.stream = a
		}
	}
	if len(w.body) == 0 {
		return nil
	}
	_, err = w.sink.Write(w.body)
	w.body = nil
	return err
}

// FlushError sends the buffered output.
func (w *Writer) FlushError() error {
	if err := w.use(); err != nil {
		return err
	}
	defer w.mu.Unlock()
	if w.hijacked {
		return http.ErrHijacked
	}
	if err := w.commit(nil); err != nil {
		return err
	}
	return w.sink.Flush()
}

// Flush is FlushError for http.Flusher.
func (w *Writer) Flush() { _ = w.FlushError() }

// Hijack passes the connection to the handler. If the handler has written a status, the head is sent before. CONNECT
// proxies answer with status 200 in this way.
func (w *Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if err := w.use(); err != nil {
		return nil, nil, err
	}
	defer w.mu.Unlock()
	if w.hijacked {
		return nil, nil, http.ErrHijacked
	}
	switch {
	case w.status != 0:
		if err := w.commit(nil); err != nil {
			return nil, nil, err
		}
		_ = w.sink.Flush() // Hijack fails if the connection is broken
	case w.sink == nil:
		w.sink = w.wire.Sink()
		defer func() {
			if !w.hijacked {
				w.sink = nil
			}
		}()
	}
	conn, rw, err := w.sink.Hijack()
	w.hijacked = err == nil
	return conn, rw, err
}

// CloseNotify returns a channel that receives a value if the client disconnects while the handler runs. net/http has
// deprecated it in favor of [http.Request.Context], but old code uses it without a check.
func (w *Writer) CloseNotify() <-chan bool {
	if w.use() != nil {
		return make(chan bool)
	}
	defer w.mu.Unlock()
	if w.hijacked {
		panic("net/http: CloseNotify called after Hijack")
	}
	return w.hangup.notify(w.wire.Context())
}

// http.ResponseController uses the following methods.

func (w *Writer) SetReadDeadline(t time.Time) error {
	return w.set(func(s exchange.Sink) error { return s.SetReadDeadline(t) })
}

func (w *Writer) SetWriteDeadline(t time.Time) error {
	return w.set(func(s exchange.Sink) error { return s.SetWriteDeadline(t) })
}

func (w *Writer) EnableFullDuplex() error { return w.set(exchange.Sink.EnableFullDuplex) }

func (w *Writer) set(change func(exchange.Sink) error) error {
	w.setting.Lock()
	defer w.setting.Unlock()
	if w.over {
		return errOver
	}
	return change(w.wire.Sink())
}

// endSwitched closes a connection after a 101 if the handler has not hijacked it, because its client now uses another
// protocol.
func (w *Writer) endSwitched() {
	conn, _, err := w.sink.Hijack()
	if err != nil {
		w.wire.CloseAfter()
		return
	}
	_ = conn.Close()
}

// Answer returns the answer that the handler has written.
func (w *Writer) Answer() exchange.Answer {
	if w.hijacked {
		return exchange.Bare(cmp.Or(w.status, http.StatusSwitchingProtocols), exchange.Sent)
	}
	if w.status == 0 {
		w.writeHeader(http.StatusOK)
	}
	if w.status == http.StatusSwitchingProtocols {
		w.endSwitched()
	}
	sent := exchange.Bare(w.status, exchange.Sent)
	trailers := w.trailers()
	bodied := exchange.BodyAllowed(w.status) && w.method != http.MethodHead
	short := bodied && w.length > w.written
	if w.sink == nil && (short || bodied && (w.unsized || trailers != nil || w.declared != nil)) {
		if w.declared != nil && !w.unsized && w.length < 0 && w.wire.StdRequest().ProtoMajor == 2 {
			w.length = w.written // in HTTP/2, an answer may have both announced trailers and a length
		}
		if w.commit(nil) != nil {
			return sent
		}
		// Flush sends the head now. Otherwise Finish would send a Content-Length in place of the announced trailers.
		_ = w.sink.Flush()
	}
	if w.sink != nil {
		if short {
			w.wire.CloseAfter() // the end of the connection marks the end of the body
		}
		w.sink.Finish(trailers)
		return sent
	}
	w.sniff(w.body)
	resp := w.head
	resp.Body = view.String(w.body)
	if w.method == http.MethodHead {
		length := int64(exchange.NoLength)
		if !w.unsized && (w.length >= 0 || w.written > 0) {
			length = max(w.length, w.written)
		}
		resp.Announce(length)
	}
	if resp.Status() >= http.StatusInternalServerError && w.wire.Context().Err() == context.Canceled {
		resp.EnsureOwn().Err = context.Canceled // the client has disconnected, so the handler has not failed
	}
	return resp
}
