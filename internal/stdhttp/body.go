package stdhttp

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dunlinhttp/dunlin/internal/exchange"
)

// A TimedBody is a request body that limits the time in which the client sends nothing, and requires a minimum rate.
// It sets a deadline only when it reads from the connection, because most bodies arrive together with their head.
type TimedBody struct {
	io.ReadCloser
	conn    *timedConn
	reading sync.Mutex // held by Read and by skip, which may run concurrently
	skipped bool       // a part of the body was discarded, so the action must not read the rest; guarded by reading

	mu   sync.Mutex
	pace exchange.BodyPace
	set  bool // the TimedBody has set a deadline
	over bool // the body or the request has ended

	received atomic.Int64 // bytes of the body that were read

	cut atomic.Pointer[error] // set if the client was too slow or closed the connection, so that the body is incomplete
}

// NewTimedBody returns the body of a request with time limits. It returns nil if the connection does not belong to a
// Server, or if it uses HTTP/2, where many streams share a connection.
func NewTimedBody(req *http.Request) *TimedBody {
	c, _ := req.Context().Value(connKey{}).(*timedConn)
	if c == nil || req.ProtoMajor != 1 {
		return nil
	}
	return &TimedBody{ReadCloser: req.Body, conn: c}
}

// Read reads the body. It fails if the client sends too slowly.
func (b *TimedBody) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	if b.skipped {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.read(p)
}

// skip discards up to n bytes of the body and reports whether the body has ended. A concurrent reader, as in a reverse
// proxy, then gets an error, so that it does not mistake the part that it has read for the whole body.
func (b *TimedBody) skip(n int64) (all bool) {
	_, err := io.CopyN(io.Discard, (*skippedBody)(b), n+1)
	return err != nil
}

// A skippedBody is a TimedBody whose Read is for skip.
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
		b.Stop() // otherwise net/http would wait for the rest
		if cut := b.cut.Load(); cut != nil {
			err = *cut // net/http returns other errors for trailers
		} else if err == io.ErrUnexpectedEOF {
			b.cut.Store(&err) // net/http would return io.EOF from now on
		}
	}
	return n, err
}

// receive reads from the connection. When the last byte of the body was read, net/http may read from the connection
// itself. For this, the method end removes the deadline.
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
	if n == 0 && err != nil && !timedOutIO(err) {
		cut := truncated(err)
		b.cut.Store(&cut)
	}
	return n, err
}

// truncated returns the error of a body whose client is gone. It wraps io.ErrUnexpectedEOF.
func truncated(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)
}

// tooSlow reports whether the client was too slow in a read that waited and returned n and err.
func (b *TimedBody) tooSlow(waited time.Duration, n int, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || b.conn.foreign.Load() {
		return false
	}
	return b.pace.TooSlow(&b.conn.server.Settings, waited, int64(n)) || timedOutIO(err)
}

// renew sets the deadline and reports whether it did. If again is false, it sets the first deadline; if again is true,
// it sets a later deadline.
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

// end removes the deadline at the end of the body.
func (b *TimedBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.set && !b.conn.foreign.Load() {
		b.set = false
		_ = b.conn.setRead(time.Time{}) // the connection may already be closed
	}
}

// Stop ends the use of the connection at the end of the request. A deadline remains until net/http sets the next one.
func (b *TimedBody) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}

// Ended reports whether the body will not be read again.
func (b *TimedBody) Ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over
}

// StopUnread is Stop for a body that was not read to its end. net/http reads the rest after the answer, within
// BodyTimeout.
func (b *TimedBody) StopUnread() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if !b.conn.foreign.Load() {
		b.conn.rest.Store(true)
		_ = b.conn.setRead(time.Now().Add(b.conn.server.BodyTimeout)) // the connection may already be closed
	}
}
