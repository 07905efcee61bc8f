//go:build linux

package engine

import (
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/tlsmem"
)

// receiveTLS is receive for a connection with TLS. Records are decrypted in place: the plaintext of a record is shorter than the
// record, so it ends before the records that are not decrypted yet.
//
//	read buffer: kept input │ plaintext ▶ ◀ │ records │ beginning of a record
func (d *Driver) receiveTLS(c *Conn, t *tlsState) {
	if t.phase == tlsGreeting {
		d.greet(c, t)
		return
	}
	if t.ended {
		d.receiveEnd(c)
		return
	}
	raw := d.roomForRecords(len(c.kept()) + len(t.records()))
	kept := copy(raw, c.kept())
	have := kept + copy(raw[kept:], t.records())
	into := d.loop.readSpace(raw, have)
	n, errno := recv(c.fd, into)
	if n == 0 && errno == 0 {
		d.receiveEnd(c)
		return
	}
	if !c.tookIn(n, errno, n < len(into)) {
		return
	}
	records := raw[kept : have+n]
	whole, count := tlsmem.Records(records)
	plain, err := t.open(raw[:kept], records[:whole], count)
	if err != nil {
		d.failTLS(c, t, err)
		return
	}
	t.keepRecords(c, records[whole:])
	if t.ended {
		c.flags |= flagReadable // the next visit handles the end
	}
	if len(plain) == kept {
		d.send(c) // replies of the protocol
		return
	}
	d.engine.buffers.put(c.in)
	c.in = nil
	d.serve(c, d.takeInput(len(plain)))
}

// roomForRecords returns the loop's read buffer, with room for a complete record after the given number of kept bytes.
func (d *Driver) roomForRecords(kept int) []byte {
	l := d.loop
	raw := l.readBuf()
	if len(raw)-kept >= tlsmem.MaxRecord {
		return raw
	}
	l.e.buffers.put(l.raw)
	l.raw = l.e.buffers.scratch(kept + tlsmem.MaxRecord)
	return l.raw.b[:cap(l.raw.b)]
}

// open decrypts count complete records, and appends to b the plaintext that crypto/tls still holds, then that of the records. A
// count of -1 means an unknown number. The records may be in the memory of b, after its end. An error is permanent.
func (t *tlsState) open(b, records []byte, count int) ([]byte, error) {
	if len(records) > 0 {
		t.conn.LendInPlace(records)
	}
	had := len(b)
	for {
		if len(b) == cap(b) {
			b = slices.Grow(b, tlsmem.MaxRecord) // never while records share the memory of b: they are longer than their plaintext
		}
		n, err := t.conn.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case err == nil:
			// A Read that finds no more records costs an allocation before Go 1.27.
			if count--; count == 0 && len(b) < cap(b) {
				t.idle = 0
				return b, nil
			}
		case err == io.EOF:
			t.ended = true
			return b, nil
		case tlsmem.NeedsMore(err):
			return b, t.yielded(len(records), len(b)-had)
		default:
			return b, err
		}
	}
}

// yielded records the length of the plaintext in records of the given length. It returns an error if too many records in a row
// had none.
func (t *tlsState) yielded(records, plain int) error {
	if plain > 0 {
		t.idle = 0
		return nil
	}
	if t.idle += records; t.idle > maxIdleRecords {
		return errIdleRecords
	}
	return nil
}

var errIdleRecords = fmt.Errorf("more than %d bytes of TLS records carried no data", maxIdleRecords)

// failTLS ends a connection whose peer has violated the protocol, or has reported an error by an alert. Crypto/tls does not
// encrypt afterwards, so requests that arrived before are not answered.
func (d *Driver) failTLS(c *Conn, t *tlsState, err error) {
	d.engine.noteTLS(admission.TLSError, c, "TLS connections have failed", err)
	alert := t.conn.Out
	t.conn.Out, t.phase = nil, tlsReleased
	d.dropOutput()
	if len(alert) == 0 || c.out != nil {
		c.flags |= flagCloseNow
		return
	}
	d.sendRaw(c, alert)
	c.flags |= flagCloseAfter | flagLinger
}

// readTLS is Read for a connection with TLS.
func (c *Conn) readTLS(t *tlsState, p []byte, w *readWait) (int, error) {
	d := c.driver
	for {
		switch {
		case c.flags&flagCloseNow != 0 || t.phase != tlsOpen:
			return 0, net.ErrClosed
		case c.ended():
			return 0, ErrNoRoom
		case len(t.early) > 0:
			n := copy(p, t.early)
			t.early = t.early[n:]
			return n, nil
		case t.ended:
			return 0, io.EOF
		}
		n, err := t.conn.Read(p)
		t.left = err == nil
		t.ended = err == io.EOF
		if err != nil && !t.ended && !tlsmem.NeedsMore(err) {
			d.failTLS(c, t, err)
			c.fireHangup()
			return n, fmt.Errorf("engine: read: %w", err)
		}
		d.sendReplies(c, t)
		t.spend(c)
		if n > 0 {
			t.idle = 0
			return n, nil
		}
		if t.ended {
			c.fireHangup()
			return 0, io.EOF
		}
		if err := c.fetchRecords(t, len(p), w); err != nil {
			return 0, err
		}
	}
}

// fetchRecords waits until a complete record has arrived, and lends the arrived records to crypto/tls. wants is the number of
// bytes that the caller reads.
func (c *Conn) fetchRecords(t *tlsState, wants int, w *readWait) error {
	d := c.driver
	for {
		if t.ended || t.left || len(t.early) > 0 {
			return nil // the check for the peer's end has read plaintext or the end
		}
		if whole := beforeAlert(t.records()); whole > 0 {
			if err := t.yielded(whole, 0); err != nil {
				c.flags |= flagCloseNow
				d.engine.noteTLS(admission.TLSError, c, "TLS connections have failed", err)
				return err
			}
			if wants < min(whole, tlsmem.MaxPlaintext) {
				t.conn.Lend(t.records()[:whole]) // copies, so that the memory of the records can be released
			} else {
				t.conn.LendInPlace(t.records()[:whole])
			}
			t.lent += whole
			t.unseen = t.unseen || len(t.records()) > 0
			return nil
		}
		if c.flags&flagCloseNow != 0 {
			return net.ErrClosed
		}
		if c.ended() {
			return ErrNoRoom
		}
		c.flags |= flagLook
		switch n, errno := t.fill(c, fillFor(wants)); {
		case n > 0:
			continue
		case errno == 0:
			t.shrink(c)
			return io.EOF
		case errno != unix.EAGAIN:
			t.shrink(c)
			c.flags |= flagCloseNow
			return fmt.Errorf("engine: read: %w", errno)
		}
		t.shrink(c)
		if w == nil {
			return errNotHere
		}
		if err := c.blockToRead(w); err != nil {
			return err
		}
		if c.out != nil {
			d.drain(c) // sends replies of crypto/tls, which no other goroutine of the call sends
		}
	}
}

// fillSize is the size of one read in bytes: more than any record. handshakeFillSize is the size for a handshake, whose
// messages are short.
const (
	fillSize          = 64 << 10
	handshakeFillSize = 4 << 10
)

// fillFor returns the size of one read for a caller that reads n bytes. If a single record can carry n bytes, it returns the size
// of one record: these bytes may be the beginning of a body whose rest must wait for memory.
func fillFor(n int) int {
	if n <= tlsmem.MaxPlaintext {
		return tlsmem.MaxRecord
	}
	return fillSize
}

// fill reads once from the socket into t.buf, which then holds at most size bytes. Crypto/tls must have consumed the lent bytes.
// If the buffer stays empty, it is not charged, because shrink releases it next.
func (t *tlsState) fill(c *Conn, size int) (int, syscall.Errno) {
	pool := &c.loop.e.buffers
	if buf := t.buf; buf != nil && cap(buf.b) >= size {
		buf.b = buf.b[:copy(buf.b, buf.b[t.lent:])]
	} else {
		larger := pool.scratch(size)
		larger.b = append(larger.b, t.records()...)
		pool.put(buf)
		t.buf = larger
	}
	t.lent = 0
	buf := t.buf
	room := max(size-len(buf.b), 0)
	n, errno := recv(c.fd, buf.b[len(buf.b):len(buf.b)+room])
	if n > 0 && buf.by == nil {
		buf.charge(c.Account(), memory.Input)
	}
	buf.b = buf.b[:len(buf.b)+n]
	t.unseen = t.unseen || n == room // otherwise more input causes a new event
	return n, errno
}

// spend releases the buffer of records when crypto/tls has consumed all of them. The caller may use their plaintext for long.
func (t *tlsState) spend(c *Conn) {
	if t.buf != nil && t.lent == len(t.buf.b) && !t.conn.Holds() {
		t.keepRecords(c, nil)
	}
}

// shrink releases memory that is not needed during a wait.
func (t *tlsState) shrink(c *Conn) {
	switch rest := t.unconsumed(); {
	case t.buf == nil:
	case len(rest) == 0 || cap(t.buf.b) > 4*len(rest):
		t.moveRecords(c, rest, (*bufferPool).copyOf)
	case t.buf.by == nil:
		t.buf.charge(c.Account(), memory.Input)
	}
}

// TrimInput replaces the buffer of received records by a smaller one if the buffer is much larger than the records. A driver
// without a loop calls it before it waits for something other than the peer.
func (c *Conn) TrimInput() {
	t := c.useTLS()
	if t == nil {
		return
	}
	defer c.doneTLS(t)
	if rest := t.unconsumed(); t.buf != nil && cap(t.buf.b) > len(rest)+smallInput {
		t.moveRecords(c, rest, (*bufferPool).exactCopyOf)
	}
}

// unconsumed returns the received records that crypto/tls has not consumed. The first of these records may be lent.
func (t *tlsState) unconsumed() []byte {
	if t.buf == nil {
		return nil
	}
	return t.buf.b[t.lent-len(t.conn.Lent()):]
}

// moveRecords moves records, the unconsumed records, to a new buffer that copyTo makes.
func (t *tlsState) moveRecords(c *Conn, records []byte, copyTo func(*bufferPool, *memory.Account, memory.Use, []byte) *buffer) {
	pool := &c.loop.e.buffers
	old, lent := t.buf, len(t.conn.Lent())
	t.buf, t.lent = nil, lent
	var moved []byte
	if len(records) > 0 {
		t.buf = copyTo(pool, c.Account(), memory.Input, records)
		moved = t.buf.b[:lent]
	}
	t.conn.Move(moved)
	pool.put(old)
}

// endTLS is the TLS part of end.
func (d *Driver) endTLS(c *Conn, t *tlsState) {
	if t.phase != tlsOpen {
		return
	}
	if d.detached {
		t.lock()
		defer t.unlock()
		d.takeLeft(c, t)
	}
	if c.flags&(flagCloseAfter|flagCloseNow) == flagCloseAfter && c.out == nil {
		d.farewell(c, t)
	}
}

// takeLeft moves plaintext that a call of the handler has not read to the kept input of c, which is about to return to its loop.
func (d *Driver) takeLeft(c *Conn, t *tlsState) {
	whole := tlsmem.Whole(t.records())
	switch {
	case !t.left && len(t.early) == 0 && len(t.conn.Lent()) == 0 && whole == 0, c.flags&flagCloseNow != 0:
		return
	case c.flags&flagCloseAfter != 0:
		c.flags |= flagLinger
		return
	}
	pool := &d.engine.buffers
	room := pool.scratch(len(c.kept()) + tlsmem.MaxRecord)
	kept := append(room.b, c.kept()...)
	plain, err := t.open(append(kept, t.early...), nil, -1)
	t.early = nil
	if err == nil && !t.ended && whole > 0 {
		plain, err = t.open(plain, t.records()[:whole], -1)
		t.lent += whole
	}
	t.conn.Trim()
	t.left, room.b = false, plain
	if err != nil {
		d.failTLS(c, t, err)
	} else {
		t.keepRecords(c, t.records())
		if len(plain) > len(kept) {
			old := c.in
			c.in = pool.copyOf(c.Account(), memory.Input, plain)
			pool.put(old)
			c.flags |= flagAgain
		}
		d.sendReplies(c, t)
	}
	pool.put(room)
}
