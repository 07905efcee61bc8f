//go:build !linux

package stdhttp

import (
	"net"
	"time"
)

// peerOf knows nothing: the client is missed when it is read again.
func peerOf(net.Conn) (unread int, done, lost bool) { return 0, false, false }

// unreadOf knows nothing, too.
func unreadOf(net.Conn) int { return 0 }

// silentFor does not know.
func silentFor(net.Conn) time.Duration { return 0 }

func hasBacklog(net.Listener) bool { return false }
