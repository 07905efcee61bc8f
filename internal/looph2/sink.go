//go:build linux

package looph2

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/exchange"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/request"
)

// A sink receives a streamed answer. It copies the pieces to memory from which the loop sends them. At most streamRoom bytes wait
// there.
type sink struct {
	x      *Wire
	own    *stream
	silent bool  // the answer has no body
	left   int64 // announced bytes not yet written, negative if no length is announced
}

var errGone = errors.New("the client has gone")

// over returns the reason why the answer cannot be written further. A deadline that has passed during a write cannot be
// extended, as on a connection of HTTP/1.1. own.s.mu is held.
func (own *stream) over() error {
	switch {
	case own.slow:
		return fmt.Errorf("the client takes too little of the answer: %w", os.ErrDeadlineExceeded)
	case own.answer.canceled() || own.action == freed:
		return errGone
	case own.lapsed || own.writing.Passed():
		own.flows().lapsed = true
		return os.ErrDeadlineExceeded
	}
	return nil
}

func (k *sink) Write(p []byte) (int, error) {
	n, err := k.write(p)
	return n, k.failed(err)
}

// failed returns err. With an error it ends the context of the request, as net/http does, before the handler learns of the
// error.
func (k *sink) failed(err error) error {
	if err != nil {
		k.own.cancelAll()
	}
	return err
}

func (k *sink) write(p []byte) (written int, err error) {
	own := k.own
	s := own.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.silent {
		return len(p), own.over()
	}
	defer func() { k.left -= int64(written) }()
	for len(p) > 0 {
		if own.out.len == 0 && len(p) > streamRoom && own.over() == nil {
			n := own.sendLent(p)
			p = p[n:]
			written += n
			continue
		}
		for own.out.room() <= 0 && own.over() == nil {
			s.notify(own)
			own.setWorking(false)
			own.moved.Wait()
		}
		if err := own.over(); err != nil {
			return written, err
		}
		n := min(len(p), own.out.room())
		own.out.add(p[:n])
		p = p[n:]
		written += n
		own.holdOutput()
	}
	if own.out.len >= streamRoom/2 {
		s.notify(own)
	}
	return written, nil
}

// sendLent lets the loop send from p. It returns the number of sent bytes when p is sent or the stream has ended.
// own.s.mu is held.
func (own *stream) sendLent(p []byte) (sent int) {
	own.lent, own.lentBody = p, own.s.c.HoldBody(own.accountOf(), p[:len(p):len(p)]) // all of it is in memory until the last byte is sent
	own.holdOutput()
	own.s.notify(own)
	own.setWorking(false)
	for len(own.lent) > 0 && own.over() == nil {
		own.moved.Wait()
	}
	sent = len(p) - len(own.lent)
	own.endLoan()
	return sent
}

// endLoan ends the use of a Write's slice. own.s.mu is held.
func (own *stream) endLoan() {
	own.lentBody.Release()
	own.lent, own.lentBody = nil, engine.HeldBody{}
}

// unsent returns the number of bytes of a streamed answer that wait to be sent. own.s.mu is held.
func (own *stream) unsent() int { return own.out.len + len(own.lent) }

// holdOutput corrects the charge for the buffered bytes, and ends the reservation for the answer. own.s.mu is held.
func (own *stream) holdOutput() {
	own.chargeOutput()
	own.releaseReservation()
}

// chargeOutput sets the charge for the buffered bytes and the interim heads. Unlike holdOutput it keeps the reservation for the
// answer. own.s.mu is held.
func (own *stream) chargeOutput() {
	own.hold(memory.Output, int64(own.out.size+own.headsCost))
}

// fileBuffers are buffers for reading files.
var fileBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

func (k *sink) ReadFrom(src io.Reader) (int64, error) {
	if file, _ := exchange.RegularFile(src); file == nil || k.silent {
		return exchange.CopyPieces(k, src)
	}
	buf := fileBuffers.Get().(*[64 << 10]byte)
	defer fileBuffers.Put(buf)
	type writer struct{ io.Writer } // hides k.ReadFrom
	return io.CopyBuffer(writer{k}, src, buf[:])
}

func (k *sink) Flush() error { return k.failed(k.flush()) }

func (k *sink) flush() error {
	own := k.own
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	if err := own.over(); err != nil {
		return err
	}
	if own.action.isLate() {
		return exchange.ErrLate
	}
	own.releaseReservation()
	own.s.notify(own)
	return nil
}

// Hijack fails, as on net/http: many streams share a connection of HTTP/2.
func (k *sink) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}

func (k *sink) Finish(trailers http.Header) {
	own := k.own
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	_ = own.over() // records a deadline that has passed
	if !own.answer.started() || !k.silent && (k.left > 0 || own.lapsed) {
		// No streamed answer has begun (a 101), or its body is incomplete.
		own.answer.on(abort)
		own.s.notify(own)
		return
	}
	for name, value := range request.Sendable(trailers) {
		own.flows().trailers = append(own.trailers, [2]string{name, value})
	}
	own.answer.on(finish)
	if k.silent && own.answer == finished { // the head has ended the stream
		own.answer.on(send)
	}
	own.s.notify(own)
}

func (k *sink) SetReadDeadline(t time.Time) error {
	return k.own.setDeadline(func(f *flow) *deadline { return &f.reading }, t)
}

func (k *sink) SetWriteDeadline(t time.Time) error {
	return k.own.setDeadline(func(f *flow) *deadline { return &f.writing }, t)
}

func (k *sink) EnableFullDuplex() error { return nil }

// A deadline is the read or write deadline that a standard handler has set. session.mu guards it. A new deadline takes effect at
// once, also for a Read or a Write that waits.
type deadline struct {
	request.Deadline
	timer *time.Timer
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
}

// outOfTime reports whether a standard handler's deadline for writing has passed. Then an answer that has not begun is not sent, and
// the stream is reset.
func (own *stream) outOfTime() bool {
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	return own.lapsed || own.writing.Passed()
}

func (own *stream) setDeadline(of func(*flow) *deadline, t time.Time) error {
	own.s.mu.Lock()
	defer own.s.mu.Unlock()
	if own.action == freed {
		return errGone
	}
	d := of(own.flows())
	d.Time = t
	d.stop()
	if !t.IsZero() {
		d.timer = time.AfterFunc(max(time.Until(t), 0), func() { wake(own.moved.L, &own.moved) })
	}
	own.moved.Broadcast()
	return nil
}

// wake wakes the goroutines that wait on moved.
func wake(mu sync.Locker, moved *sync.Cond) {
	mu.Lock()
	defer mu.Unlock()
	moved.Broadcast()
}
