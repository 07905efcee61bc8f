//go:build linux

package stress_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

const mb = 1_000_000

// resident returns the resident memory of a process in bytes: the current value (VmRSS), or the maximum since its start or
// the last resetPeak (VmHWM).
func resident(t *testing.T, pid int, field string) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		missing(t, "the memory of a process cannot be looked at: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, field+":"); found {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				t.Fatalf("%s of process %d: %v", field, pid, err)
			}
			return kb << 10
		}
	}
	t.Fatalf("process %d has no %s: it has ended", pid, field)
	return 0
}

// resetPeak resets the peak to the resident memory (proc_pid_clear_refs(5)).
func resetPeak(t *testing.T, pid int) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		missing(t, "the peak of a process's memory cannot be reset: %v", err)
	}
}

// atMost compares a measured amount of memory with its limit. If other tests run at the same time, it may exceed the limit by
// half, because the collector runs late.
func atMost(t *testing.T, what string, got, bar int64) {
	t.Helper()
	t.Logf("%s: %.1f MB (bar: %.1f MB)", what, float64(got)/mb, float64(bar)/mb)
	if limit := either(bar*3/2, bar); got > limit {
		t.Errorf("%s: got %.1f MB, which is more than %.1f MB", what, float64(got)/mb, float64(limit)/mb)
	}
}
