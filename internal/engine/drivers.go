//go:build linux

package engine

import "github.com/dunlinhttp/dunlin/internal/admission"

// driverPool keeps drivers whose goroutine has ended, for the next takeover.
type driverPool struct {
	most int
	free admission.FreeList[*Driver]
}

// A kept driver holds its input buffer, and an output buffer of at most keptOut bytes. Together the kept drivers hold about as
// many bytes as a class of the buffer pool may keep. Their number is at most maxSpare, but at least sparePerLoop for each loop.
const (
	keptOut      = 8 << 10
	sparePerLoop = 4
	maxSpare     = 128
)

func (e *Engine) initDrivers() {
	e.drivers.most = max(sparePerLoop*e.cfg.Loops, min(e.buffers.most/(ownInput+keptOut), maxSpare))
}

// newDriver returns a driver for l. epoch is the present epoch of l, an even number.
func (e *Engine) newDriver(l *loop, epoch uint64) *Driver {
	d := e.spareDriver()
	d.loop, d.epoch, d.detached = l, epoch, false
	return d
}

// spareDriver returns a driver without a loop: a kept driver if there is one, or a new driver.
func (e *Engine) spareDriver() *Driver {
	if d, kept := e.drivers.free.Take(); kept {
		return d
	}
	return e.freshDriver()
}

// freshDriver returns a new driver without a loop.
func (e *Engine) freshDriver() *Driver {
	return &Driver{engine: e, detached: true, parking: new(parking), Scratch: e.handler.NewScratch()}
}

// retire keeps a driver that has no loop any more, for later use.
func (e *Engine) retire(d *Driver) {
	d.loop = nil
	if d.second = nil; cap(d.Out) > keptOut {
		d.Out = nil
	}
	e.drivers.free.Keep(d, e.drivers.most)
}

// DropFree leaves all free buffers and drivers to the garbage collector, and returns their size in bytes. It is for an engine
// with little work. Safe for concurrent use.
func (e *Engine) DropFree() (bytes int64) {
	bytes = e.buffers.dropFree()
	for _, d := range e.drivers.free.TakeAll() {
		bytes += int64(d.unheld())
	}
	return bytes
}
