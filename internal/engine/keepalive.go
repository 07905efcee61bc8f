//go:build linux

package engine

import (
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// keepAliveProbes is how many probes in a row a silent peer may leave unanswered.
const keepAliveProbes = 9

// probe has the system probe peers that were silent for that long, and again in the
// same interval: else one that has vanished without a word is waited for for ever. 0
// turns it off. Accepted sockets inherit this from their listener fd, whoever set it
// before.
func probe(fd int, after time.Duration) error {
	if after <= 0 {
		return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0)
	}
	seconds := int(min((after+time.Second-1)/time.Second, 32767)) // tcp(7)
	return errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, seconds),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, seconds),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepAliveProbes))
}

// keepAliveOf returns what probe has set for a socket.
func keepAliveOf(fd int) net.KeepAliveConfig {
	option := func(level, name int) int {
		n, err := unix.GetsockoptInt(fd, level, name)
		if err != nil {
			return -1 // package net leaves it alone
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
