//go:build !linux

package stdhttp

import (
	"net"
	"time"
)

// peerOf has no information on this system: only the next read detects a disconnect.
func peerOf(net.Conn) (unread int, done, lost bool) { return 0, false, false }

// unreadOf has no information on this system.
func unreadOf(net.Conn) int { return 0 }

// silentFor has no information on this system.
func silentFor(net.Conn) time.Duration { return 0 }

func hasBacklog(net.Listener) bool { return false }
