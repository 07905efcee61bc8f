// Package backend dials servers that actions use, such as a database or Redis. Reads and writes on its connections need less
// CPU:
//
//	config.ConnConfig.DialFunc = backend.Dial // pgxpool.Config
//
// Package net informs the Go scheduler of every read and write, because a system call may block. If the process was idle
// before, this wakes the scheduler's monitor thread, which then checks the processors up to 50,000 times a second. But reads
// and writes of sockets never block: the descriptor is non-blocking, and package net waits for it with the network poller. A
// connection of this package makes the same system calls without informing the scheduler, and waits with the same poller.
// Dunlin's event loops do the same, so in a service on the loop engine the monitor thread sleeps.
//
// A connection of this package is a complete [net.Conn]: deadlines, Close, errors and concurrent use are the same as in
// package net. But it is not a *net.TCPConn: a type assertion to *net.TCPConn fails, and it has no ReadFrom and WriteTo.
//
// Dial and Wrap return an ordinary connection in three cases: on systems other than Linux, in builds with the race detector
// (which learns the order of events from the calls of package net), and for connections other than TCP and unix stream
// sockets.
package backend

import (
	"context"
	"net"
)

// Dial connects like [net.Dialer.DialContext] of a zero Dialer, and returns the result of Wrap.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return Wrap(c), nil
}

// Wrap returns c with reads and writes that need less CPU, for connections of another dialer. The caller must not use c
// afterwards.
func Wrap(c net.Conn) net.Conn { return wrap(c) }
