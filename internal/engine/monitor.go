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

// monitor takes over loops from drivers that block. When no loop has entered an action during its last few checks, it sleeps
// without a timer.
type monitor struct {
	awake atomic.Bool
	call  chan struct{} // capacity 1
	stop  chan struct{}

	// A timerfd in the runtime's poller is used instead of time.Sleep: an otherwise idle runtime rounds its own timers up to
	// whole milliseconds.
	timer  *os.File
	fd     int
	expiry syscall.RawConn
	spec   unix.ItimerSpec
	set    bool
	wait   func(uintptr) bool // made once to save allocations
	pauses int64              // for garbage collections, at the last look
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
		// Setting the timer also clears its last expiry, so the descriptor is never read. The timer must be set in this function,
		// because Read first drops earlier readiness.
		m.set = true
		return unix.TimerfdSettime(m.fd, 0, &m.spec, nil) != nil
	}
	m.call = make(chan struct{}, 1)
	m.stop = make(chan struct{})
	m.awake.Store(true)
	return nil
}

// pause parks the goroutine for about d, or until the end of the monitor.
func (m *monitor) pause(d time.Duration) {
	m.spec.Value, m.set = unix.NsecToTimespec(int64(d)), false
	_ = m.expiry.Read(m.wait) // fails only after end has set a deadline, since only watch closes the file
}

// wake wakes the monitor. A wake-up costs a driver about 200 ns, so the monitor goes to sleep only after quietLooks.
func (m *monitor) wake() {
	if m.awake.CompareAndSwap(false, true) {
		m.call <- struct{}{}
	}
}

// quietLooks is the number of checks without any action after which the monitor goes to sleep.
const quietLooks = 4

// watch is the monitor's goroutine.
func (e *Engine) watch() {
	m := &e.monitor
	defer m.timer.Close()
	seen := make([]uint64, len(e.loops))
	quiet := quietLooks // no action has begun yet
	for {
		interval := e.cfg.TakeoverAfter
		busy, took := e.checkLoops(seen)
		switch {
		case took:
			// Blocking calls often come in groups: the new driver may run the next one.
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

// end makes watch return, also during a pause.
func (m *monitor) end() {
	close(m.stop)
	_ = m.timer.SetReadDeadline(time.Unix(1, 0)) // fails if watch has returned
}

// sleep waits for a wake-up. It reports false if the engine has ended.
func (m *monitor) sleep(e *Engine, seen []uint64) bool {
	m.awake.Store(false)
	// A driver may have entered an action before it could see that the monitor sleeps.
	if busy, _ := e.checkLoops(seen); busy && m.awake.CompareAndSwap(false, true) {
		return true
	}
	select {
	case <-m.call:
		return true
	case <-m.stop:
		return false
	}
}

// checkLoops compares every loop's epoch with that of the last check, and takes over loops that are still in the same action. It
// reports whether any loop was or is in an action, and whether a loop was taken over.
func (e *Engine) checkLoops(seen []uint64) (busy, took bool) {
	collected := e.collectedSince(&e.monitor.pauses)
	for i, l := range e.loops {
		epoch := l.epoch.Load()
		if epoch == seen[i] && epoch&1 == 1 && l.takeOver(epoch, collected) {
			epoch++
			took = true
		}
		busy = busy || epoch != seen[i]
		seen[i] = epoch
	}
	return busy, took
}
