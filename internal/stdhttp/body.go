package stdhttp

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A TimedBody is a request body whose client may pause for a limited time, and must
// be fast enough. The deadline is set only when the connection is read, for most bodies
// have come with their head.
type TimedBody struct {
	io.ReadCloser
	conn    *timedConn
	reading sync.Mutex // held by Read and skip, which may meet
	skipped bool       // some of it, under reading: what comes after is no use to the action

	mu   sync.Mutex
	pace exchange.BodyPace
	set  bool // the deadline is, by us
	over bool // the body has ended, or its request

	received atomic.Int64 // bytes read of the body

	cut atomic.Pointer[error] // that the client was too slow: what had come by then is lost
}

// NewTimedBody returns the body of a request, bounded in time; nil unless its connection
// is one of a Server's. Of HTTP/2 a connection carries many: there it is nil, too.
func NewTimedBody(req *http.Request) *TimedBody {
	c, _ := req.Context().Value(connKey{}).(*timedConn)
	if c == nil || req.ProtoMajor != 1 {
		return nil
	}
	return &TimedBody{ReadCloser: req.Body, conn: c}
}

// Read reads the body.
func (b *TimedBody) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	if b.skipped {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.read(p)
}

// skip reads up to n bytes for nobody, or the rest, and reports whether that was all. An action that reads at the same
// time, as a reverse proxy does, must not take what it has got before for the whole.
func (b *TimedBody) skip(n int64) (all bool) {
	_, err := io.CopyN(io.Discard, (*skippedBody)(b), n+1)
	return err != nil
}

type skippedBody TimedBody

func (s *skippedBody) Read(p []byte) (int, error) {
	b := (*TimedBody)(s)
	b.reading.Lock()
	defer b.reading.Unlock()
	n, err := b.read(p)
	b.skipped = b.skipped || n > 0
	return n, err
}

func (b *TimedBody) read(p []byte) (int, error) {
	if err := b.cut.Load(); err != nil {
		return 0, *err
	}
	b.conn.body.Store(b)
	n, err := b.ReadCloser.Read(p)
	b.conn.body.Store(nil)
	b.received.Add(int64(n))
	switch err {
	case nil:
	case io.EOF:
		b.end()
	default:
		b.Stop() // net/http shall not wait for the rest either
		if cut := b.cut.Load(); cut != nil {
			err = *cut // of trailers net/http says that they are too long, or cut off
		}
	}
	return n, err
}

// receive reads the connection for the body. Net/http may call it for another
// purpose as soon as the body's last byte is here; end frees that read.
func (b *TimedBody) receive(p []byte) (int, error) {
	b.renew(false)
	start := time.Now()
	n, err := b.conn.read(p)
	if n == 0 && timedOutIO(err) && b.renew(true) {
		n, err = b.conn.read(p)
	}
	if b.tooSlow(time.Since(start), n, err) {
		err := b.conn.server.CutBody(addrPortOf(b.conn))
		b.cut.Store(&err)
		return 0, err
	}
	return n, err
}

// tooSlow judges the client after it was waited for.
func (b *TimedBody) tooSlow(waited time.Duration, n int, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || b.conn.foreign.Load() {
		return false
	}
	return b.pace.TooSlow(&b.conn.server.Settings, waited, int64(n)) || timedOutIO(err)
}

// renew sets the deadline, again if that is asked for; false if it does not.
func (b *TimedBody) renew(again bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || b.set != again || b.conn.foreign.Load() {
		return false
	}
	b.set = true
	t := time.Now().Add(b.conn.server.BodyTimeout)
	if again {
		return b.conn.reads.renew(b.conn.Conn, t) == nil
	}
	return b.conn.setRead(t) == nil
}

// end takes the deadline back.
func (b *TimedBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.set && !b.conn.foreign.Load() {
		b.set = false
		_ = b.conn.setRead(time.Time{}) // the connection may be closed already
	}
}

// Stop ends the use of the connection, when the request is over. A deadline stays
// until net/http sets the next.
func (b *TimedBody) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}

// Ended reports whether nothing more will be read of it.
func (b *TimedBody) Ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over
}

// StopUnread is Stop for a body that was not read to its end, the rest of which net/http
// reads once the answer is sent.
func (b *TimedBody) StopUnread() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if !b.conn.foreign.Load() {
		b.conn.rest.Store(true)
		_ = b.conn.setRead(time.Now().Add(b.conn.server.BodyTimeout)) // the connection may be closed already
	}
}
