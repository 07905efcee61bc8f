package stdhttp

import (
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// noTimeout is a write timeout for net/http that never expires. Without a write timeout, net/http could reset a stream that
// has ended: SetWriteDeadline changes the deadline in the background, perhaps only after the stream has closed. If the stream
// then has no timer, net/http starts one, and the timer resets the stream. If the stream has a timer, which was stopped when
// the stream closed, net/http ignores the change. With noTimeout each stream has a timer from its start.
const noTimeout = 200 * 365 * 24 * time.Hour

// never is the time after which a deadline counts as none, because only noTimeout results in such a deadline. The distance of
// half of noTimeout allows for changes of the clock.
var never = time.Now().Add(noTimeout / 2)

// A timedStream is the ResponseWriter of an HTTP/2 stream. It implements Config.Timeouts.Write and Config.Timeouts.Body, as a
// timedConn does for HTTP/1.1. A client opens and closes the window of each stream separately. Therefore the progress of the
// connection does not show the progress of a stream.
//
// When a deadline of net/http has expired, the stream is ended and the deadline cannot be moved. Therefore a deadline is set
// only to end the stream. A timer watches the operations that wait.
type timedStream struct {
	http.ResponseWriter
	server *exchange.Server
	conn   *connStreams // state of the connection that its streams share
	remote string
	secure bool
	body   *streamBody // nil if the request has no body

	mu          sync.Mutex
	foreign     bool // a handler has set a write deadline
	foreignRead bool // a handler has set a read deadline
	wrote       bool // a part of a body was written
	switched    bool // the handler has tried to switch protocols, which HTTP/2 does not support, so no answer is sent

	// A piece has the write timeout to be written. The rate is measured in the second half of this time.
	writing bool
	since   time.Time // time when the writing of the current piece began; later if the timer was late
	halfway bool      // the second half has begun
	marked  int64     // conn.sent at the start of the second half
	share   float64   // result of the method conn.each at the start of the second half

	timer   *time.Timer
	watched bool // the timer is set
	over    bool // the handler has returned
}

// connStreams are the streams of an HTTP/2 connection that write at the same time. They share the window of the connection.
// net/http sends 16 KiB of one stream, then 16 KiB of the next, and does not report when a stream waits until the others have
// been served. At a low rate with many streams, this wait is long.
type connStreams struct {
	sent atomic.Int64 // bytes that the socket has accepted, without the frames that reset streams

	mu      sync.Mutex
	writing int     // number of writing streams
	most    int     // maximum of writing since it was last 0
	share   float64 // number of bytes that each stream would have sent if all had sent the same number
}

// begin counts a stream that begins to write a piece.
func (c *connStreams) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing == 0 {
		c.most = 0
	}
	c.writing++
	c.most = max(c.most, c.writing)
}

// each returns the field share.
func (c *connStreams) each() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.share
}

// wrote records that a stream has written a piece of n bytes.
func (c *connStreams) wrote(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing--
	c.share += float64(n) / float64(c.most)
}

// shares reports whether net/http may not yet have sent a piece of a waiting stream only because other streams were sent
// first. since is what the method each returned when the wait began. After two pieces of every other stream, net/http has
// tried to send a piece of this stream. If none was sent, the client does not accept it.
func (c *connStreams) shares(since float64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.share-since < 2*streamPiece
}

// streamPiece is the size of one write to a stream, in bytes. net/http sends it as one frame.
const streamPiece = 16 << 10

// serveStream answers an HTTP/2 request.
func (s *Service) serveStream(w http.ResponseWriter, req *http.Request) {
	stream := &timedStream{ResponseWriter: w, server: s.Server, remote: req.RemoteAddr, secure: req.TLS != nil}
	if c, ok := req.Context().Value(connKey{}).(*timedConn); ok && c != nil {
		stream.conn = &c.streams
	} else {
		stream.conn = new(connStreams)
	}
	if req.ContentLength != 0 && req.Body != nil && req.Body != http.NoBody {
		stream.body = &streamBody{ReadCloser: req.Body, stream: stream}
		req.Body = stream.body
	}
	defer stream.end()
	s.ServeHTTP(stream, req)
	if stream.switched {
		panic(http.ErrAbortHandler) // otherwise net/http would answer with status 200
	}
}

// WriteHeader sends the head without the fields that RFC 9113 forbids. The field Connection of a final response remains:
// net/http removes it, and closes the connection if its value is "close".
func (s *timedStream) WriteHeader(status int) {
	if status == http.StatusSwitchingProtocols {
		s.switched = true
		return
	}
	s.switched = s.switched && status < 200
	h := s.Header()
	for name := range h {
		if exchange.OfConnection(name) && (status < 200 || !strings.EqualFold(name, "Connection")) {
			delete(h, name)
		}
	}
	s.ResponseWriter.WriteHeader(status)
}

// Write writes p. It fails if the client accepts no data for the time of the write timeout, or accepts data too slowly.
func (s *timedStream) Write(p []byte) (sent int, err error) {
	for {
		piece := p[sent:min(len(p), sent+streamPiece)]
		s.begin()
		n, err := s.ResponseWriter.Write(piece)
		s.moved(n)
		if sent += n; err != nil || sent == len(p) {
			return sent, err
		}
	}
}

// begin starts to watch the writing of a piece.
func (s *timedStream) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing, s.wrote, s.since, s.halfway = true, true, time.Now(), false
	s.conn.begin()
	if !s.foreign && !s.over {
		s.watch(s.server.WriteTimeout / 2)
	}
}

// watch calls checkRate after the given time, unless a call is already scheduled.
func (s *timedStream) watch(after time.Duration) {
	if s.watched {
		return
	}
	s.watched = true
	if s.timer == nil {
		s.timer = time.AfterFunc(after, s.checkRate)
	} else {
		s.timer.Reset(after)
	}
}

// moved records that a piece of n bytes was written.
func (s *timedStream) moved(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = false
	s.conn.wrote(n)
}

// checkRate resets the stream if the client reads the whole connection more slowly than the minimum rate, or if it accepts
// data of other streams, but none of this stream. Frame headers count as data.
func (s *timedStream) checkRate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = false
	if !s.writing || s.foreign || s.over {
		return
	}
	all, waited, sent := s.server.WriteTimeout, time.Since(s.since), s.conn.sent.Load()
	least := max(float64(s.server.MinWriteRate)*(all/2).Seconds(), 1)
	switch {
	case waited >= all && s.halfway && (float64(sent-s.marked) < least || !s.conn.shares(s.share)):
		s.server.NoteSlowReader(s.addr())
		s.conn.sent.Add(-s.resetSize())
		_ = http.NewResponseController(s.ResponseWriter).SetWriteDeadline(time.Unix(1, 0)) // the stream may have ended
	case waited >= all/2:
		if !s.halfway { // the wait for other streams is measured from now on
			s.share = s.conn.each()
		}
		// The second half begins now, even if the timer was late, because a process that was stopped could not send.
		s.halfway, s.marked, s.since = true, sent, time.Now().Add(-all/2)
		s.watch(all - all/2)
	default:
		s.watch(all/2 - waited)
	}
}

// resetSize returns the number of bytes that a reset of the stream sends: a frame of 13 bytes, to which a record of TLS 1.3
// adds 22 bytes.
func (s *timedStream) resetSize() int64 {
	if s.secure {
		return 13 + 22
	}
	return 13
}

// end leaves the stream to net/http, which writes the rest of the answer. From then on only a deadline can end the stream.
func (s *timedStream) end() {
	if s.body != nil {
		s.body.stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.wrote && !s.foreign {
		_ = http.NewResponseController(s.ResponseWriter).SetWriteDeadline(time.Now().Add(s.server.WriteTimeout))
	}
}

// endReading ends the current read of the body with an error. All later reads fail, too.
func (s *timedStream) endReading() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		_ = http.NewResponseController(s.ResponseWriter).SetReadDeadline(time.Unix(1, 0)) // the stream may have ended
	}
}

// readsForeign reports whether a handler has set a read deadline.
func (s *timedStream) readsForeign() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.foreignRead
}

func (s *timedStream) addr() netip.AddrPort {
	addr, _ := netip.ParseAddrPort(s.remote) // the zero AddrPort if there is no address
	return addr
}

// Unwrap gives http.ResponseController access to the methods of the underlying writer.
func (s *timedStream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// FlushError sends the data that is buffered.
func (s *timedStream) FlushError() error {
	if s.switched {
		return nil
	}
	s.begin()
	defer s.moved(0)
	return http.NewResponseController(s.ResponseWriter).Flush()
}

// SetWriteDeadline replaces the write timeout by the deadline t. The zero time restores the write timeout.
func (s *timedStream) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	s.foreign = !t.IsZero()
	s.mu.Unlock()
	if t.IsZero() {
		t = time.Now().Add(noTimeout)
	}
	return http.NewResponseController(s.ResponseWriter).SetWriteDeadline(t)
}

// SetReadDeadline replaces the body timeout by the deadline t. The zero time restores the body timeout.
func (s *timedStream) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	s.foreignRead = !t.IsZero()
	s.mu.Unlock()
	return http.NewResponseController(s.ResponseWriter).SetReadDeadline(t)
}

// A streamBody is the request body of an HTTP/2 stream. Its client must send with a minimum rate.
type streamBody struct {
	io.ReadCloser
	stream *timedStream

	mu      sync.Mutex
	pace    exchange.BodyPace
	reading bool
	since   time.Time // time from which the rate of the current read is measured
	timer   *time.Timer
	watched bool
	cut     bool  // cutOff was called
	refused error // error of all reads after the client was too slow, or after Close
}

// Read reads the body. It fails if the client sends too slowly.
func (b *streamBody) Read(p []byte) (int, error) {
	if err := b.begin(); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p)
	if b.end(n, err) {
		err = b.stream.server.CutBody(b.stream.addr())
		b.mu.Lock()
		defer b.mu.Unlock()
		b.refused = err
		return 0, err
	}
	switch {
	case err == nil || err == io.EOF:
		return n, err
	case timedOutIO(err):
		return n, os.ErrDeadlineExceeded // net/http wraps it, and the result is no net.Error
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refused != nil {
		return n, b.refused
	}
	return n, truncated(err)
}

// Close closes the body. Further reads fail as on HTTP/1.1.
func (b *streamBody) Close() error {
	b.mu.Lock()
	b.refused = http.ErrBodyReadAfterClose
	b.mu.Unlock()
	return b.ReadCloser.Close()
}

// begin starts to watch a read. It returns an error if the client was too slow before.
func (b *streamBody) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refused != nil {
		return b.refused
	}
	b.reading, b.since = true, time.Now()
	if b.watched {
		return nil
	}
	b.watched = true
	if left := b.pace.Left(&b.stream.server.Settings); b.timer == nil {
		b.timer = time.AfterFunc(left, b.checkRate)
	} else {
		b.timer.Reset(left)
	}
	return nil
}

// end ends the watch of a read that returned n and err. It reports whether the client was too slow.
func (b *streamBody) end(n int, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = false
	if err != nil {
		b.timer.Stop()
		b.watched = true // later reads must not start the timer, because the body has ended
		return b.cut && timedOutIO(err)
	}
	if !b.stream.readsForeign() && b.pace.TooSlow(&b.stream.server.Settings, time.Since(b.since), int64(n)) {
		b.cutOff()
		return true
	}
	return false
}

// checkRate checks the rate of the client during a read.
func (b *streamBody) checkRate() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watched = false
	if !b.reading || b.stream.readsForeign() {
		return
	}
	now := time.Now()
	if b.pace.TooSlow(&b.stream.server.Settings, now.Sub(b.since), 0) {
		b.cutOff()
		return
	}
	b.since, b.watched = now, true
	b.timer.Reset(b.pace.Left(&b.stream.server.Settings))
}

// cutOff makes the current read and all later reads fail.
func (b *streamBody) cutOff() {
	b.cut = true
	b.watched = true
	b.stream.endReading()
}

// stop ends the watch after the handler has returned.
func (b *streamBody) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watched = true
	if b.timer != nil {
		b.timer.Stop()
	}
}
