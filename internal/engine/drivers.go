//go:build linux

package engine

import (
	"sync"

	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// driverPool keeps drivers whose goroutine has ended, and read buffers given back by
// those that serve one connection for long, for the next takeover.
type driverPool struct {
	mu       sync.Mutex
	free     []*Driver
	readBufs [][]byte
}

// sparePerLoop bounds the drivers kept for later, which may hold a read buffer
// each, and the read buffers kept.
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
	}
	d.loop, d.epoch, d.detached = l, epoch, false
	return d
}

// newWorkerDriver returns a driver without a loop.
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

// takeReadBuf returns a read buffer.
func (e *Engine) takeReadBuf() []byte {
	p := &e.drivers
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.readBufs)
	if n == 0 {
		return make([]byte, e.cfg.ReadBuffer)
	}
	b := p.readBufs[n-1]
	p.readBufs[n-1] = nil
	p.readBufs = p.readBufs[:n-1]
	return b
}

// putReadBuf takes back a read buffer that nobody views any more.
func (e *Engine) putReadBuf(b []byte) {
	invariants.EndLoan(b)
	p := &e.drivers
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.readBufs) < sparePerLoop*len(e.loops) {
		p.readBufs = append(p.readBufs, b)
	}
}
