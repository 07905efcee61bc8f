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
	"github.com/dunlinhttp/dunlin/internal/tlsmem"
)

// receiveTLS is receive for a connection with TLS. Records are opened where they were read: what
// they carry is shorter, and lies in front of what is still to be opened.
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
	into := d.loop.modest(raw, have)
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
		c.flags |= flagReadable // the end is for the next visit
	}
	if len(plain) == kept {
		d.send(c) // replies of the protocol
		return
	}
	d.engine.buffers.put(c.in)
	c.in = nil
	d.serve(c, d.takeInput(len(plain)))
}

// roomForRecords returns the loop's read buffer, with room for a whole record beside so many bytes.
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

// open appends what so many whole records carry to b, and what crypto/tls had left of earlier ones,
// of which there are -1 if that is not known. The records may lie in the memory of b, behind it. The
// error is for good.
func (t *tlsState) open(b, records []byte, count int) ([]byte, error) {
	if len(records) > 0 {
		t.conn.LendInPlace(records)
	}
	had := len(b)
	for {
		if len(b) == cap(b) {
			b = slices.Grow(b, tlsmem.MaxRecord) // never over records: they are longer
		}
		n, err := t.conn.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case err == nil:
			// To be told that there is no more costs an allocation before Go 1.27.
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

// yielded notes how much plaintext records of so many bytes have carried.
func (t *tlsState) yielded(records, plain int) error {
	if plain > 0 {
		t.idle = 0
		return nil
	}
	if t.idle += records; t.idle > mostIdleRecords {
		return errIdleRecords
	}
	return nil
}

var errIdleRecords = fmt.Errorf("more than %d bytes of TLS records carried nothing", mostIdleRecords)

// failTLS ends a connection whose peer has broken the protocol, or has said that we did. Crypto/tls seals
// nothing more, so that what was received with it is not answered.
func (d *Driver) failTLS(c *Conn, t *tlsState, err error) {
	d.engine.noteTLS(admission.TLSError, c, "connections have failed by TLS", err)
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

// fetchRecords waits until a whole record has come, and lends what has, to a caller who wants so many bytes.
func (c *Conn) fetchRecords(t *tlsState, wants int, w *readWait) error {
	d := c.driver
	for {
		if t.ended || t.left || len(t.early) > 0 {
			return nil // who looked for the peer's end has found something
		}
		if whole := beforeAlert(t.records()); whole > 0 {
			if err := t.yielded(whole, 0); err != nil {
				c.flags |= flagCloseNow
				d.engine.noteTLS(admission.TLSError, c, "connections have failed by TLS", err)
				return err
			}
			if wants < min(whole, tlsmem.MaxPlaintext) {
				t.conn.Lend(t.records()[:whole]) // a copy is taken, and this memory given back
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
			d.drain(c) // replies of the protocol, which nobody else may be sending
		}
	}
}

// fillSize is how much is read at once, in bytes: more than any record. Messages of a handshake are short.
const (
	fillSize      = 64 << 10
	shakeFillSize = 4 << 10
)

// fillFor returns how much is read at once for a caller who wants n bytes: for one who wants no more than a
// record carries, such as the beginning of a body whose rest may have to wait for room, it is no more than one record.
func fillFor(n int) int {
	if n <= tlsmem.MaxPlaintext {
		return tlsmem.MaxRecord
	}
	return fillSize
}

// fill reads from the socket so that at most size bytes are there; what was lent of them has been taken. A buffer in
// which nothing comes is not charged: it is about to be shrunk.
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
		buf.charge(c.Account(), admission.Input)
	}
	buf.b = buf.b[:len(buf.b)+n]
	t.unseen = t.unseen || n == room // else more will make a new edge
	return n, errno
}

// spend gives the buffer of records back when crypto/tls has taken all of them: what is done with
// what they carried may last.
func (t *tlsState) spend(c *Conn) {
	if t.buf != nil && t.lent == len(t.buf.b) && !t.conn.Holds() {
		t.keepRecords(c, nil)
	}
}

// shrink gives memory back that is not needed to wait.
func (t *tlsState) shrink(c *Conn) {
	switch rest := t.untaken(); {
	case t.buf == nil:
	case len(rest) == 0 || cap(t.buf.b) > 4*len(rest):
		t.moveRecords(c, rest, (*bufferPool).copyOf)
	case t.buf.by == nil:
		t.buf.charge(c.Account(), admission.Input)
	}
}

// TrimInput gives back all memory of records that is not needed to keep those that have come: its caller, who is without
// a loop, is going to wait for something else than the peer, and is to hold little meanwhile.
func (c *Conn) TrimInput() {
	t := c.useTLS()
	if t == nil {
		return
	}
	defer c.doneTLS(t)
	if rest := t.untaken(); t.buf != nil && cap(t.buf.b) > len(rest)+smallInput {
		t.moveRecords(c, rest, (*bufferPool).exactCopyOf)
	}
}

// untaken returns the records that have come and crypto/tls has not taken, of which the first may be lent.
func (t *tlsState) untaken() []byte {
	if t.buf == nil {
		return nil
	}
	return t.buf.b[t.lent-len(t.conn.Lent()):]
}

// moveRecords moves them to a buffer of their own.
func (t *tlsState) moveRecords(c *Conn, records []byte, to func(*bufferPool, *admission.Account, admission.Use, []byte) *buffer) {
	pool := &c.loop.e.buffers
	old, lent := t.buf, len(t.conn.Lent())
	t.buf, t.lent = nil, lent
	var moved []byte
	if len(records) > 0 {
		t.buf = to(pool, c.Account(), admission.Input, records)
		moved = t.buf.b[:lent]
	}
	t.conn.Move(moved)
	pool.put(old)
}

// endTLS is the part of end that concerns TLS.
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

// takeLeft moves plaintext that a goroutine has left in crypto/tls to the kept input of c, which is
// about to be its loop's again.
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
			c.in = pool.copyOf(c.Account(), admission.Input, plain)
			pool.put(old)
			c.flags |= flagAgain
		}
		d.sendReplies(c, t)
	}
	pool.put(room)
}
