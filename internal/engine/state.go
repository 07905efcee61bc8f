//go:build linux

package engine

import "golang.org/x/sys/unix"

// The state of a connection determines its owner. Fields of Conn belong to the owner unless their comment says otherwise. A
// change of state transfers them.
//
//	state     owner             an event from epoll makes the loop...
//	atLoop    the loop          read, or send pending output
//	away      the goroutine     CAS away → missed
//	missed    the goroutine     do nothing: the event is recorded already
//	waiting   the goroutine,    CAS waiting → missed, then wake the goroutine
//	          parked in block
//	closing   none              do nothing; the inbox has the order to close
//
//	change              by                          when
//	atLoop  → away      the driver, or the monitor  Detach, HandOff, takeover
//	away    → missed    the loop                    an event arrived while away
//	away    → atLoop    the goroutine               the connection is given back
//	missed  → away      the goroutine               before it looks at the socket itself,
//	                                                or asks epoll to look again
//	away    → waiting   the goroutine               the socket had no data
//	waiting → missed    the loop                    an event arrived
//	waiting → away      the goroutine               its timeout passed first
//	any but atLoop → closing   the goroutine        it requests the close
//	closing → atLoop    the loop                    it reads the order from its inbox
//	atLoop  → closing   the loop                    the connection is closed
//
// Two more states belong to one call of the handler, not to the connection:
//
//	overdue   the input has waited for longer than Config.Limits.QueueTarget: during the call of Data
//	          Driver.Overdue is true, and the handler refuses the request (queue.go)
//	given back to be refused
//	          a request that waited too long in line for a worker: away → closing with the
//	          order msgOverdue, since only a loop's driver refuses (line.go)
//
// Events are edge-triggered, so an away connection that keeps receiving does not keep its loop busy, and most changes of the
// owner cost no system call. Only if an event arrived while the connection was away (state missed), EPOLL_CTL_MOD makes epoll
// look at the socket again and repeat the event. The order in giveBack is: state away, MOD, CAS to atLoop. No event is lost. If
// the loop fetches the repeated event before the CAS, it sets the state missed, the CAS fails, and the goroutine repeats the
// three steps. If the loop fetches the event after the CAS, it owns the connection and serves the event.
//
// Only the loop closes a descriptor, and never the descriptor of an away connection. So a goroutine may use the descriptor until
// its last CAS, and must not touch the connection after that CAS.
const (
	atLoop = iota
	away
	missed
	waiting
	closing
)

// setAway makes the current goroutine, or a worker, the owner of the connection. The caller drives c.loop.
func (c *Conn) setAway() {
	c.mark = c.filed
	c.SetWorking(true)
	c.state.Store(away)
	c.loop.e.away.Add(1)
}

// noteEvent handles an event for a connection that may be away. It reports whether the loop owns the connection.
func (c *Conn) noteEvent(events uint32) bool {
	for {
		woken := false
		switch c.state.Load() {
		case atLoop:
			return true
		case away:
			if !c.state.CompareAndSwap(away, missed) {
				continue
			}
		case waiting:
			if !c.state.CompareAndSwap(waiting, missed) {
				continue
			}
			c.driver.first.woken <- struct{}{}
			woken = true
		}
		if events&hungUp != 0 {
			c.noteHangup(events)
		}
		if t := c.secure(); t != nil && events&unix.EPOLLIN != 0 && !woken {
			c.glanceForEnd(t)
			events = 0
			continue // the owner may have given the connection back meanwhile
		}
		return false
	}
}

// giveBack returns the connection to its loop. With look set, epoll repeats an event for input that the goroutine may not have
// read.
func (c *Conn) giveBack(look bool) {
	l := c.loop
	c.SetWorking(false)
	if look {
		c.lookAgain()
	}
	check := c.refileNeeded() || c.flags&flagAgain != 0 || c.hasEnded()
	c.served(l.e.now())
	l.e.away.Add(-1)
	for !c.state.CompareAndSwap(away, atLoop) {
		c.state.Store(away)
		c.lookAgain()
		check = check || c.hasEnded() // the loop may have detected the peer's end, see tlsend.go
	}
	// From here on the loop owns c; only its address is used.
	if check || l.e.draining.Load() {
		l.post(message{kind: msgCheck, conn: c})
	}
}

// askClose requests that the loop close the connection.
func (c *Conn) askClose() {
	l := c.loop
	l.e.away.Add(-1)
	c.state.Store(closing)
	l.post(message{kind: msgClose, conn: c})
}

// lookAgain makes epoll report the connection's current readiness again.
func (c *Conn) lookAgain() {
	c.loop.ctl(unix.EPOLL_CTL_MOD, c.fd, c.interest(), c.slot, c.gen)
}
