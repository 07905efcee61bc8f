//go:build linux

package engine

import (
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Handler code may have a timeout (EnterFor). If it has not reached Leave by then, another driver takes the connection and
// answers. The late code continues for as long as it needs, on the old driver with its input and scratch, so it shares no memory
// with the new driver. The field claim of the old driver says which goroutine may use the connection:
//
//	change             by           when
//	untimed → running  the driver   EnterFor
//	running → untimed  the driver   Leave in time, or LiftTimeout
//	running → claimed  the driver   Claim: the code uses the connection itself
//	claimed → running  the driver   Release
//	running → taken    the timer    the timeout has passed
//	taken   → untimed  the driver   Leave, too late: Expired is true
//
// When the timer succeeds, it moves the connection, with the earlier answers that are still to be sent, to a fresh driver,
// which answers. The late driver keeps input, parsed head and request. If the timer finds the state claimed, it leaves the
// decision to Release, which checks the time again.
//
// A quick action on a loop costs two stores: the timer is set only when the driver is detached, since before that the goroutine
// has not blocked. The claim also counts the calls of EnterFor, so that a timer that was stopped too late does not affect a
// later call.
const (
	untimed = iota
	running
	claimed
	taken

	claimStep  = 4 // one call of EnterFor
	claimState = claimStep - 1
)

// timeout is the timeout state of a driver.
type timeout struct {
	claim   atomic.Uint64 // calls × claimStep + state
	call    uint64        // calls × claimStep; the driver's copy
	*timing               // made by the first EnterFor: most workers may never have a timeout
}

// timing is the part of a driver's timeout state that is needed only for calls with a timeout.
type timing struct {
	armed   atomic.Uint64              // the call that the timer is set for
	until   atomic.Int64               // the time of the timeout, in ns since the engine was made
	timer   atomic.Pointer[time.Timer] // made when first needed
	handing sync.Mutex                 // held while the connection changes drivers
}

// hasTimeout reports whether a timeout is set.
func (t *timeout) hasTimeout() bool { return t.claim.Load()&claimState != untimed }

// move changes the claim of the present call. It returns false if the claim is not in state from.
func (t *timeout) move(from, to uint64) bool {
	return t.claim.CompareAndSwap(t.call|from, t.call|to)
}

// EnterFor is Enter with a time limit. If the code takes longer than limit, Handler.Expired is called for the connection, on
// another goroutine and with another driver. The driver of the late code then has lost the connection: see Expired.
func (d *Driver) EnterFor(limit time.Duration) {
	if d.timing == nil {
		d.timing = new(timing)
	}
	d.call += claimStep
	d.until.Store(d.Now() + int64(limit))
	d.claim.Store(d.call | running)
	if d.detached {
		d.setTimer()
	}
	d.Enter()
}

// Expired reports, after Leave, that the connection was taken because the timeout of EnterFor had passed. The handler must
// return at once, and must not touch the connection or Out.
func (d *Driver) Expired() bool { return d.expired }

// Claim prevents the timer from taking the connection until Release, for code under a timeout that is about to use the
// connection. It returns false if the connection has already been taken. Without a timeout it always returns true.
func (d *Driver) Claim() bool {
	return !d.hasTimeout() || d.move(running, claimed)
}

// Release ends the effect of Claim.
func (d *Driver) Release() {
	if d.move(claimed, running) && d.armed.Load() == d.call && d.engine.now() >= d.until.Load() {
		d.setTimer() // the timer may have found the connection claimed
	}
}

// LiftTimeout removes the timeout because the answer has begun. It returns false if the connection has been taken.
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

// TimeLeft returns the remaining time of the timeout, at least 1 ns and at most limit. A limit of 0 means no limit. Without a
// timeout TimeLeft returns limit.
func (d *Driver) TimeLeft(limit time.Duration) time.Duration {
	if !d.hasTimeout() {
		return limit
	}
	left := max(time.Duration(d.until.Load()-d.engine.now()), time.Nanosecond)
	if limit > 0 {
		left = min(left, limit)
	}
	return left
}

// TimedOut reports whether a timeout is in force and has passed.
func (d *Driver) TimedOut() bool { return d.hasTimeout() && d.until.Load() <= d.engine.now() }

// Expire takes the connection from the running code, as the timer would. The running code calls it when it finds that its timeout
// has passed, instead of waiting for the timer. It must not hold a Claim.
func (d *Driver) Expire() {
	if d.hasTimeout() {
		d.timeoutPassed()
	}
}

// HasTimeout reports whether a timeout of EnterFor is in force.
func (d *Driver) HasTimeout() bool { return d.hasTimeout() }

// setTimer arranges for a call of timeoutPassed at the timeout. The caller is the driver, or a goroutine that takes over its loop
// and holds takeMu.
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

// endTimeout ends the timeout on Leave.
func (d *Driver) endTimeout() {
	if !d.hasTimeout() {
		return
	}
	d.stopTimer()
	if !d.move(running, untimed) {
		d.handing.Lock() // wait until the other driver has everything that it transfers
		d.expired = true
		d.claim.Store(untimed)
		d.handing.Unlock()
	}
}

// timeoutPassed takes the connection from a driver whose timeout has passed, and makes the handler answer it.
func (d *Driver) timeoutPassed() {
	e := d.engine
	call := d.armed.Load()
	if d.until.Load() > e.now() || d.claim.Load() != call|running {
		// The code has ended, or has claimed the connection: then Release checks again.
		return
	}
	fresh := e.freshDriver()
	if c := d.yieldTo(fresh, call); c != nil {
		fresh.answerExpired(c)
	}
}

// yieldTo passes d's connection to a fresh driver, with the earlier answers that are still to be sent. It returns nil if the
// code has ended meanwhile.
func (d *Driver) yieldTo(fresh *Driver, call uint64) *Conn {
	d.handing.Lock()
	defer d.handing.Unlock()
	if !d.claim.CompareAndSwap(call|running, call|taken) {
		return nil
	}
	d.Scratch.Expiring(fresh.Scratch)
	fresh.Out, fresh.owned, d.Out, d.owned = d.Out, d.owned, nil, nil
	fresh.outBuf, d.outBuf = d.outBuf, nil
	fresh.conn, d.conn.driver = d.conn, fresh
	return d.conn
}

// answerExpired calls the handler for a connection whose call was too late, and closes the connection.
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
