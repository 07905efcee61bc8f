//go:build linux

package engine

import "sync"

// driverPool keeps drivers whose goroutine has ended, for the next takeover.
type driverPool struct {
	mu   sync.Mutex
	free []*Driver
}

// sparePerLoop bounds the drivers kept for later; each holds a read buffer.
const sparePerLoop = 4

// take returns a kept driver, nil if there is none.
func (p *driverPool) take() *Driver {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.free)
	if n == 0 {
		return nil
	}
	d := p.free[n-1]
	p.free[n-1] = nil
	p.free = p.free[:n-1]
	return d
}

// newDriver returns a driver for l, whose epoch is now the given even one.
func (e *Engine) newDriver(l *loop, epoch uint64) *Driver {
	d := e.drivers.take()
	if d == nil {
		d = e.newWorkerDriver()
		d.readBuf = make([]byte, e.cfg.ReadBuffer)
	}
	d.loop, d.epoch, d.detached = l, epoch, false
	return d
}

// newWorkerDriver returns a driver without a loop and without a read buffer.
func (e *Engine) newWorkerDriver() *Driver {
	return &Driver{engine: e, detached: true, Scratch: e.handler.NewScratch()}
}

// retire takes back a driver that has no loop any more.
func (e *Engine) retire(d *Driver) {
	p := &e.drivers
	p.mu.Lock()
	defer p.mu.Unlock()
	d.loop = nil
	if len(p.free) < sparePerLoop*len(e.loops) {
		p.free = append(p.free, d)
	}
}
