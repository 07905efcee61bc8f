//go:build linux

package engine_test

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/internal/engine"
)

// Connections must not have to wait until the kernel has made room for their descriptors.
func TestRoomForDescriptors(t *testing.T) {
	const room = 4096
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < room {
		t.Skipf("this process may have %d descriptors (%v), the test needs %d", limit.Cur, err, room)
	}
	serve(t, engine.Config{Loops: 1}, newLineHandler())
	eventually(t, "the table has room", func() bool { return tableSize(t) >= room })
}

// tableSize is how many descriptors the process's table has room for (proc_pid_status(5)).
func tableSize(t *testing.T) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	size := regexp.MustCompile(`(?m)^FDSize:\s*(\d+)$`).FindSubmatch(status)
	if size == nil {
		t.Fatal("the system does not say how large the table is")
	}
	n, err := strconv.Atoi(string(size[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
