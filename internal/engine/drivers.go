//go:build linux

package engine

import (
	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/invariants"
)

// driverPool keeps drivers whose goroutine has ended, and read buffers given back by
// those that serve one connection for long, for the next takeover.
type driverPool struct {
	free     admission.FreeList[*Driver]
	readBufs admission.FreeList[[]byte]
}

// sparePerLoop bounds the drivers kept for later, which may hold a read buffer
// each, and the read buffers kept.
const sparePerLoop = 4

// newDriver returns a driver for l, whose epoch is now the given even one.
func (e *Engine) newDriver(l *loop, epoch uint64) *Driver {
	d := e.spareDriver()
	d.loop, d.epoch, d.detached = l, epoch, false
	return d
}

// spareDriver returns a driver without a loop, a kept one if there is any.
func (e *Engine) spareDriver() *Driver {
	if d, kept := e.drivers.free.Take(); kept {
		return d
	}
	return e.newWorkerDriver()
}

// newWorkerDriver returns a driver without a loop.
func (e *Engine) newWorkerDriver() *Driver {
	return &Driver{engine: e, detached: true, Scratch: e.handler.NewScratch()}
}

// retire takes back a driver that has no loop any more.
func (e *Engine) retire(d *Driver) {
	d.loop = nil
	e.drivers.free.Keep(d, sparePerLoop*len(e.loops))
}

// takeReadBuf returns a read buffer.
func (e *Engine) takeReadBuf() []byte {
	b, kept := e.drivers.readBufs.Take()
	if !kept {
		b = make([]byte, e.cfg.ReadBuffer)
	}
	return b
}

// putReadBuf takes back a read buffer that nobody views any more.
func (e *Engine) putReadBuf(b []byte) {
	invariants.EndLoan(b)
	e.drivers.readBufs.Keep(b, sparePerLoop*len(e.loops))
}

// LetGo leaves to the collector what the engine keeps for later only, and returns how
// many bytes that is. It is for an engine with little to do, and safe at any time.
func (e *Engine) LetGo() (bytes int64) {
	bytes = e.buffers.letGo()
	for _, b := range e.drivers.readBufs.TakeAll() {
		bytes += int64(len(b))
	}
	for _, d := range e.drivers.free.TakeAll() {
		bytes += int64(len(d.readBuf) + cap(d.Out))
	}
	return bytes
}
