// Package backend dials the servers that actions ask, such as a database or Redis, with connections whose reads and
// writes cost less:
//
//	config.ConnConfig.DialFunc = backend.Dial // pgxpool.Config
//
// Package net tells the Go scheduler about every read and write, since a system call may block. Such a call after a pause
// wakes the scheduler's monitor thread, which then looks at the processors up to 50,000 times a second. These calls
// never block: the descriptor is non-blocking, and package net waits for it by the network poller. A connection of this
// package makes the same calls without telling the scheduler, and waits by the same poller. The event loops of Dunlin
// read and write in the same way, so in a service on the loop engine the monitor thread sleeps.
//
// A connection from this package is a [net.Conn] in every respect: deadlines, Close, errors and concurrent use are those
// of package net. It belongs to no loop and no App, and may be used from any goroutine. It is not a *net.TCPConn: code
// that asserts the type, or relies on its ReadFrom and WriteTo, does not find it.
//
// Where there is nothing to gain Dial and Wrap return an ordinary connection: on other systems than Linux, in builds
// with the race detector (which learns the order of events from the calls of package net), and for other connections
// than those of TCP and unix sockets.
package backend

import (
	"context"
	"net"
)

// Dial connects like [net.Dialer.DialContext] of a zero Dialer, and wraps the connection.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return Wrap(c), nil
}

// Wrap returns c with reads and writes that cost less, for connections of another dialer. The caller must not use c
// afterwards.
func Wrap(c net.Conn) net.Conn { return wrap(c) }
