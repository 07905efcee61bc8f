//go:build linux

package engine

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/memory"
)

// Sealed (encrypted) records must be sent in the order in which they were sealed. So as little as possible is sealed ahead of
// time. While a peer reads nothing, further output is pending in clear text (outNode.clear), so an answer for many clients is in
// memory only once. Replies of crypto/tls itself, for example to a KeyUpdate, are sealed at once and sent before the clear text:
//
//	pending output:  sealed │ replies │ clear text

// sealPiece is the number of bytes that are encrypted at a time: complete records, which fit the largest class of buffers
// with the overhead of TLS.
const sealPiece = 48 << 10

// sealedLen returns the maximum length of n bytes after sealing. A record carries at least 1,100 bytes, unless it is the last.
func sealedLen(n int) int { return n + n/16 + 128 }

// sendTLS is send for a connection with TLS.
func (d *Driver) sendTLS(c *Conn, t *tlsState) {
	if d.detached {
		t.lock()
		defer c.doneTLS(t)
	}
	if p := c.protocol(); p != nil {
		p.Unsent(0) // records cannot be taken back
	}
	if c.flags&flagCloseNow != 0 || t.phase != tlsOpen {
		d.dropOutput()
		return
	}
	if len(d.Out) == 0 && len(d.owned) == 0 && len(t.conn.Out) == 0 {
		return
	}
	if c.out == nil {
		buf := d.beginSeal(t)
		d.sealOut(c, t)
		d.flushSealed(c, t)
		d.endSeal(t, buf)
	} else {
		d.pendReplies(c, t)
	}
	if len(d.Out) > 0 || len(d.owned) > 0 {
		d.pend(c, 0)
	}
	d.dropOutput()
}

// beginSeal gives t.conn a buffer for the next encrypted bytes. On a loop that is loop.sealed, and beginSeal returns nil.
// Otherwise it is a buffer from the pool, which beginSeal returns.
func (d *Driver) beginSeal(t *tlsState) *buffer {
	var buf *buffer
	var room []byte
	if d.detached {
		buf = d.engine.buffers.scratch(sealedLen(min(d.Gathered(), sealPiece)) + len(t.conn.Out))
		room = buf.b
	} else {
		room = d.loop.sealed
	}
	t.conn.Out = append(room, t.conn.Out...)
	return buf
}

// endSeal takes the buffer from t.conn and stores it for the next time. buf is the result of beginSeal.
func (d *Driver) endSeal(t *tlsState, buf *buffer) {
	room := t.conn.Out[:0]
	t.conn.Out = nil
	switch {
	case buf != nil:
		buf.b = room
		d.engine.buffers.put(buf)
	case cap(room) <= maxKeptOut:
		d.loop.sealed = room
	}
}

// sealOut seals and sends Out and the owned buffers, piece by piece, until the socket is full. Afterwards Out and the owned
// buffers hold only the bytes that were not sealed.
func (d *Driver) sealOut(c *Conn, t *tlsState) {
	done := 0 // bytes of Out that are sealed
	for i := range d.owned {
		o := &d.owned[i]
		done += d.sealPart(c, t, d.Out[done:o.after])
		if done == o.after {
			o.sealed = d.sealPart(c, t, o.b)
		}
		if done < o.after || o.sealed < len(o.b) {
			d.cutOutput(done, i)
			return
		}
		o.release()
	}
	done += d.sealPart(c, t, d.Out[done:])
	d.cutOutput(done, len(d.owned))
}

// sealPart seals b and sends each full piece. It returns the number of bytes sealed: all of b, unless the socket is full.
func (d *Driver) sealPart(c *Conn, t *tlsState, b []byte) (n int) {
	for n < len(b) && c.out == nil && c.flags&flagCloseNow == 0 {
		k := min(len(b)-n, max(sealPiece-len(t.conn.Out), 1))
		if err := t.conn.Seal(b[n : n+k]); err != nil {
			c.flags |= flagCloseNow
			return n
		}
		n += k
		if len(t.conn.Out) >= sealPiece {
			d.flushSealed(c, t)
		}
	}
	return n
}

// cutOutput drops the sealed output: done bytes of Out, and the first owned buffers.
func (d *Driver) cutOutput(done, buffers int) {
	for i := buffers; i < len(d.owned); i++ {
		d.owned[i].after -= done
	}
	n := copy(d.owned, d.owned[buffers:])
	clear(d.owned[n:])
	d.owned = d.owned[:n]
	d.Out = d.Out[:copy(d.Out, d.Out[done:])]
}

// flushSealed sends the encrypted bytes. Bytes that the socket does not accept become pending output.
func (d *Driver) flushSealed(c *Conn, t *tlsState) {
	d.sendRaw(c, t.conn.Out)
	t.conn.Out = t.conn.Out[:0]
}

// sendRaw sends b unchanged, after the encrypted output.
func (d *Driver) sendRaw(c *Conn, b []byte) {
	if len(b) == 0 || c.flags&flagCloseNow != 0 {
		return
	}
	n, errno := 0, syscall.Errno(unix.EAGAIN)
	if c.out == nil {
		c.willSend(len(b))
		n, errno = send(c.fd, b)
		d.taking.moved += int64(n)
		if errno == 0 && n == len(b) {
			return
		}
		if errno != 0 && errno != unix.EAGAIN {
			c.flags |= flagCloseNow
			return
		}
		c.out = d.newOutQueue(c)
		c.Account().BeginResponse(int64(len(b) - n + d.Gathered())) // before it is charged
	}
	q := c.out
	q.pushSealed(c, b[n:])
	if c.out.bytes > 0 {
		c.SetWorking(false)
		c.Progress(0, q.bytes)
		c.wantOut()
	}
	if errno == 0 {
		d.drain(c) // see send
	}
}

// pushSealed queues a copy of b after the output that is already sealed.
func (q *outQueue) pushSealed(c *Conn, b []byte) {
	after, _ := q.lastSealed()
	if after != nil {
		n := after.fill(b) // replies are short, and may be many
		q.bytes += int64(n)
		q.mark += int64(n)
		b = b[n:]
	}
	for len(b) > 0 {
		n := min(len(b), classSizes[len(classSizes)-1])
		buf := c.loop.e.buffers.copyOf(c.Account(), memory.Output, b[:n])
		node := &outNode{rest: buf.b, buf: buf}
		if after == nil {
			node.next, q.head = q.head, node
		} else {
			node.next, after.next = after.next, node
		}
		if node.next == nil {
			q.tail = node
		}
		q.bytes += int64(n)
		q.mark += int64(n)
		after, b = node, b[n:]
	}
}

// lastSealed returns the last sealed node, or nil, and the number of sealed bytes. Nodes in clear text follow it.
func (q *outQueue) lastSealed() (last *outNode, bytes int) {
	for n := q.head; n != nil && !n.clear; n = n.next {
		last = n
		bytes += len(n.rest)
	}
	return last, bytes
}

// sealHead seals a piece of the first node, which is in clear text.
func (d *Driver) sealHead(c *Conn, t *tlsState, q *outQueue) bool {
	n := q.head
	k := min(len(n.rest), sealPiece)
	buf := d.engine.buffers.get(c.Account(), memory.Output, classSizes[len(classSizes)-1])
	t.conn.Out = buf.b
	err := t.conn.Seal(n.rest[:k])
	buf.b, t.conn.Out = t.conn.Out, nil
	if err != nil {
		d.engine.buffers.put(buf)
		return false
	}
	n.rest = n.rest[k:]
	if len(n.rest) == 0 {
		q.pop(d.engine)
	}
	q.head = &outNode{next: q.head, rest: buf.b, buf: buf}
	if q.tail == nil {
		q.tail = q.head
	}
	more := int64(len(buf.b) - k)
	q.bytes += more
	q.mark += more
	return true
}

// pendReplies sends the replies of crypto/tls, or queues them after other sealed output.
func (d *Driver) pendReplies(c *Conn, t *tlsState) {
	if out := t.conn.Out; len(out) > 0 {
		t.conn.Out = nil
		d.sendRaw(c, out)
	}
}

// sendReplies sends the replies of crypto/tls during a call that reads. It does not send Out, because another goroutine of the
// call may be appending to Out. A loop does not read while output is pending, but a call may. So sendReplies bounds the pending
// replies of a peer that causes replies and does not read them.
func (d *Driver) sendReplies(c *Conn, t *tlsState) {
	if t.phase != tlsOpen || len(t.conn.Out) == 0 {
		return
	}
	d.pendReplies(c, t)
	if c.out == nil || c.flags&flagCloseNow != 0 {
		return
	}
	if _, bytes := c.out.lastSealed(); bytes > maxReplies {
		c.flags |= flagCloseNow
		d.engine.noteTLS(admission.TLSError, c, "TLS connections have failed", errReplies)
	}
}

// maxReplies bounds the sealed pending output, in bytes, when crypto/tls replies to input: one piece of an answer, and the
// replies to thousands of KeyUpdates.
const maxReplies = sealPiece + 64<<10

var errReplies = fmt.Errorf("the peer has not read %d bytes, mostly replies to its KeyUpdates", maxReplies)

// farewell sends close_notify to a peer after all other output.
func (d *Driver) farewell(c *Conn, t *tlsState) {
	if t.phase != tlsOpen || t.bye {
		return
	}
	t.bye = true
	t.conn.SealEnd()
	d.pendReplies(c, t)
}

// farewellNow is farewell for a connection that is closed at once: it sends close_notify if the socket accepts it without
// waiting.
func (t *tlsState) farewellNow(c *Conn) {
	if t.phase != tlsOpen || t.bye || c.out != nil || c.flags&flagCloseNow != 0 {
		return
	}
	t.bye = true
	t.conn.Out = nil
	t.conn.SealEnd()
	_, _ = send(c.fd, t.conn.Out)
}

// writeTLS is Write for a connection with TLS that has no pending output.
func (c *Conn) writeTLS(t *tlsState, p []byte, timeout time.Duration) (sent int, err error) {
	d := c.driver
	for sent < len(p) {
		if c.flags&flagCloseNow != 0 || t.phase != tlsOpen {
			return sent, net.ErrClosed
		}
		k := min(len(p)-sent, sealPiece)
		buf := d.engine.buffers.scratch(sealedLen(k))
		t.conn.Out = buf.b
		err := t.conn.Seal(p[sent : sent+k])
		d.flushSealed(c, t)
		buf.b, t.conn.Out = t.conn.Out, nil
		d.engine.buffers.put(buf)
		if err != nil {
			c.flags |= flagCloseNow
			return sent, err
		}
		sent += k // these records are sent, unless the connection ends
		if err := c.flushPending(timeout); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// sendFileTLS is SendFile for a connection with TLS: sealed bytes must pass through the process.
func (c *Conn) sendFileTLS(t *tlsState, f *os.File, n int64, timeout time.Duration) (sent int64, err error) {
	pool := &c.driver.engine.buffers
	buf := pool.scratch(sealPiece)
	defer pool.put(buf)
	for sent < n {
		k, err := f.Read(buf.b[:min(n-sent, sealPiece)])
		if k > 0 {
			m, err := c.writeTLS(t, buf.b[:k], timeout)
			sent += int64(m)
			if err != nil {
				return sent, err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return sent, io.ErrUnexpectedEOF
		case err != nil:
			return sent, err
		}
	}
	return sent, nil
}
