//go:build linux

package engine

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A process's table of descriptors begins with room for 64. Whoever takes a descriptor when
// it is full waits until the kernel has doubled it, which in a process with threads takes 10 to
// 25 ms (it waits until no processor reads the old table, synchronize_rcu). A burst of a
// thousand connections would have a loop stand still four times. So the table is made larger
// ahead of them, by a goroutine that may wait.

// firstTable is the room that is made at the start, for 32 KB of the kernel's memory.
const firstTable = 4096

// descriptors is the process's table, as far as this package has enlarged it; it never
// becomes smaller.
var descriptors table

type table struct{ size atomic.Int64 }

// firstAfter is how long after the start that is done: the thread that waits for the kernel, and the one that takes
// its place, are not for when a program starts.
const firstAfter = 20 * time.Millisecond

// begin makes the first room, soon.
func (t *table) begin() {
	if t.size.CompareAndSwap(0, firstTable) {
		time.AfterFunc(firstAfter, func() { enlarge(firstTable) })
	}
}

// taken has the table doubled, soon, when the descriptor that was taken just now shows that
// it fills.
func (t *table) taken(fd int32) {
	size := t.size.Load()
	if size == 0 {
		return // it is left to the system
	}
	if int64(fd) >= size-size/4 && t.size.CompareAndSwap(size, 2*size) {
		go enlarge(2 * size)
	}
}

// enlarge makes room for size descriptors, or as many as the process may have. Should it
// fail, the kernel does it when there is need.
func enlarge(size int64) {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur == 0 {
		return
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return
	}
	defer closeFD(int32(fd))
	// The least number that the copy may get is the last that is to have room.
	last, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, int(min(uint64(size), limit.Cur))-1)
	if err == nil {
		closeFD(int32(last))
	}
}
