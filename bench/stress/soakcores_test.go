//go:build linux

package stress_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

// A soakCores separates the service from its clients: the service has one core, and the clients and measurements have the
// other, so computing clients do not slow the service down. All of them have priority over other processes, as far as
// permitted: a client that does not run for a quarter of a second loses its request to the end of an idle connection.
type soakCores struct {
	proc.Placement
	pinned bool
}

// moveToLoadCore moves this process to the core of the load until the test has ended.
func moveToLoadCore(t *testing.T) soakCores {
	t.Helper()
	var p soakCores
	if p.Placement, p.pinned = proc.Assign(); !p.pinned {
		t.Log("one core: clients and service disturb each other")
		return p
	}
	own := os.Getpid()
	if err := onThreads(own, func(tid int) error { return pin(tid, p.Load) }); err != nil {
		t.Fatal(err)
	}
	group, err := os.ReadFile(autogroup(own))
	prefer(own)
	t.Cleanup(func() {
		if err := onThreads(own, func(tid int) error { return pin(tid, p.Both) }); err != nil {
			t.Error(err)
		}
		if _, nice, found := strings.Cut(string(group), "nice "); err == nil && found {
			_ = os.WriteFile(autogroup(own), []byte(strings.TrimSpace(nice)), 0)
		}
	})
	return p
}

// serve moves a new process to the cores of the service. Its children start there, too.
func (p soakCores) serve(pid int) error {
	if !p.pinned {
		return nil
	}
	prefer(pid)
	return onThreads(pid, func(tid int) error { return pin(tid, p.Server) })
}

// autogroup returns the file with the priority of a session's processes (sched(7)).
func autogroup(pid int) string { return fmt.Sprintf("/proc/%d/autogroup", pid) }

// prefer raises the priority of a process's session, if the system has such groups.
func prefer(pid int) { _ = os.WriteFile(autogroup(pid), []byte("-15"), 0) }

// goFirst lets a process run before all others on its core. If that is not permitted, its lag is visible in the results.
func goFirst(pid int) {
	_ = onThreads(pid, func(tid int) error {
		return unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
	})
}

func pin(tid int, cores []int) error {
	var set unix.CPUSet
	for _, core := range cores {
		set.Set(core)
	}
	return unix.SchedSetaffinity(tid, &set)
}

// onThreads calls a function for all threads of a process, also for threads that start meanwhile.
func onThreads(pid int, do func(tid int) error) error {
	folder := fmt.Sprintf("/proc/%d/task", pid)
	for done := map[int]bool{}; ; {
		threads, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		more := false
		for _, entry := range threads {
			tid, err := strconv.Atoi(entry.Name())
			if err != nil {
				return err
			}
			if done[tid] {
				continue
			}
			done[tid], more = true, true
			if err := do(tid); err != nil && err != unix.ESRCH { // it may have ended
				return fmt.Errorf("thread %d of process %d: %w", tid, pid, err)
			}
		}
		if !more {
			return nil
		}
	}
}
