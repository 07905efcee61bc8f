//go:build !linux

package dunlin

import (
	"errors"
	"net"

	"github.com/dunlinhttp/dunlin/internal/lifecycle"
)

// newLoopServer reports that the loop engine does not run here.
func newLoopServer(*App, net.Listener) (lifecycle.Server, error) {
	return nil, errors.New("the loop engine runs on Linux only")
}

// loopState is empty where there is no loop engine.
type loopState struct{}
