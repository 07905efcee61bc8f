package stdhttp

import (
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// noTimeout is a write timeout for net/http that never expires. With it, each HTTP/2 stream has a deadline from the
// start, whose timer is stopped when the stream closes. net/http sets a later deadline in the background, when the
// stream may be closed already, and ignores it only if it finds a stopped timer. Without one it would reset a stream
// that has ended.
const noTimeout = 200 * 365 * 24 * time.Hour

// never is before all deadlines that result from noTimeout, even if the clock is changed.
var never = time.Now().Add(noTimeout / 2)

// A timedStream is the ResponseWriter of an HTTP/2 stream. It implements Config.Timeouts.Write and Config.Timeouts.Body, as a
// timedConn does for HTTP/1.1. A client opens and closes the window of each stream separately, so the connection's progress
// does not show that of one stream.
//
// A net/http deadline that has expired ends the stream and cannot be moved. So a deadline is set only to end the stream. A
// separate timer watches waiting operations.
type timedStream struct {
	http.ResponseWriter
	server *exchange.Server
	conn   *connStreams // the streams of its connection
	remote string
	secure bool
	body   *streamBody // or nil

	mu          sync.Mutex
	foreign     bool // a handler has set a write deadline
	foreignRead bool // ... a read deadline
	wrote       bool // part of a body
	switched    bool // the handler has switched protocols, which HTTP/2 does not support: there is no answer
	writing     bool
	since       time.Time // when it began to write the current piece
	share       float64   // bytes that each stream had sent then
	marked      int64     // conn.sent at half of the time for the piece
	halfway     bool      // half of that time has passed
	timer       *time.Timer
	watched     bool // the timer is set
	over        bool // the handler has returned
}

// connStreams are the writing streams of an HTTP/2 connection. They share its window. net/http gives them turns of 16
// KiB and does not report when a stream waits for its turn, which takes long at a low rate with many streams.
type connStreams struct {
	sent atomic.Int64 // bytes accepted by the socket, without the frames that reset streams

	mu      sync.Mutex
	writing int     // number of writing streams
	most    int     // the maximum of writing since the last time it was 0
	share   float64 // bytes sent per stream, if all sent the same, according to the pieces
}

// begin counts a writing stream.
func (c *connStreams) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing == 0 {
		c.most = 0
	}
	c.writing++
	c.most = max(c.most, c.writing)
}

// each returns the bytes sent per stream.
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

// shares reports whether a writing stream may still wait for its turn. since is the value of each at its start. Once
// the other streams have sent two pieces each, net/http would have sent one of this stream.
func (c *connStreams) shares(since float64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.share-since < 2*streamPiece
}

// streamPiece is the size of one write to a stream, in bytes. It is also the size of a frame.
const streamPiece = 16 << 10

// serveStream answers a request of HTTP/2.
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
		panic(http.ErrAbortHandler) // otherwise net/http would answer with 200
	}
}

// WriteHeader sends the head without connection-specific fields. net/http omits Connection except in interim answers,
// and closes the connection if it says so.
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

// Write writes p while the client accepts data in time.
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

// watch calls look after a time, unless it is scheduled.
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

// checkRate resets the stream if its client accepts too little of all data on the connection, or nothing of this stream
// while it accepts others. Frame headers are included in the count.
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
		_ = http.NewResponseController(s.ResponseWriter).SetWriteDeadline(time.Unix(1, 0)) // it may have ended
	case waited >= all/2:
		if !s.halfway { // the stream has had its turns by now
			s.share = s.conn.each()
		}
		// The client has the other half of the time from now, even if this timer is late: a stopped process could not send.
		s.halfway, s.marked, s.since = true, sent, time.Now().Add(-all/2)
		s.watch(all - all/2)
	default:
		s.watch(all/2 - waited)
	}
}

// resetSize returns the number of bytes that reset the stream: a frame, in a TLS 1.3 record.
func (s *timedStream) resetSize() int64 {
	if s.secure {
		return 13 + 22
	}
	return 13
}

// end leaves the stream to net/http, which writes the rest of the answer. From now on only a deadline can end it.
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

// endReading makes the waiting read of the body and all later reads fail.
func (s *timedStream) endReading() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		_ = http.NewResponseController(s.ResponseWriter).SetReadDeadline(time.Unix(1, 0)) // it may have ended
	}
}

// readsForeign reports whether a handler has set a read deadline.
func (s *timedStream) readsForeign() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.foreignRead
}

func (s *timedStream) addr() netip.AddrPort {
	addr, _ := netip.ParseAddrPort(s.remote) // else none
	return addr
}

// Unwrap gives http.ResponseController access to other methods.
func (s *timedStream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// FlushError sends buffered data.
func (s *timedStream) FlushError() error {
	if s.switched {
		return nil
	}
	s.begin()
	defer s.moved(0)
	return http.NewResponseController(s.ResponseWriter).Flush()
}

// SetWriteDeadline replaces our deadline; the zero time restores it.
func (s *timedStream) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	s.foreign = !t.IsZero()
	s.mu.Unlock()
	if t.IsZero() {
		t = time.Now().Add(noTimeout)
	}
	return http.NewResponseController(s.ResponseWriter).SetWriteDeadline(t)
}

// SetReadDeadline replaces our read deadline; the zero time restores it.
func (s *timedStream) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	s.foreignRead = !t.IsZero()
	s.mu.Unlock()
	return http.NewResponseController(s.ResponseWriter).SetReadDeadline(t)
}

// A streamBody is the request body of an HTTP/2 request with a minimum rate.
type streamBody struct {
	io.ReadCloser
	stream *timedStream

	mu      sync.Mutex
	pace    exchange.BodyPace
	reading bool
	since   time.Time // when that began
	timer   *time.Timer
	watched bool
	cut     bool
	refused error // the error of reads once the client was too slow
}

// Read reads the body.
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
	return n, err
}

// begin starts to watch a read, unless the body has ended.
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

// end checks the client after a read and reports whether it was too slow.
func (b *streamBody) end(n int, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = false
	if err != nil {
		b.timer.Stop()
		b.watched = true // for good: the body has ended
		return b.cut && timedOutIO(err)
	}
	if !b.stream.readsForeign() && b.pace.TooSlow(&b.stream.server.Settings, time.Since(b.since), int64(n)) {
		b.cutOff()
		return true
	}
	return false
}

// checkRate checks a client while a read waits.
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

// cutOff makes this read and all later ones fail.
func (b *streamBody) cutOff() {
	b.cut = true
	b.watched = true
	b.stream.endReading()
}

// stop ends the watch when the handler has returned.
func (b *streamBody) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watched = true
	if b.timer != nil {
		b.timer.Stop()
	}
}
