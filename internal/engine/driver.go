//go:build linux

package engine

import "time"

// A Driver is a goroutine's licence to serve connections, with the buffers
// and the scratch that go with it. A handler must not keep it beyond the
// call it was given for.
type Driver struct {
	// Out is where the handler appends its answers. The engine sends it after
	// the call and reuses it.
	Out []byte

	// Scratch is what Handler.NewScratch made for this driver.
	Scratch any
}

// A Releaser is told when an owned buffer is no longer needed.
type Releaser interface {
	// Release is called once, on any engine goroutine.
	Release()
}

// Now returns the time of this turn as monotonic nanoseconds since the
// engine was made. Detached drivers see the current time.
func (d *Driver) Now() int64 { panic("being written") }

// Unix returns the wall clock of this turn in seconds.
func (d *Driver) Unix() int64 { panic("being written") }

// Enter marks the start of code that may block. If it does not reach Leave
// soon, the loop goes to another driver and this one becomes detached.
// Enter and Leave must not be nested; both do nothing once detached.
func (d *Driver) Enter() { panic("being written") }

// Leave marks the end of code that may block and reports whether the driver
// still has its loop.
func (d *Driver) Leave() bool { panic("being written") }

// Inline reports whether the driver runs a loop, which must not be held up
// outside Enter and Leave. Workers and detached drivers may block anywhere.
func (d *Driver) Inline() bool { panic("being written") }

// Detach gives up the loop now, before an operation known to block. It does
// nothing if the driver is detached already. It may be called between
// Enter and Leave.
func (d *Driver) Detach() { panic("being written") }

// HandOff asks that the input not consumed by this call of Data be served by a
// worker goroutine: after Data returns, and after what is in Out has been
// sent, Data is called there with Inline false. On a driver that is not inline it
// is the same as Again.
func (d *Driver) HandOff() { panic("being written") }

// Again asks for another call of Data with the input not consumed by this one,
// without waiting for more to arrive, once the output so far is sent. A
// handler uses it to bound Out when many requests arrive at once.
func (d *Driver) Again() { panic("being written") }

// WriteOwned sends b behind what is in Out now, without copying. b must not
// change until r.Release is called, which happens when it is sent or
// the connection is closed. r may be nil.
func (d *Driver) WriteOwned(b []byte, r Releaser) { panic("being written") }

// Flush sends Out and all pending output of the connection, blocking for at
// most timeout (0: for ever) between signs of progress. It calls Detach first.
func (d *Driver) Flush(timeout time.Duration) error { panic("being written") }

// Draining reports whether the engine is shutting down: answers should say
// that the connection will be closed.
func (d *Driver) Draining() bool { panic("being written") }
