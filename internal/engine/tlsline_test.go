//go:build linux

package engine_test

import (
	"crypto/tls"
	"log/slog"
	"strings"
	"testing"

	"github.com/dunlinhttp/dunlin/internal/admission"
	"github.com/dunlinhttp/dunlin/internal/engine"
	"github.com/dunlinhttp/dunlin/internal/memory"
	"github.com/dunlinhttp/dunlin/internal/tlsmem/tlstest"
)

// Clients with a session are recognized by their ClientHello, and have a line of their own.
func TestTLSHandshakesOfResumingClients(t *testing.T) {
	for _, c := range []struct {
		name      string
		version   uint16
		noTickets bool
	}{
		{"TLS 1.2", tls.VersionTLS12, false},
		{"TLS 1.3", tls.VersionTLS13, false},
		{"TLS 1.3 without tickets", tls.VersionTLS13, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			type begun struct{ whole, resume int }
			first, again := begun{1, 0}, begun{0, 1}
			if c.noTickets {
				again = first
			}
			client := tlsVersion(c.version)
			client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			for i, want := range []begun{first, again} { // each with a server of its own: the validity of the session does not matter
				var s *server
				seen := make(chan begun, 1)
				config := tlstest.Server()
				config.SessionTicketsDisabled = c.noTickets && i > 0
				config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
					var b begun
					b.whole, b.resume = s.HandshakesBegun()
					seen <- b
					return nil, nil
				}
				s = serveTLS(t, engine.Config{Loops: 1}, &engine.TLS{Config: config}, newLineHandler())
				conn := s.dialTLS(client)
				conn.send("echo a\n")
				conn.want("a") // so that the ticket has arrived
				if got := <-seen; got != want {
					t.Errorf("connection %d: got %+v under way, want %+v", i, got, want)
				}
			}
		})
	}
}

// If many clients that hold little fill the budget, they are evicted for the handshakes of new clients which the server has
// answered. These handshakes are not evicted for one another.
func TestTLSSmallHoldersAreEvictedForHandshakes(t *testing.T) {
	shed := new(admission.Shed)
	s := serveTLS(t, engine.Config{Loops: 2, Budget: memory.New(tightBudget), Shed: shed, Logger: slog.New(slog.DiscardHandler)}, &engine.TLS{}, newLineHandler())
	served := func() *client {
		c := s.dialTLS(nil)
		c.send("echo new\n")
		c.want("new")
		return c
	}
	after := 0 // clients since the budget was full
	for n := 0; after < 20; n++ {
		if n > 2*tightBudget/(16<<10) {
			t.Fatal("the budget is not full")
		}
		served().send(strings.Repeat("x", 12_000)) // stored in 16 KiB
		if shed.Count(admission.LargestHolder) > 0 {
			after++
		}
	}
}
