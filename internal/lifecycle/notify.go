package lifecycle

import (
	"net"
	"os"
)

// tellManager reports the state of this process to systemd (sd_notify(3)), if systemd listens. Errors are ignored: the
// service works without the report.
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
