//go:build !linux || race

package backend

import "net"

func wrap(c net.Conn) net.Conn { return c }
