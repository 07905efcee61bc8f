//go:build !linux

package loophttp

import (
	"errors"
	"net"

	"github.com/dunlinhttp/dunlin/internal/lifecycle"
)

// A Service is empty where there is no loop engine.
type Service struct{}

// NewServer reports that the loop engine does not run on this system.
func (*Service) NewServer(net.Listener, Settings, *lifecycle.TLS) (lifecycle.Server, error) {
	return nil, errors.New("the loop engine runs on Linux only")
}

// Stats returns false: the engine serves only on Linux.
func (*Service) Stats() (stats Stats, serving bool) { return Stats{}, false }
