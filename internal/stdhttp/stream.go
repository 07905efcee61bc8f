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

// noTimeout is the write timeout that net/http is given, which ends nothing: with one, each stream of HTTP/2 has a deadline from its
// beginning on, which is stopped when the stream closes. Net/http sets a later one in the background, where the stream may have closed
// by then, and leaves that alone only if it finds a stopped one. Else it would reset a stream that has ended.
const noTimeout = 200 * 365 * 24 * time.Hour

// never is what deadlines that come of noTimeout are later than, though the clock may be set.
var never = time.Now().Add(noTimeout / 2)

// A timedStream is the ResponseWriter of one stream of HTTP/2. It gives effect to
// Config.WriteTimeout and Config.BodyTimeout, which a timedConn does for HTTP/1.1: a client
// opens and shuts the window of each stream by itself, so that the connection says
// nothing of any of them.
//
// A deadline of net/http cannot be moved any more once it has passed: it ends the
// stream. So it is set only to end it. What waits is watched by a timer of our own.
type timedStream struct {
	http.ResponseWriter
	server *exchange.Server
	conn   *connStreams // those of its connection
	remote string
	secure bool
	body   *streamBody // nil for none

	mu          sync.Mutex
	foreign     bool // a handler has set a write deadline
	foreignRead bool // ... a read deadline
	wrote       bool // part of a body
	switched    bool // the handler has said that another protocol follows, which HTTP/2 knows not: there is no answer
	writing     bool
	since       time.Time // when it began to write the present piece
	share       float64   // what each had had then
	marked      int64     // conn.sent when half of the time for that had passed
	halfway     bool      // it has
	timer       *time.Timer
	watched     bool // timer is set
	over        bool // the handler has returned
}

// connStreams are the streams of an HTTP/2 connection that write. They share its window: net/http lets them
// take turns of 16 KiB, and does not tell when one of them waits, which at a low rate and with many streams
// takes long.
type connStreams struct {
	sent atomic.Int64 // bytes that its socket has taken, but for those by which streams are cut

	mu      sync.Mutex
	writing int     // streams that write
	most    int     // ... since one has
	share   float64 // bytes that each of them has had, if all had as much, by the pieces that are sent
}

// begin notes that one more writes.
func (c *connStreams) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing == 0 {
		c.most = 0
	}
	c.writing++
	c.most = max(c.most, c.writing)
}

// each returns what each has had.
func (c *connStreams) each() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.share
}

// wrote notes that one has written a piece of n bytes.
func (c *connStreams) wrote(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing--
	c.share += float64(n) / float64(c.most)
}

// shares reports whether a stream that writes may just be waiting for its turn. since is the share of each
// when it began to: once the others have had two pieces each, net/http would have sent one of this stream.
func (c *connStreams) shares(since float64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.share-since < 2*streamPiece
}

// streamPiece is how much of an answer, in bytes, is written to a stream at once. It is also the size of a frame.
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
		panic(http.ErrAbortHandler) // else net/http would answer with 200
	}
}

// WriteHeader sends the head, without the fields that have no place in HTTP/2. Net/http leaves out Connection, but for interim
// answers, and ends the connection when it says so.
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

// Write writes p, for as long as the client takes some of it in time.
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

// begin has the writing of a piece watched.
func (s *timedStream) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing, s.wrote, s.since, s.halfway = true, true, time.Now(), false
	s.conn.begin()
	if !s.foreign && !s.over {
		s.watch(s.server.WriteTimeout / 2)
	}
}

// watch has look called after a time, unless it will be anyway.
func (s *timedStream) watch(after time.Duration) {
	if s.watched {
		return
	}
	s.watched = true
	if s.timer == nil {
		s.timer = time.AfterFunc(after, s.look)
	} else {
		s.timer.Reset(after)
	}
}

// moved notes that a piece of n bytes has been written.
func (s *timedStream) moved(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = false
	s.conn.wrote(n)
}

// look ends the stream if its client takes too little of all that is written on the connection, or nothing of
// this stream while it takes others. The headers of frames count, too.
func (s *timedStream) look() {
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
		_ = http.NewResponseController(s.ResponseWriter).SetWriteDeadline(time.Unix(1, 0)) // it may be over
	case waited >= all/2:
		if !s.halfway { // by now it has its turns
			s.share = s.conn.each()
		}
		// The client has the other half from here on, however late this is: a process that was stopped has not let it take anything.
		s.halfway, s.marked, s.since = true, sent, time.Now().Add(-all/2)
		s.watch(all - all/2)
	default:
		s.watch(all/2 - waited)
	}
}

// resetSize is how many bytes it takes to cut the stream: a frame, in a record of TLS 1.3.
func (s *timedStream) resetSize() int64 {
	if s.secure {
		return 13 + 22
	}
	return 13
}

// end leaves the stream to net/http, which writes what is left of the answer. From here
// on a deadline is all that can end it.
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

// endReading has the read of the body fail that waits, and all that follow.
func (s *timedStream) endReading() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		_ = http.NewResponseController(s.ResponseWriter).SetReadDeadline(time.Unix(1, 0)) // it may be over
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

// Unwrap gives http.ResponseController the rest.
func (s *timedStream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// FlushError sends what is buffered.
func (s *timedStream) FlushError() error {
	if s.switched {
		return nil
	}
	s.begin()
	defer s.moved(0)
	return http.NewResponseController(s.ResponseWriter).Flush()
}

// SetWriteDeadline sets a deadline in place of ours; with the zero time ours is in force
// again.
func (s *timedStream) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	s.foreign = !t.IsZero()
	s.mu.Unlock()
	if t.IsZero() {
		t = time.Now().Add(noTimeout)
	}
	return http.NewResponseController(s.ResponseWriter).SetWriteDeadline(t)
}

// SetReadDeadline likewise.
func (s *timedStream) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	s.foreignRead = !t.IsZero()
	s.mu.Unlock()
	return http.NewResponseController(s.ResponseWriter).SetReadDeadline(t)
}

// A streamBody is the body of a request of HTTP/2, whose client must be fast enough.
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
	refused error // what reads return since the client was found to be too slow
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

// begin has a read watched, unless there is nothing more to read.
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
		b.timer = time.AfterFunc(left, b.look)
	} else {
		b.timer.Reset(left)
	}
	return nil
}

// end judges the client after a read; true if it was too slow.
func (b *streamBody) end(n int, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = false
	if err != nil {
		b.timer.Stop()
		b.watched = true // for good: there is nothing more to wait for
		return b.cut && timedOutIO(err)
	}
	if !b.stream.readsForeign() && b.pace.TooSlow(&b.stream.server.Settings, time.Since(b.since), int64(n)) {
		b.cutOff()
		return true
	}
	return false
}

// look judges a client for which a read waits.
func (b *streamBody) look() {
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

// cutOff has this read fail, and all that follow.
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
