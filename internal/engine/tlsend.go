//go:build linux

package engine

import (
	"io"

	"github.com/dunlinhttp/dunlin/internal/tlsmem"
)

// By TLS a peer says that it has finished sending in a record (close_notify), and may leave its socket
// open. While a call of the handler goes on, nobody reads: so whoever notices that something has come,
// and knows that somebody waits for the end (Conn.SetHangup), looks whether it is that. As on net/http, it looks no
// further than what comes next.
//
// So the loop may use the TLS of a connection that is away from it, for a moment: the two take turns by tlsState.mu.
// The owner has it in every method that uses TLS, but not while that waits. The loop never waits for it: it leaves a note.

// mostAlert bounds the length of a sealed alert, in bytes: two bytes with what any suite adds to them.
const mostAlert = 64

// sealedAlert13 is that of TLS 1.3, where records do not show what they carry.
const sealedAlert13 = 2 + 1 + 16

// useTLS begins a use of the connection's TLS by its owner, which is without a loop; nil if it has none.
func (c *Conn) useTLS() *tlsState {
	t := c.secure()
	if t != nil {
		t.lock()
	}
	return t
}

// doneTLS ends it.
func (c *Conn) doneTLS(t *tlsState) {
	if t == nil {
		return
	}
	t.unlock()
	if t.noted.Load() && t.noted.Swap(false) {
		c.lookForEnd(t)
	}
}

func (t *tlsState) lock()   { t.mu.Lock(); t.used = true }
func (t *tlsState) unlock() { t.used = false; t.mu.Unlock() }

// awaitLook returns when the loop, if it looks for the peer's end, is done with that.
func (t *tlsState) awaitLook() {
	t.mu.Lock()
	defer t.mu.Unlock()
}

// pauseTLS lets go of the connection's TLS while its owner waits, if that uses it, and returns what ends the pause.
func (c *Conn) pauseTLS() (goOn func()) {
	t := c.secure()
	if t == nil || !t.used {
		return func() {}
	}
	c.doneTLS(t)
	return t.lock
}

// lookForEnd looks for the peer's end, for the owner of an away connection.
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
			return // who has it looks
		}
		t.noted.Store(false)
	}
	ended := t.endIsNext(c)
	t.mu.Unlock()
	if ended {
		c.fireHangup()
	}
}

// endIsNext takes in what comes next if it may be the peer's end, and reports whether it is. What
// it was instead is in t.early. t.mu is held.
func (t *tlsState) endIsNext(c *Conn) bool {
	if t.phase != tlsOpen || t.ended || t.left || t.buf != nil || len(t.early) > 0 || len(t.conn.Lent()) > 0 {
		return t.ended
	}
	var record [5 + mostAlert]byte
	n, errno := peek(c.fd, record[:])
	if errno != 0 || n < 5 {
		return false
	}
	length := 5 + int(record[3])<<8 + int(record[4])
	const alert, data = 21, 23
	if kind := record[0]; length > n || kind != alert && (kind != data || length != 5+sealedAlert13) {
		return false
	}
	if n, errno = recv(c.fd, record[:length]); errno != 0 || n != length {
		return false // only we read
	}
	t.conn.Lend(record[:length])
	var b [mostAlert]byte
	n, err := t.conn.Read(b[:])
	t.early = append(t.early, b[:n]...)
	t.ended = err == io.EOF
	failed := err != nil && !t.ended && !tlsmem.NeedsMore(err)
	t.left = err == nil || failed // the owner is told by its next Read
	return t.ended || failed
}

// Unread returns what the peer has sent behind the input of this call and what Read has returned, as far as it was
// read ahead: a few bytes at most, and mostly none.
func (c *Conn) Unread() []byte {
	t := c.useTLS()
	if t == nil {
		return nil
	}
	defer c.doneTLS(t)
	return t.early
}
