//go:build linux

package engine_test

import (
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/engine"
)

// The memory of TLS for open connections is bounded: the connections that have been idle for longest are closed.
func TestTLSIdleConnectionsMakeRoom(t *testing.T) {
	const one, most = 6 << 10, 30
	shed := new(admission.Shed)
	s := serveTLS(t, engine.Config{Loops: 1, SecureMemory: most * one, Shed: shed}, &engine.TLS{}, newLineHandler())
	ask := func(c *client) {
		c.send("echo hello\n")
		c.want("hello")
	}
	var old []*client
	for range most {
		c := s.dialTLS(nil)
		ask(c)
		old = append(old, c)
	}
	if n := s.Stats().SecureBytes; n != most*one || shed.Count(admission.IdleDropped) != 0 {
		t.Fatalf("%d bytes, %d closed, before it is too much", n, shed.Count(admission.IdleDropped))
	}
	s.AdvanceClock(5 * time.Second) // they are idle for this time
	fresh := s.dialTLS(nil)
	ask(fresh)
	eventually(t, "idle connections are closed", func() bool { return s.Stats().SecureBytes <= most*one })
	closed := 0
	for _, c := range old {
		if _, err := c.Write([]byte("echo hello\n")); err == nil {
			if _, err := c.Read(make([]byte, 6)); err == nil {
				continue
			}
		}
		closed++
	}
	if closed == 0 || uint64(closed) != shed.Count(admission.IdleDropped) {
		t.Errorf("%d connections are closed, %d were counted", closed, shed.Count(admission.IdleDropped))
	}
	ask(fresh)
	if _, err := old[0].Read(make([]byte, 1)); err == nil {
		t.Error("the oldest is open")
	}
	for _, c := range append(old, fresh) {
		c.Close()
	}
	eventually(t, "nothing is reckoned when all are closed", func() bool { return s.Stats().SecureBytes == 0 })
}
