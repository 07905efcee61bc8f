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

// Listeners are passed to a process by the protocol of systemd (sd_listen_fds(3)):
//
//	LISTEN_FDS      number of listeners; their descriptors are 3, 4 and so on
//	LISTEN_PID      process that gets them
//	LISTEN_FDNAMES  their names, separated by colons
//
// A restart does not set LISTEN_PID, which is unknown before the new process runs. It sets instead
//
//	DUNLIN_RESTART  ID of the old process and the descriptors of two pipes, as «4711:5:6»
//
// The new process is a child of the old one. It writes a byte to the first pipe when it serves, and reads
// secrets from the second one. A pipe keeps them in memory, and no other process has it open.
const (
	envFDs     = "LISTEN_FDS"
	envPID     = "LISTEN_PID"
	envNames   = "LISTEN_FDNAMES"
	envRestart = "DUNLIN_RESTART"
	firstFD    = 3
)

// inheritance is the state that the process inherited at its start.
type inheritance struct {
	listeners []inheritedListener // listeners that are not claimed
	secrets   []byte              // secrets of the previous process
	ready     *os.File            // nil unless this process is a successor
}

// inherit takes the inherited state, once. It unsets the variables, so that programs started by this process do not use them. If
// successor is set, it takes the state only if another process of this program has started this process.
func inherit(successor bool) (in inheritance, err error) {
	fds, pid, names, restart := os.Getenv(envFDs), os.Getenv(envPID), os.Getenv(envNames), os.Getenv(envRestart)
	if successor && restart == "" {
		return in, nil // listeners from systemd may belong to the program
	}
	for _, name := range []string{envFDs, envPID, envNames, envRestart} {
		if _, set := os.LookupEnv(name); !set {
			continue // unsetting it would search C's environment
		}
		if err := os.Unsetenv(name); err != nil {
			return in, err
		}
	}
	var parent, readyFD, secretsFD int
	n := 0
	if restart != "" { // fmt.Sscanf would slow down every start
		n, _ = fmt.Sscanf(restart, "%d:%d:%d", &parent, &readyFD, &secretsFD)
	}
	if n >= 2 && parent == os.Getppid() {
		syscall.CloseOnExec(readyFD)
		in.ready = os.NewFile(uintptr(readyFD), "ready")
		if n == 3 { // a variable of an older version has no second pipe
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
			err = fdErr // go on with the remaining descriptors, so that they are closed
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

// maxSecrets is the maximum size of the secrets, in bytes: a pipe accepts as many bytes before it is read.
const maxSecrets = 4096

// readSecrets reads the pipe of secrets to its end. It returns nil if the pipe cannot be read.
func readSecrets(fd int) []byte {
	f := os.NewFile(uintptr(fd), "secrets")
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecrets))
	if err != nil {
		return nil
	}
	return b
}

// writeSecrets returns the read end of a pipe with the content b.
func writeSecrets(b []byte) (*os.File, error) {
	if len(b) > maxSecrets {
		return nil, fmt.Errorf("secrets of %d bytes are too large to pass on", len(b))
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

// inheritFD makes a listener from a descriptor and closes the descriptor.
func inheritFD(fd int) (net.Listener, error) {
	f := os.NewFile(uintptr(fd), "listener")
	ln, err := net.FileListener(f) // duplicates the descriptor
	_ = f.Close()
	if err != nil {
		return nil, fmt.Errorf("descriptor %d: %w", fd, err)
	}
	return ln, nil
}

// isSuccessor reports whether the previous process waits for tellReady.
func (in *inheritance) isSuccessor() bool { return in.ready != nil }

// tellReady informs the previous process that this process serves, so that the previous one drains.
func (in *inheritance) tellReady() {
	if in.ready == nil {
		return
	}
	_, _ = in.ready.Write([]byte{1}) // the previous process may have ended already
	_ = in.ready.Close()
	in.ready = nil
}
