//go:build !linux

package stdhttp

import (
	"errors"
	"net"
)

func acceptNow(net.Listener) (net.Conn, error) { return nil, errors.ErrUnsupported }
