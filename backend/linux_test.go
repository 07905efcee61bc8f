//go:build linux && !race

package backend_test

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/dunlinhttp/dunlin/backend"
)

func TestNothingIsAllocated(t *testing.T) {
	c, other := pair(t, "tcp")
	b := make([]byte, 100)
	if n := testing.AllocsPerRun(100, func() {
		c.Write(b)
		other.Read(b)
		other.Write(b)
		c.Read(b)
	}); n != 0 {
		t.Errorf("got %v allocations for a write and a read", n)
	}
}

func TestStreamSocketsAreWrapped(t *testing.T) {
	for _, network := range networks {
		c, _ := pair(t, network)
		switch c.(type) {
		case *net.TCPConn, *net.UnixConn:
			t.Errorf("Dial returned a plain %T", c)
		}
	}
	// These sockets preserve messages. A read with a limited length would truncate one.
	for _, network := range []string{"unixgram", "unixpacket"} {
		name := filepath.Join(t.TempDir(), "s")
		var err error
		var close interface{ Close() error }
		if network == "unixgram" {
			close, err = net.ListenPacket(network, name)
		} else {
			close, err = net.Listen(network, name)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer close.Close()
		c, err := net.Dial(network, name)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if backend.Wrap(c) != c {
			t.Errorf("Wrap changed a connection of %s", network)
		}
	}
}
