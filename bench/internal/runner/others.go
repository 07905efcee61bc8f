//go:build linux

package runner

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// usage is the CPU time of the machine, and of this program with its children.
type usage struct {
	at        time.Time
	all, ours time.Duration
}

// tick is the unit of /proc/stat, the same on every architecture that Go runs on.
const tick = 10 * time.Millisecond

// now excludes the kernel's time in interrupts: some kernels charge it to the interrupted program. The result for other
// programs is therefore a lower bound.
func now() usage {
	u := usage{at: time.Now()}
	stat, _ := os.ReadFile("/proc/stat")
	first, _, _ := strings.Cut(string(stat), "\n") // cpu user nice system idle iowait irq softirq steal …
	for i, field := range strings.Fields(first) {
		if i == 1 || i == 2 || i == 3 || i == 8 {
			ticks, _ := strconv.ParseInt(field, 10, 64)
			u.all += time.Duration(ticks) * tick
		}
	}
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var r unix.Rusage
		if unix.Getrusage(who, &r) == nil {
			u.ours += time.Duration(r.Utime.Nano() + r.Stime.Nano())
		}
	}
	return u
}

// others returns the share of all cores' time that other programs, or the host of a virtual machine, have used since u.
// Children are included once they have ended.
func (u usage) others(until usage, cores int) float64 {
	elapsed := until.at.Sub(u.at) * time.Duration(cores)
	if elapsed <= 0 {
		return 0
	}
	return max(0, (until.all-u.all-(until.ours-u.ours)).Seconds()/elapsed.Seconds())
}
