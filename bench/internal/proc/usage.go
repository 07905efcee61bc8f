//go:build linux

package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPU returns the user and system time of all threads of the process, including threads that have ended. This is the sum of
// utime and stime in /proc/PID/stat. CPU reads the CPU clock of the process instead, because this clock counts nanoseconds and
// not hundredths of a second.
func (p *Process) CPU() (time.Duration, error) {
	// This is how the kernel encodes "the scheduler's clock of process pid" (clock_getcpuclockid(3)).
	const schedClock = 2
	clock := ^int32(p.Pid)<<3 | schedClock
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", p.Pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// RSS returns the resident memory at present, and PeakRSS its maximum up to now, both in bytes.
func (p *Process) RSS() (int64, error)     { return p.status("VmRSS") }
func (p *Process) PeakRSS() (int64, error) { return p.status("VmHWM") }

func (p *Process) status(field string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid))
	if err != nil {
		return 0, fmt.Errorf("memory of process %d: %w", p.Pid, err)
	}
	for line := range strings.Lines(string(status)) {
		value, found := strings.CutPrefix(line, field+":")
		if !found {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("memory of process %d: %w", p.Pid, err)
		}
		return kb << 10, nil
	}
	return 0, fmt.Errorf("memory of process %d: it has ended", p.Pid)
}
