//go:build linux

package engine

// A call of the handler that is known to last, such as one that sends a stream of
// events, does so in the background: on a goroutine of its own, whose stack is as small as that
// code allows. The goroutine it began on goes on at once, with its loop if it
// has one.

// Background asks that this call of Data, or of Refused, go on by Handler.Background: after Data has returned, and
// after what is in Out has been sent. The input not consumed is kept until
// then. Nothing of the input may be viewed any more.
func (d *Driver) Background() { d.leftover = leftBackground }

// moveToBackground has the call for c go on in the background, with the scratch of d, which gets another.
// It reports whether d still drives a loop.
func (d *Driver) moveToBackground(c *Conn) bool {
	d.leftover = leftKeep
	e := d.engine
	s := e.spareDriver()
	s.releaseOwn()
	s.releaseOut()
	s.detached, s.conn, s.taking = true, c, meter{}
	s.Scratch, d.Scratch = d.Scratch, s.Scratch
	if !d.detached {
		c.setAway()
	}
	c.driver, d.conn = s, nil
	go s.runBackground(c)
	return !d.detached
}

// runBackground is the goroutine of a call that goes on in the background.
func (d *Driver) runBackground(c *Conn) {
	returned := false
	defer func() {
		if !returned {
			d.aborted(recover())
		}
	}()
	d.engine.handler.Background(d, c)
	if d.expired {
		d.end(c)
		returned = true
		d.engine.retire(d)
		return
	}
	d.send(c)
	switch {
	case c.in == nil:
	case c.flags&(flagCloseAfter|flagCloseNow) != 0:
		c.flags |= flagLinger
	case c.out != nil:
		c.flags |= flagAgain
	default:
		d.serveKept(c)
	}
	d.releaseOut()
	d.end(c)
	returned = true
	d.engine.retire(d)
}
