//go:build linux

package runner

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// usage is the CPU time of the machine, and of this program with its children, at a point in time.
type usage struct {
	at        time.Time
	all, ours time.Duration
}

// tick is the unit of /proc/stat. It is the same on every architecture that Go supports.
const tick = 10 * time.Millisecond

// now returns the present usage. It does not count the time of the kernel in interrupts, because some kernels charge
// this time to the program that was interrupted. Therefore the result for other programs is a lower bound.
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

// others returns the share of the time of all cores that other programs have used since u, or that the host of a
// virtual machine has taken. The time of a child of this program counts as the time of another program until the
// child has ended.
func (u usage) others(until usage, cores int) float64 {
	elapsed := until.at.Sub(u.at) * time.Duration(cores)
	if elapsed <= 0 {
		return 0
	}
	return max(0, (until.all-u.all-(until.ours-u.ours)).Seconds()/elapsed.Seconds())
}
