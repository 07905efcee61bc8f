//go:build linux

package engine

import (
	"io"

	"github.com/dunlinhttp/dunlin/internal/tlsmem"
)

// In TLS a peer ends its side with a record (close_notify), and may leave its socket open. During a call of the handler the
// socket is not read. Therefore, if that call has set a function for a hangup (Conn.SetHangup), the goroutine that detects new
// bytes checks whether they are a close_notify. As on net/http, only the next record is checked.
//
// For this check the loop may briefly use the TLS state of a connection that is away, under tlsState.mu. The owner holds the lock
// in every method that uses TLS, except while the method waits. The loop never waits for the lock: if it is not free, the loop
// sets tlsState.noted, and the owner does the check.

// maxAlert bounds the length of a sealed alert in bytes: two bytes and the overhead of any suite.
const maxAlert = 64

// sealedAlert13 is the length of a sealed alert in TLS 1.3, whose records do not show their type.
const sealedAlert13 = 2 + 1 + 16

// useTLS begins a use of the connection's TLS state by an owner without a loop. It returns nil for a connection without TLS.
func (c *Conn) useTLS() *tlsState {
	t := c.secure()
	if t != nil {
		t.lock()
	}
	return t
}

// doneTLS ends the use of t, which useTLS has returned.
func (c *Conn) doneTLS(t *tlsState) {
	if t == nil {
		return
	}
	unseen := t.isUnseen()
	t.unlock()
	if t.noted.Load() && t.noted.Swap(false) || unseen {
		c.lookForEnd(t)
	}
}

func (t *tlsState) lock()   { t.mu.Lock(); t.used = true }
func (t *tlsState) unlock() { t.used = false; t.mu.Unlock() }

// awaitLook waits until the loop has finished its check for the peer's end, if it is making one.
func (t *tlsState) awaitLook() {
	t.mu.Lock()
	defer t.mu.Unlock()
}

// pauseTLS releases the lock of the connection's TLS state while its owner waits, if the owner holds it. It returns the function
// that takes the lock again.
func (c *Conn) pauseTLS() (goOn func()) {
	t := c.secure()
	if t == nil || !t.used {
		return func() {}
	}
	c.doneTLS(t)
	return t.lock
}

// lookForEnd checks for the peer's end, for the owner of an away connection.
func (c *Conn) lookForEnd(t *tlsState) {
	if !c.hangup.waits() {
		return
	}
	t.mu.Lock()
	ended := t.endIsNext(c)
	t.mu.Unlock()
	if ended {
		c.fireHangup()
	}
}

// glanceForEnd is lookForEnd for the loop.
func (c *Conn) glanceForEnd(t *tlsState) {
	if !c.hangup.waits() {
		return
	}
	if !t.mu.TryLock() {
		t.noted.Store(true)
		if !t.mu.TryLock() {
			return // the owner checks when it unlocks
		}
		t.noted.Store(false)
	}
	ended := t.endIsNext(c)
	t.mu.Unlock()
	if ended {
		c.fireHangup()
	}
}

// endIsNext decrypts the next record if it may be the peer's close_notify, and reports whether the peer has ended. Plaintext that
// it finds is stored in t.early. The caller holds t.mu.
func (t *tlsState) endIsNext(c *Conn) bool {
	if t.phase != tlsOpen || t.ended {
		return t.ended
	}
	t.unseen = true
	if len(t.early) > 0 || len(t.conn.Lent()) > 0 {
		return false
	}
	if len(t.records()) > 0 {
		n := t.keptAlert(c)
		if n == 0 {
			return false
		}
		if t.left {
			if over := t.readAhead(); over || t.left {
				return over
			}
		}
		t.conn.Lend(t.records()[:n])
		t.lent += n
		return t.readAhead()
	}
	var record [5 + maxAlert]byte
	n, errno := peek(c.fd, record[:])
	t.unseen = errno == 0
	length := alertLen(record[:max(n, 0)])
	if length == 0 || length > n {
		return false
	}
	if t.left {
		if over := t.readAhead(); over || t.left {
			return over
		}
	}
	if n, errno = recv(c.fd, record[:length]); errno != 0 || n != length {
		return false // unreachable: no other goroutine reads the socket
	}
	t.conn.Lend(record[:length])
	return t.readAhead()
}

// isUnseen reports whether the peer's close_notify may be the next record although no further event will report it: close_notify
// may have arrived together with input that the owner has read since.
func (t *tlsState) isUnseen() bool {
	if !t.unseen || t.phase != tlsOpen || t.ended || len(t.early) > 0 || len(t.conn.Lent()) > 0 {
		return false
	}
	kept := t.records()
	return len(kept) == 0 || alertLen(kept) != 0
}

// readAhead reads some of the lent records, and reports whether the stream has ended.
func (t *tlsState) readAhead() (over bool) {
	var b [maxAlert]byte
	n, err := t.conn.Read(b[:])
	t.early = append(t.early, b[:n]...)
	t.ended = err == io.EOF
	failed := err != nil && !t.ended && !tlsmem.NeedsMore(err)
	t.left = err == nil || failed // the next Read of the owner returns the error
	return t.ended || failed
}

// keptAlert returns the length of the first kept record if the record may be an alert and is complete, otherwise 0. If bytes of
// the record are missing and have arrived, it reads them first.
func (t *tlsState) keptAlert(c *Conn) int {
	for {
		kept := t.records()
		need := 5
		if len(kept) >= 5 {
			if need = alertLen(kept); need <= len(kept) {
				return need
			}
		}
		at := len(t.buf.b)
		if cap(t.buf.b)-at < need-len(kept) {
			return 0
		}
		n, errno := recv(c.fd, t.buf.b[at:at+need-len(kept)])
		if errno != 0 || n == 0 {
			return 0
		}
		t.buf.b = t.buf.b[:at+n]
	}
}

// alertLen returns the length of the record at the beginning of b if the record may be an alert, otherwise 0.
func alertLen(b []byte) int {
	if len(b) < 5 {
		return 0
	}
	length := int(b[3])<<8 + int(b[4])
	const alert, data = 21, 23
	if kind := b[0]; kind != alert && (kind != data || length != sealedAlert13) || length > maxAlert {
		return 0
	}
	return 5 + length
}

// beforeAlert returns the length of the complete records at the beginning of b that are lent together. A record that may be an
// alert is lent alone, so that it is known when the alert is the next record.
func beforeAlert(b []byte) int {
	n := 0
	for n < len(b) {
		length := tlsmem.First(b[n:])
		if length == 0 {
			break
		}
		if alertLen(b[n:]) != 0 {
			if n == 0 {
				n = length
			}
			break
		}
		n += length
	}
	return n
}

// Unread returns plaintext that the check for the peer's end has read. These bytes follow the input of this call and the results
// of Read. Usually there are none, and never more than a few.
func (c *Conn) Unread() []byte {
	t := c.useTLS()
	if t == nil {
		return nil
	}
	defer c.doneTLS(t)
	return t.early
}
