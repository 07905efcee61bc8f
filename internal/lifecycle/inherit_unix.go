//go:build unix

package lifecycle

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Listeners are passed to a process as systemd does it (sd_listen_fds(3)):
//
//	LISTEN_FDS      how many; their descriptors are 3, 4 and so on
//	LISTEN_PID      the process that they are for
//	LISTEN_FDNAMES  their names, with colons between
//
// Whoever restarts itself cannot know the second before the new process runs. It
// leaves it out and says instead
//
//	DUNLIN_RESTART  its own process and the descriptors of two pipes, as «4711:5:6»
//
// To the first the new process, that child, writes a byte when it serves. From the second it reads
// secrets: a pipe is memory, and nobody else has its end.
const (
	envFDs     = "LISTEN_FDS"
	envPID     = "LISTEN_PID"
	envNames   = "LISTEN_FDNAMES"
	envRestart = "DUNLIN_RESTART"
	firstFD    = 3
)

// inheritance is what a process was started with.
type inheritance struct {
	listeners []inheritedListener // not claimed yet
	secrets   []byte              // of the process before
	ready     *os.File            // nil unless this process is a successor
}

// inherit takes what is for this process, once: it unsets the variables, so that
// programs started from here do not think it theirs. With successor it does so only
// in a process that another one of this program has started.
func inherit(successor bool) (in inheritance, err error) {
	fds, pid, names, restart := os.Getenv(envFDs), os.Getenv(envPID), os.Getenv(envNames), os.Getenv(envRestart)
	if successor && restart == "" {
		return in, nil // what systemd passes on may be the program's to take
	}
	for _, name := range []string{envFDs, envPID, envNames, envRestart} {
		if _, set := os.LookupEnv(name); !set {
			continue // to unset it, C's environment would be looked through
		}
		if err := os.Unsetenv(name); err != nil {
			return in, err
		}
	}
	var parent, readyFD, secretsFD int
	n := 0
	if restart != "" { // else nothing is to be scanned, which takes its time at every start
		n, _ = fmt.Sscanf(restart, "%d:%d:%d", &parent, &readyFD, &secretsFD)
	}
	if n >= 2 && parent == os.Getppid() {
		syscall.CloseOnExec(readyFD)
		in.ready = os.NewFile(uintptr(readyFD), "ready")
		if n == 3 { // an older version has none
			in.secrets = readSecrets(secretsFD)
		}
	} else if pid != strconv.Itoa(os.Getpid()) {
		return in, nil
	}
	count, err := strconv.Atoi(fds)
	if err != nil || count < 0 {
		return in, fmt.Errorf("%s is %q: it must be a number", envFDs, fds)
	}
	named := strings.Split(names, ":")
	for i := range count {
		var name string
		if i < len(named) {
			name = named[i]
		}
		ln, fdErr := inheritFD(firstFD + i)
		if fdErr != nil {
			err = fdErr // the descriptors behind it are taken nevertheless, to be closed
			continue
		}
		in.listeners = append(in.listeners, inheritedListener{ln, name})
	}
	if err != nil {
		for _, ln := range in.listeners {
			_ = ln.Close()
		}
		return inheritance{}, err
	}
	return in, nil
}

// mostSecrets is how much a pipe takes, in bytes, before somebody reads.
const mostSecrets = 4096

// readSecrets reads to the end of a pipe, of which the other end is closed; nil if it cannot be read.
func readSecrets(fd int) []byte {
	f := os.NewFile(uintptr(fd), "secrets")
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostSecrets))
	if err != nil {
		return nil
	}
	return b
}

// writeSecrets returns the end of a pipe that has b.
func writeSecrets(b []byte) (*os.File, error) {
	if len(b) > mostSecrets {
		return nil, fmt.Errorf("%d bytes of secrets are too many to be handed on", len(b))
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_, err = w.Write(b)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// inheritFD makes a listener of a descriptor and closes that.
func inheritFD(fd int) (net.Listener, error) {
	f := os.NewFile(uintptr(fd), "listener")
	ln, err := net.FileListener(f) // of a duplicate
	_ = f.Close()
	if err != nil {
		return nil, fmt.Errorf("descriptor %d: %w", fd, err)
	}
	return ln, nil
}

// isSuccessor reports whether the process before this one waits for tellReady.
func (in *inheritance) isSuccessor() bool { return in.ready != nil }

// tellReady tells the process before this one that it may go.
func (in *inheritance) tellReady() {
	if in.ready == nil {
		return
	}
	_, _ = in.ready.Write([]byte{1}) // if it is gone already, so much the better
	_ = in.ready.Close()
	in.ready = nil
}
