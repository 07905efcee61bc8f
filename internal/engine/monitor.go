//go:build linux

package engine

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// monitor takes loops from drivers that block. It sleeps without a timer unless
// some loop has entered an action in its last few looks.
type monitor struct {
	awake atomic.Bool
	call  chan struct{} // capacity 1
	stop  chan struct{}

	// A timerfd in the runtime's poller instead of time.Sleep: an otherwise idle
	// runtime rounds its own timers up to whole milliseconds.
	timer  *os.File
	fd     int
	expiry syscall.RawConn
	spec   unix.ItimerSpec
	set    bool
	wait   func(uintptr) bool // made once
}

func (m *monitor) init() error {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("engine: create timer: %w", err)
	}
	m.fd = fd
	m.timer = os.NewFile(uintptr(fd), "timerfd")
	if m.expiry, err = m.timer.SyscallConn(); err == nil {
		err = m.timer.SetReadDeadline(time.Time{}) // fails if the runtime cannot watch it
	}
	if err != nil {
		return errors.Join(fmt.Errorf("engine: watch timer: %w", err), m.timer.Close())
	}
	m.wait = func(uintptr) bool {
		if m.set {
			return true
		}
		// Setting the timer also clears its last expiry, so the descriptor is never
		// read. It must happen in here: Read first forgets earlier readiness.
		m.set = true
		return unix.TimerfdSettime(m.fd, 0, &m.spec, nil) != nil
	}
	m.call = make(chan struct{}, 1)
	m.stop = make(chan struct{})
	m.awake.Store(true)
	return nil
}

// pause parks the goroutine for about d, or until the end.
func (m *monitor) pause(d time.Duration) {
	m.spec.Value, m.set = unix.NsecToTimespec(int64(d)), false
	_ = m.expiry.Read(m.wait) // has no deadline before the end, and only watch closes the file
}

// wake calls the monitor to work. It costs a driver about 200 ns, hence
// quietLooks.
func (m *monitor) wake() {
	if m.awake.CompareAndSwap(false, true) {
		m.call <- struct{}{}
	}
}

// quietLooks is how many looks without any action the monitor takes before it
// goes to sleep.
const quietLooks = 4

// watch is the monitor's goroutine.
func (e *Engine) watch() {
	m := &e.monitor
	defer m.timer.Close()
	seen := make([]uint64, len(e.loops))
	quiet := quietLooks // nothing was asked yet
	for {
		interval := e.cfg.TakeoverAfter
		busy, took := e.look(seen)
		switch {
		case took:
			// Handlers that block rarely come alone: the fresh driver may meet the next.
			interval /= 4
			quiet = 0
		case busy:
			quiet = 0
		default:
			quiet++
		}
		if quiet > quietLooks {
			if !m.sleep(e, seen) {
				return
			}
			quiet = 0
		}
		m.pause(interval)
		select {
		case <-m.stop:
			return
		default:
		}
	}
}

// end has watch return, however long it was to pause.
func (m *monitor) end() {
	close(m.stop)
	_ = m.timer.SetReadDeadline(time.Unix(1, 0)) // it fails if watch has returned
}

// sleep waits for a call. It reports false if the engine has ended.
func (m *monitor) sleep(e *Engine, seen []uint64) bool {
	m.awake.Store(false)
	// A driver may have entered before it could see that.
	if busy, _ := e.look(seen); busy && m.awake.CompareAndSwap(false, true) {
		return true
	}
	select {
	case <-m.call:
		return true
	case <-m.stop:
		return false
	}
}

// look compares every loop's epoch with what it was at the last look, and takes
// loops that are in the same action still. It reports whether any loop
// was or is in an action, and whether it took one.
func (e *Engine) look(seen []uint64) (busy, took bool) {
	for i, l := range e.loops {
		epoch := l.epoch.Load()
		if epoch == seen[i] && epoch&1 == 1 && l.takeOver(epoch) {
			epoch++
			took = true
		}
		busy = busy || epoch != seen[i]
		seen[i] = epoch
	}
	return busy, took
}
