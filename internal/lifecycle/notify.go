package lifecycle

import (
	"net"
	"os"
)

// tellManager tells systemd about this process (sd_notify(3)), if it listens. A
// manager that cannot be told is none to fail for.
func tellManager(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	_, _ = conn.Write([]byte(state))
	_ = conn.Close()
}
