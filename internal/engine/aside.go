//go:build linux

package engine

// A call of the handler that is known to last, such as one that sends a stream of
// events, does so aside: on a goroutine of its own, whose stack is as small as that
// code allows. The goroutine it began on goes on at once, with its loop if it
// has one.

// Aside asks that this call of Data go on by Handler.Aside: after Data has returned, and
// after what is in Out has been sent. The input not consumed is kept until
// then. Nothing of the input may be viewed any more.
func (d *Driver) Aside() { d.wish = wishAside }

// stepAside has the call for c go on aside, with the scratch of d, which gets another.
// It reports whether d still drives a loop.
func (d *Driver) stepAside(c *Conn) bool {
	d.wish = wishMore
	e := d.engine
	s := e.spareDriver()
	s.releaseOwn()
	s.releaseOut()
	s.detached, s.conn, s.taking = true, c, meter{}
	s.Scratch, d.Scratch = d.Scratch, s.Scratch
	if !d.detached {
		c.goAway()
	}
	c.driver, d.conn = s, nil
	go s.runAside(c)
	return !d.detached
}

// runAside is the goroutine of a call that goes on aside.
func (d *Driver) runAside(c *Conn) {
	returned := false
	defer func() {
		if !returned {
			d.aborted(recover())
		}
	}()
	d.engine.handler.Aside(d, c)
	if d.gone {
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
