//go:build linux

package engine

import (
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Handler code may be given a timeout (EnterFor). When it has not reached Leave by
// then, the connection is taken from its driver and answered by another, while
// the code runs on, for as long as it likes, with memory that is its alone: the
// driver's buffers and scratch. Who may use the connection is said by the
// driver's claim:
//
//	change             by           when
//	untimed → running  the driver   EnterFor
//	running → untimed  the driver   Leave in time, or LiftTimeout
//	running → claimed  the driver   Claim: the code uses the connection itself
//	claimed → running  the driver   Release
//	running → taken    the timer    the timeout has passed
//	taken   → untimed  the driver   Leave, too late: Expired is true
//
// When the timer succeeds it moves the connection, and the earlier answers that are still to be
// sent, to a fresh driver, which answers. The late driver keeps input, parsed head and request.
// A timer that finds claimed leaves the decision to Release, which looks at the time again.
//
// A quick action on a loop costs two stores: the timer is set only when the
// driver is detached, since before that the goroutine has not blocked.
// The claim also counts the calls of EnterFor, so that a timer that could not be
// stopped in time does not mistake a later call for its own.
const (
	untimed = iota
	running
	claimed
	taken

	claimStep  = 4 // one call of EnterFor
	claimState = claimStep - 1
)

// timeout is a driver's part in this.
type timeout struct {
	claim   atomic.Uint64 // calls × claimStep + state
	call    uint64        // calls × claimStep; only for the driver
	*timing               // made by the first EnterFor: ten thousand workers that block may never have one
}

// timing is what a timeout needs while it is set.
type timing struct {
	armed   atomic.Uint64              // the call that the timer is set for
	until   atomic.Int64               // the limit, in ns since the engine was made
	timer   atomic.Pointer[time.Timer] // made when first needed
	handing sync.Mutex                 // held while the connection changes drivers
}

// hasTimeout reports whether a timeout is set.
func (t *timeout) hasTimeout() bool { return t.claim.Load()&claimState != untimed }

// move changes the claim of the present call; false if it is not in state from.
func (t *timeout) move(from, to uint64) bool {
	return t.claim.CompareAndSwap(t.call|from, t.call|to)
}

// EnterFor is Enter for code that may take at most d. If it takes longer,
// Handler.Expired is called for the connection, on another goroutine and with
// another driver, and the driver that called EnterFor has lost it: see Expired.
func (d *Driver) EnterFor(most time.Duration) {
	if d.timing == nil {
		d.timing = new(timing)
	}
	d.call += claimStep
	d.until.Store(d.Now() + int64(most))
	d.claim.Store(d.call | running)
	if d.detached {
		d.setTimer()
	}
	d.Enter()
}

// Expired reports, after Leave, that the connection was taken because the timeout of
// EnterFor had passed. The handler must return at once, and touch neither the
// connection nor Out.
func (d *Driver) Expired() bool { return d.expired }

// Claim keeps the connection from being taken until Release, for code under a
// timeout that is about to use it. It is false when the connection has been
// taken. Without a timeout it is always true.
func (d *Driver) Claim() bool {
	return !d.hasTimeout() || d.move(running, claimed)
}

// Release ends Claim.
func (d *Driver) Release() {
	if d.move(claimed, running) && d.armed.Load() == d.call && d.engine.now() >= d.until.Load() {
		d.setTimer() // it may have found the connection held
	}
}

// LiftTimeout lifts the timeout, because the answer has begun. It is false when the
// connection has been taken.
func (d *Driver) LiftTimeout() bool {
	if !d.hasTimeout() {
		return true
	}
	if !d.move(running, untimed) && !d.move(claimed, untimed) {
		return false
	}
	d.stopTimer()
	return true
}

// TimeLeft returns how long the timeout still allows, at least a nanosecond, or
// most if that is shorter or there is no timeout. A most of 0 stands for no bound.
func (d *Driver) TimeLeft(most time.Duration) time.Duration {
	if !d.hasTimeout() {
		return most
	}
	left := max(time.Duration(d.until.Load()-d.engine.now()), time.Nanosecond)
	if most > 0 {
		left = min(left, most)
	}
	return left
}

// TimedOut reports whether a timeout is in force and has passed.
func (d *Driver) TimedOut() bool { return d.hasTimeout() && d.until.Load() <= d.engine.now() }

// Expire has the connection taken now from code that has found by itself that its
// timeout has passed, and holds no Claim: it need not race with the timer.
func (d *Driver) Expire() {
	if d.hasTimeout() {
		d.timeoutPassed()
	}
}

// HasTimeout reports whether a timeout of EnterFor is in force.
func (d *Driver) HasTimeout() bool { return d.hasTimeout() }

// setTimer arranges for timeoutPassed at the timeout. It is called by the driver, or
// with takeMu held by who takes the loop from it.
func (d *Driver) setTimer() {
	d.armed.Store(d.call)
	left := max(time.Duration(d.until.Load()-d.engine.now()), 0)
	if t := d.timer.Load(); t != nil {
		t.Reset(left)
		return
	}
	d.timer.Store(time.AfterFunc(left, d.timeoutPassed))
}

func (t *timeout) stopTimer() {
	if t := t.timer.Load(); t != nil {
		t.Stop()
	}
}

// unclaim ends the timeout on Leave.
func (d *Driver) unclaim() {
	if !d.hasTimeout() {
		return
	}
	d.stopTimer()
	if !d.move(running, untimed) {
		d.handing.Lock() // until the other has all that it takes along
		d.expired = true
		d.claim.Store(untimed)
		d.handing.Unlock()
	}
}

// timeoutPassed takes the connection from a driver whose timeout has passed and has the
// handler answer it.
func (d *Driver) timeoutPassed() {
	e := d.engine
	call := d.armed.Load()
	if d.until.Load() > e.now() || d.claim.Load() != call|running {
		// The code has ended, or holds the connection: then Release looks again.
		return
	}
	fresh := e.freshDriver()
	if c := d.yieldTo(fresh, call); c != nil {
		fresh.answerExpired(c)
	}
}

// yieldTo passes d's connection to a fresh driver, with earlier answers that are
// still to be sent; nil if the call's code has ended after all.
func (d *Driver) yieldTo(fresh *Driver, call uint64) *Conn {
	d.handing.Lock()
	defer d.handing.Unlock()
	if !d.claim.CompareAndSwap(call|running, call|taken) {
		return nil
	}
	d.engine.handler.Expiring(d.Scratch, fresh.Scratch)
	fresh.Out, fresh.owned, d.Out, d.owned = d.Out, d.owned, nil, nil
	fresh.outBuf, d.outBuf = d.outBuf, nil
	fresh.conn, d.conn.driver = d.conn, fresh
	return d.conn
}

// answerExpired calls the handler for a connection whose driver was too slow,
// and closes it.
func (d *Driver) answerExpired(c *Conn) {
	defer d.end(c)
	defer func() {
		c.flags |= flagCloseAfter
		d.send(c)
		if cause := recover(); cause != nil {
			d.engine.cfg.Logger.Error("engine: panic in Expired", "panic", cause, "stack", string(debug.Stack()))
		}
	}()
	d.engine.handler.Expired(d, c)
}
