//go:build linux

package engine

// A call of the handler that is known to be long, such as one that sends a stream of events, runs in the background: on a
// goroutine of its own, whose stack is as small as that code allows. The goroutine on which it began continues at once, with
// its loop if it has one.

// Background requests that this call of Data or Refused continue in Handler.Background, after it has returned and Out has been
// sent. The engine keeps unconsumed input until then. The handler must not use its views of the input any more.
func (d *Driver) Background() { d.leftover = leftBackground }

// moveToBackground continues the call for c in the background, with the scratch of d. Then d has another scratch.
// moveToBackground reports whether d still drives a loop.
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

// runBackground is the goroutine of a call in the background.
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
