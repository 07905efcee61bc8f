//go:build !linux

package dunlin

import (
	"errors"
	"net"
)

func acceptNow(net.Listener) (net.Conn, error) { return nil, errors.ErrUnsupported }
