//go:build linux

package engine

import (
	"net/netip"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/memory"
)

func TestDropFreeFreesIdleMemory(t *testing.T) {
	e := &Engine{cfg: Config{Loops: 1}}
	e.buffers.init(new(memory.Budget), 1000)
	e.buffers.put(e.buffers.forReading())
	e.initDrivers()
	a := new(memory.Budget).Open(new(Conn), netip.Addr{})
	e.buffers.put(e.buffers.get(a, memory.Input, 300)) // of the class of 336 bytes
	e.retire(&Driver{Out: make([]byte, 0, 300), callBuffers: callBuffers{own: e.buffers.scratch(ownInput)}})
	e.retire(&Driver{Out: make([]byte, 0, keptOut+1)})
	if got := e.DropFree(); got != 336+1000+ownInput+300 {
		t.Errorf("DropFree freed %d bytes, want the sizes of two buffers and of a driver's input and output", got)
	}
	if got := e.DropFree(); got != 0 {
		t.Errorf("a second DropFree freed %d bytes", got)
	}
}
