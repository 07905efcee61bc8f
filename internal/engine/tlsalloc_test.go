//go:build linux && !race

package engine_test

import (
	"io"
	"runtime"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

func TestTLSRequestAllocations(t *testing.T) {
	h := &bareHandler{}
	s := serveTLS(t, engine.Config{Loops: 1}, &engine.TLS{}, h)
	raw, _ := s.dialRaw()
	if err := discardTickets(raw); err != nil {
		t.Fatal(err)
	}
	const requests = 2000
	records := make([][]byte, requests)
	for i := range records {
		records[i] = raw.Record(tlstest.Application, []byte("question"), 0)
	}
	socket := raw.Socket()
	answer := make([]byte, 5+len("answer")+17)
	ask := func(records [][]byte) {
		for _, r := range records {
			if _, err := socket.Write(r); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(socket, answer); err != nil {
				t.Fatal(err)
			}
		}
	}
	ask(records[:requests/2])
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ask(records[requests/2:])
	runtime.ReadMemStats(&after)
	// The runtime makes a few allocations of its own.
	if n := float64(after.Mallocs-before.Mallocs) / (requests / 2); n > 0.05 {
		t.Errorf("%v allocations a request", n)
	}
}

// discardTickets makes the client read the session tickets that follow the handshake: it sends a request and reads the answer
// by crypto/tls, which reads the tickets first.
func discardTickets(raw *tlstest.Raw) error {
	if err := raw.Send(raw.Record(tlstest.Application, []byte("question"), 0)); err != nil {
		return err
	}
	_, err := io.ReadFull(raw.Conn, make([]byte, len("answer")))
	return err
}

// bareHandler answers all input that arrives at once.
type bareHandler struct{ lineHandler }

func (h *bareHandler) Data(d *engine.Driver, _ *engine.Conn, in []byte) int {
	d.Out = append(d.Out, "answer"...)
	return len(in)
}

func (h *bareHandler) Closed(*engine.Conn) {}
