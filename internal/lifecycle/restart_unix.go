//go:build unix

package lifecycle

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// hangups receives the SIGHUPs of a process.
type hangups struct {
	c        chan os.Signal
	terminal bool // the process has a controlling terminal
	nohup    bool // SIGHUP of the terminal must not end the process, see nohup(1)
	program  string
}

// newHangups starts to receive the signals. If leave is set, SIGHUP is left to the program.
func newHangups(leave bool) *hangups {
	if leave {
		return new(hangups)
	}
	h := &hangups{make(chan os.Signal, 1), hasTerminal(), signal.Ignored(syscall.SIGHUP), program()}
	signal.Notify(h.c, syscall.SIGHUP)
	return h
}

// program returns the path of this program's file for a restart, or "" if it is unknown. The name by which the program was
// started has precedence, because a deployment may have replaced the file or changed a symbolic link, so that the path of the
// running file is outdated.
func program() string {
	running, err := os.Executable()
	if err != nil {
		return ""
	}
	named, err := exec.LookPath(os.Args[0])
	if err != nil {
		return running
	}
	if named, err = filepath.Abs(named); err != nil {
		return running
	}
	a, errA := os.Stat(running)
	b, errB := os.Stat(named)
	if errA != nil || errB != nil || !os.SameFile(a, b) {
		return running // the name is not a path, or is relative to another folder
	}
	return named
}

// close stops receiving the signals. It is called at the end of Run, so that a SIGHUP during the drain does not kill the process.
func (h *hangups) close() {
	if h.c != nil {
		signal.Stop(h.c)
	}
}

// terminalGone reports whether a SIGHUP came from a closed terminal instead of from another process.
func (h *hangups) terminalGone() bool {
	gone := h.terminal && !hasTerminal()
	h.terminal = h.terminal && !gone
	return gone
}

func hasTerminal() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

// A successor is the new process of a restart.
type successor struct {
	process *os.Process
	result  chan error // gets one value: nil when the successor serves
}

// successorTimeout is the maximum time until a new process serves.
const successorTimeout = time.Minute

// startSuccessor starts the program's file and passes on the listeners and secrets.
func (h *hangups) startSuccessor(endpoints []Endpoint, secrets []byte) (*successor, error) {
	if os.Getpid() == 1 {
		return nil, errors.New("this is process 1: its end would end the container")
	}
	if h.program == "" {
		return nil, errors.New("the file of the program is unknown")
	}
	ready, told, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(h.program, os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	var names []string
	cmd.ExtraFiles, names, err = duplicates(endpoints)
	cmd.ExtraFiles = append(cmd.ExtraFiles, told)
	cmd.Env = successorEnv(names)
	if err == nil {
		var from *os.File
		if from, err = writeSecrets(secrets); err == nil {
			cmd.ExtraFiles = append(cmd.ExtraFiles, from)
			err = cmd.Start()
		}
	}
	for _, f := range cmd.ExtraFiles {
		_ = f.Close()
	}
	if err != nil {
		return nil, errors.Join(err, ready.Close())
	}
	s := &successor{cmd.Process, make(chan error, 1)}
	go s.watch(cmd, ready)
	return s, nil
}

// watch reports the result of the new process, and waits for its end (wait(2)).
func (s *successor) watch(cmd *exec.Cmd, ready *os.File) {
	var one [1]byte
	err := ready.SetReadDeadline(time.Now().Add(successorTimeout))
	if err == nil {
		_, err = ready.Read(one[:])
	}
	_ = ready.Close()
	if err == nil {
		s.result <- nil
		_ = cmd.Wait()
		return
	}
	// The process has ended, or the time is over.
	_ = cmd.Process.Kill()
	if ended := cmd.Wait(); ended != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		err = ended
	}
	s.result <- fmt.Errorf("process %d did not begin to serve: %w", s.process.Pid, err)
}

func (s *successor) pid() int { return s.process.Pid }

// outcome returns the channel of the result. It returns a nil channel if there is no successor.
func (s *successor) outcome() <-chan error {
	if s == nil {
		return nil
	}
	return s.result
}

// abandon ends a new process that is not needed any more.
func (s *successor) abandon() {
	if s != nil {
		_ = s.process.Signal(syscall.SIGTERM)
	}
}

// duplicates returns a descriptor of its own for each listener, and the names that identify them in the new process.
// It omits a listener of ListenShared that was closed meanwhile.
func duplicates(endpoints []Endpoint) (files []*os.File, names []string, err error) {
	for _, p := range endpoints {
		f, err := duplicate(p)
		if err != nil {
			return files, nil, err
		}
		files, names = append(files, f), append(names, p.name)
	}
	for _, ln := range process.shared() {
		if f, err := duplicate(Endpoint{Listener: ln}); err == nil {
			files, names = append(files, f), append(names, "")
		}
	}
	return files, names, nil
}

// duplicate returns a descriptor of its own for a listener. It does not use the method File: os/exec would make the descriptor of
// that file blocking, and thereby the socket of this process, too.
func duplicate(p Endpoint) (*os.File, error) {
	sc, ok := p.Listener.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("a %T cannot be passed on", p.Listener)
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, dupErr := -1, error(nil)
	err = raw.Control(func(orig uintptr) { fd, dupErr = unix.FcntlInt(orig, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, dupErr); err != nil {
		return nil, fmt.Errorf("duplicate listener %s: %w", p.Addr(), err)
	}
	return os.NewFile(uintptr(fd), "listener"), nil
}

// successorEnv returns the environment of this process with the variables of inherit.
func successorEnv(names []string) []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{envFDs, envPID, envNames, envRestart}, name)
	})
	return append(env,
		fmt.Sprintf("%s=%d", envFDs, len(names)),
		fmt.Sprintf("%s=%s", envNames, strings.Join(names, ":")),
		fmt.Sprintf("%s=%d:%d:%d", envRestart, os.Getpid(), firstFD+len(names), firstFD+len(names)+1))
}
