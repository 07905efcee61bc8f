//go:build !linux

package lifecycle

import "net"

// Listen is net.Listen for TCP.
func Listen(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }
