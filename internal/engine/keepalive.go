//go:build linux

package engine

import (
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// keepAliveProbes is the number of unanswered probes after which a silent peer is considered lost.
const keepAliveProbes = 9

// probe makes the system probe peers that were silent for the given time, and again at the same interval. Without probes, the
// engine would wait without limit for a peer that vanished. If after is 0, there are no probes. Accepted sockets inherit the setting of the
// listener fd; probe replaces a setting that other code made before.
func probe(fd int, after time.Duration) error {
	if after <= 0 {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0)
	}
	seconds := int(min((after+time.Second-1)/time.Second, 32767)) // the limit of tcp(7)
	return errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, seconds),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, seconds),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepAliveProbes))
}

// keepAliveOf returns the keep-alive settings of a socket, as made by probe. A hijacked connection keeps them.
func keepAliveOf(fd int) net.KeepAliveConfig {
	option := func(level, name int) int {
		n, err := unix.GetsockoptInt(fd, level, name)
		if err != nil {
			return -1 // package net does not change it
		}
		return n
	}
	return net.KeepAliveConfig{
		Enable:   option(unix.SOL_SOCKET, unix.SO_KEEPALIVE) > 0,
		Idle:     time.Duration(option(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)) * time.Second,
		Interval: time.Duration(option(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL)) * time.Second,
		Count:    option(unix.IPPROTO_TCP, unix.TCP_KEEPCNT),
	}
}
