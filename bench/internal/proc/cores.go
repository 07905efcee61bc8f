//go:build linux

package proc

import (
	"os/exec"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// Placement has the cores of the server and of the load.
type Placement struct {
	Server, Load, Both []int
}

// Assign assigns to the server the first core that this process may use, and to the load the second one. If there is only one
// core, no process is bound to a core and pinned is false.
func Assign() (p Placement, pinned bool) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return Placement{}, false
	}
	var cores []int
	for core := 0; core < len(set)*64 && len(cores) < 2; core++ {
		if set.IsSet(core) {
			cores = append(cores, core)
		}
	}
	if len(cores) < 2 {
		return Placement{}, false
	}
	return Placement{Server: cores[:1], Load: cores[1:], Both: cores}, true
}

type startRequest struct {
	cmd   *exec.Cmd
	cores []int
	err   chan error
}

// starter returns the channel of the goroutine that starts every process. The goroutine stays locked to its thread, for two
// reasons: a child inherits the cores of the thread that forks it, and the signal Pdeathsig is sent when that thread ends.
var starter = sync.OnceValue(func() chan<- startRequest {
	requests := make(chan startRequest)
	go func() {
		runtime.LockOSThread()
		var all unix.CPUSet
		unix.SchedGetaffinity(0, &all)
		for request := range requests {
			request.err <- startFromHere(request.cmd, request.cores, &all)
		}
	}()
	return requests
})

func startOn(cmd *exec.Cmd, cores []int) error {
	request := startRequest{cmd, cores, make(chan error)}
	starter() <- request
	return <-request.err
}

func startFromHere(cmd *exec.Cmd, cores []int, all *unix.CPUSet) error {
	if len(cores) > 0 {
		var set unix.CPUSet
		for _, core := range cores {
			set.Set(core)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return err
		}
		defer unix.SchedSetaffinity(0, all)
	}
	return cmd.Start()
}
