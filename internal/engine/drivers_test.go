//go:build linux

package engine

import (
	"testing"

	"github.com/dunlinhttp/dunlin/internal/admission"
)

func TestLetGo(t *testing.T) {
	e := &Engine{cfg: Config{ReadBuffer: 1000}, loops: make([]*loop, 1)}
	e.buffers.init(new(admission.Budget))
	e.buffers.put(e.buffers.get(admission.Input, 100)) // of the class of 512 bytes
	e.putReadBuf(e.takeReadBuf())
	e.retire(&Driver{Out: make([]byte, 0, 300), memory: memory{readBuf: e.takeReadBuf()}})
	if got := e.LetGo(); got != 512+1000+300 {
		t.Errorf("%d bytes were let go, want those of a buffer, of a driver's read buffer and of its output", got)
	}
	if got := e.LetGo(); got != 0 {
		t.Errorf("%d bytes were left", got)
	}
}
