// Package stdwriter is the ResponseWriter of standard handlers: what they write becomes an
// answer, complete or in pieces, with the headers and trailers that net/http would send. It is in writer.go;
// multiplexed.go is what of it handlers see by HTTP/2.
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
	"github.com/dunlinhttp/dunlin/internal/http1"
	"github.com/dunlinhttp/dunlin/internal/view"
)

// maxGathered is how many bytes of a standard handler's answer are held back,
// so that it can still become a Response. For some requests it is more, see exchange.State.
const maxGathered = 32 << 10

// An Owner is who has the response that a Writer makes.
type Owner interface {
	// Begin sends the head of an answer whose body follows; length is that of the body, -1 if
	// it is not known. It fails where another answer has taken this one's place.
	Begin(head *exchange.Answer, length int64) (exchange.Sink, error)

	// Hold charges n bytes of an answer that is gathered to the request, and reports false where there is no room for them.
	Hold(n int64) bool

	// Fail returns the answer that reports err instead.
	Fail(err error) exchange.Answer
}

// A Writer is the ResponseWriter of a standard handler: it gathers the
// answer, and passes it on when it becomes too long or the handler insists.
type Writer struct {
	wire     exchange.Wire
	method   string
	gathers  int64 // see most
	owner    Owner
	header   http.Header
	status   int             // 0 until WriteHeader
	head     exchange.Answer // status and headers as they were at WriteHeader
	typed    bool            // the handler said what the content is, or that nobody should guess
	declared []string        // names of trailers
	length   int64           // as the handler announced it, else -1
	unsized  bool            // the handler wants no length to be announced
	written  int64           // bytes of the body so far, those left out for HEAD included
	body     []byte
	held     bool          // there is room for a body of that length, beyond maxGathered
	sink     exchange.Sink // non-nil once the head has been sent
	hijacked bool

	discarded error // why what it writes is of no use

	// A handler may leave a goroutine behind that goes on writing. The lock is
	// held by every method of the interface, so that none of them is under way
	// when the handler's time is over, and none begins afterwards: the
	// connection belongs to another request then.
	mu      sync.Mutex
	setting sync.Mutex // the part of mu that deadlines need: they may end a Write that has mu
	over    bool       // guarded by both

	closed     chan bool   // what CloseNotify returned
	stopNotify func() bool // ends the wait for what it tells
}

// Init makes the zero Writer that for the answer to a request, which wire offers.
func (w *Writer) Init(wire exchange.Wire, s *exchange.State, owner Owner) {
	w.wire, w.method, w.gathers, w.owner, w.header = wire, s.Method, s.Gathers(), owner, make(http.Header)
}

// most is how many bytes are held back.
func (w *Writer) most() int64 {
	if w.length <= w.gathers { // it may be unknown
		return max(w.length, maxGathered)
	}
	return maxGathered
}

// Status returns the status that was written, 0 for none.
func (w *Writer) Status() int { return w.status }

// Length returns the length of the body that the handler announced, else -1.
func (w *Writer) Length() int64 { return w.length }

// Head returns status and headers as they were written.
func (w *Writer) Head() exchange.Answer { return w.head }

// Begun reports whether the head has been sent.
func (w *Writer) Begun() bool { return w.sink != nil }

// End takes the writer from the handler.
func (w *Writer) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setting.Lock()
	defer w.setting.Unlock()
	w.over = true
	if w.stopNotify != nil {
		w.stopNotify()
	}
}

// errOver is what a handler gets that writes after it has returned.
var errOver = errors.New("dunlin: the handler has returned: its ResponseWriter is no longer valid")

// use locks the writer for a call of the handler's; the caller unlocks it.
func (w *Writer) use() error {
	w.mu.Lock()
	if w.over {
		w.mu.Unlock()
		return errOver
	}
	return nil
}

func (w *Writer) Header() http.Header { return w.header }

// WriteHeader sets the status, and the headers as they are now. A status below
// 200 is sent at once as an interim response.
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
		if status == http.StatusSwitchingProtocols { // the last one: Hijack follows
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

// setField adds to the head what a handler has set, and leaves out what
// net/http leaves out, too: what is no header, and what frames the message.
func (w *Writer) setField(name string, values []string) {
	switch {
	case name == "Trailer":
		w.declare(values)
	case name == "Date" && len(values) == 0:
		w.wire.OmitDate()
	case name == "Date" && exchange.CheckField(name, values[0]) == nil:
		w.push(exchange.Field{Name: name, Value: exchange.TrimBlanks(values[0])})
	case name == "Date": // that of the moment is right, at least
	case name == "Connection":
		w.setConnection(values)
	case name == "Upgrade":
		for _, v := range values {
			if http1.CheckField(name, v) == nil {
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

// setConnection adds to the head the options that a handler has set for the
// connection, but for those that say whether it is kept: they are the engine's to
// write.
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
			case option == "" || http1.CheckField(option, "") != nil: // an option is a token, as a name is
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

// declare notes the names of trailers, and announces them.
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

// trailers returns what the handler has set of the trailers, nil for none.
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

// admit counts n bytes of the body, and says why they may not be written.
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

// WriteString is Write for a string: what [io.WriteString] looks for.
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
		if n := int64(len(w.body) + len(p)); n <= w.most() && (n <= maxGathered || w.holdsLength()) {
			w.body = append(w.body, p...)
			return len(p), nil
		}
		if err := w.commit(p); err != nil {
			return 0, err
		}
	}
	return w.sink.Write(p)
}

// holdsLength makes room for a body of the length that the handler announced. Where there is none the answer is not gathered.
func (w *Writer) holdsLength() bool {
	if w.held {
		return true
	}
	if w.held = w.owner.Hold(w.length); w.held {
		w.body = slices.Grow(w.body, int(w.length)-len(w.body))
	} else {
		w.gathers = 0
	}
	return w.held
}

// ReadFrom copies src to the body. A long file of known length goes from the
// disk to the socket without passing through the process.
func (w *Writer) ReadFrom(src io.Reader) (int64, error) {
	n, whole, err := w.readWhole(src)
	if whole || err != nil {
		return n, err
	}
	return exchange.CopyPieces(w, src)
}

// readWhole is ReadFrom for a source that can go to the connection as it is;
// whole is false for others.
func (w *Writer) readWhole(src io.Reader) (n int64, whole bool, err error) {
	if err := w.use(); err != nil {
		return 0, false, err
	}
	defer w.mu.Unlock()
	if err := w.admit(0); err != nil {
		return 0, false, err
	}
	left := w.length - w.written
	if !w.typed || w.length < 0 || w.method == http.MethodHead || w.sink == nil && int64(len(w.body))+left <= w.most() {
		return 0, false, nil
	}
	if err := w.commit(nil); err != nil {
		return 0, false, err
	}
	if r, ok := src.(*io.LimitedReader); !ok || r.N > left {
		return 0, false, nil // it may be more than was announced
	}
	n, err = w.sink.ReadFrom(src)
	w.written += n
	return n, true, err
}

// sniff sets the Content-Type from the first bytes of the body where the handler
// set none, as net/http does.
func (w *Writer) sniff(body []byte) {
	if w.typed || len(body) == 0 {
		return
	}
	w.typed = true
	w.push(exchange.Field{Name: "Content-Type", Value: http.DetectContentType(body)})
}

// commit sends the head and what was gathered; next is what will follow.
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
	if len(w.body) == 0 {
		return nil
	}
	_, err = w.sink.Write(w.body)
	w.body = nil
	return err
}

// FlushError sends what has been written so far.
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

// Flush is FlushError for handlers that know http.Flusher.
func (w *Writer) Flush() { _ = w.FlushError() }

// Hijack hands the connection over to the handler, behind the head if the handler has written a status: a
// CONNECT proxy answers 200 like that.
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
		_ = w.sink.Flush() // a dead connection cannot be hijacked
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

// CloseNotify returns a channel that gets one value when the client has gone while
// the handler runs. It is deprecated in net/http, where [http.Request.Context] took its
// place, but what was written before looks for it without asking whether it is there.
func (w *Writer) CloseNotify() <-chan bool {
	if w.use() != nil {
		return make(chan bool)
	}
	defer w.mu.Unlock()
	if w.hijacked {
		panic("net/http: CloseNotify called after Hijack")
	}
	if w.closed == nil {
		w.closed = make(chan bool, 1)
		w.stopNotify = context.AfterFunc(w.wire.Context(), func() { w.closed <- true })
	}
	return w.closed
}

// The methods that http.ResponseController looks for.

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

// endSwitched closes a connection after a 101 whose handler has not hijacked it: its client speaks another protocol now.
func (w *Writer) endSwitched() {
	conn, _, err := w.sink.Hijack()
	if err != nil {
		w.wire.CloseAfter()
		return
	}
	_ = conn.Close()
}

// Answer makes the answer of what the handler has done.
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
			w.length = w.written // there, trailers that are announced and a length go together
		}
		if w.commit(nil) != nil {
			return sent
		}
		// A head that is out cannot promise a length instead of trailers.
		_ = w.sink.Flush()
	}
	if w.sink != nil {
		if short {
			w.wire.CloseAfter() // the end of the connection is what tells the client
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
		resp.Take().Err = context.Canceled // the client has gone: it is nobody's failure
	}
	return resp
}
