//go:build linux

// Package proc runs the servers and the load generators of a comparison. Each process runs on its assigned cores, in a
// process group of its own, which ends when this program ends.
package proc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stopGrace is the time between SIGTERM and SIGKILL.
const stopGrace = 2 * time.Second

// A Command describes a process. The stdin of the process stays open until the process is stopped.
type Command struct {
	Path  string
	Args  []string
	Dir   string
	Cores []int               // nil for all cores
	Out   io.Writer           // nil stores the output for Process.Output
	Env   []string            // in addition to the environment of this process
	As    *syscall.Credential // user of the process; nil for the current user
	// Interrupt is the time after which the process gets SIGINT. 0 means never.
	Interrupt time.Duration
}

// String returns the command as a line for a shell. The line uses taskset for the cores and timeout for the interrupt.
func (c Command) String() string {
	var words []string
	if c.Interrupt > 0 {
		words = append(words, "timeout", "-s", "INT", strconv.FormatFloat(c.Interrupt.Seconds(), 'f', -1, 64))
	}
	if len(c.Cores) > 0 {
		words = append(words, "taskset", "-c", strings.Trim(strings.ReplaceAll(fmt.Sprint(c.Cores), " ", ","), "[]"))
	}
	words = append(words, c.Path)
	for _, arg := range c.Args {
		if strings.ContainsAny(arg, " ?&*'") {
			arg = "'" + arg + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// Process is a command that was started.
type Process struct {
	Pid   int
	Stdin io.WriteCloser

	cmd  *exec.Cmd
	out  *syncBuffer
	done chan struct{}
	err  error // result of Wait; set before done is closed
}

// Start starts c, which runs until it ends, Stop is called or ctx is done. The process may open as many files as the hard
// limit permits.
func Start(ctx context.Context, c Command) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir = c.Dir
	if c.Env != nil {
		cmd.Env = append(os.Environ(), c.Env...)
	}
	cmd.WaitDelay = stopGrace // a process that c has started may keep the output open
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: c.As}
	p := &Process{cmd: cmd, out: &syncBuffer{}, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.out, p.out
	if c.Out != nil {
		cmd.Stdout = c.Out
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	p.Stdin = stdin
	if err := startOn(cmd, c.Cores); err != nil {
		stdin.Close()
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	p.Pid = cmd.Process.Pid
	raiseFileLimit(p.Pid)
	stopWatching := context.AfterFunc(ctx, func() { p.signal(syscall.SIGKILL) })
	var interrupt *time.Timer
	if c.Interrupt > 0 {
		interrupt = time.AfterFunc(c.Interrupt, func() { p.signal(syscall.SIGINT) })
	}
	go func() {
		p.err = cmd.Wait()
		stopWatching()
		if interrupt != nil {
			interrupt.Stop()
		}
		p.signal(syscall.SIGKILL) // ends the remaining processes of the group
		close(p.done)
	}()
	return p, nil
}

// Run starts c, waits for its end, and returns its output on stdout and stderr.
func Run(ctx context.Context, c Command) (string, error) {
	p, err := Start(ctx, c)
	if err != nil {
		return "", err
	}
	p.Stdin.Close()
	err = p.Wait()
	if ctx.Err() != nil {
		return p.Output(), ctx.Err()
	}
	if err != nil {
		return p.Output(), fmt.Errorf("%s: %w: %s", c.Path, err, lastLine(p.Output()))
	}
	return p.Output(), nil
}

// Wait waits until the process has ended, and returns its error.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Output returns the output of the process up to now.
func (p *Process) Output() string { return p.out.String() }

// Stop ends the process and its children. It returns when they have ended.
func (p *Process) Stop() {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopGrace):
	}
	p.signal(syscall.SIGKILL)
	<-p.done
}

// signal sends a signal to the process group. It is not an error if the group has already ended.
func (p *Process) signal(sig syscall.Signal) {
	syscall.Kill(-p.Pid, sig)
}

// Alive reports whether a process exists and is not a zombie.
func Alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, found := bytes.Cut(stat, []byte(") "))
	return found && len(state) > 0 && state[0] != 'Z'
}

// raiseFileLimit raises the number of files that a process may open. It ignores errors, because a server without enough
// descriptors reports errors itself.
func raiseFileLimit(pid int) {
	var limit unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit) == nil {
		limit.Cur = limit.Max
		unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil)
	}
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// maxOutput is the maximum size of the output that is stored, in bytes. A server that logs every error can write more.
const maxOutput = 1 << 20

// A syncBuffer stores output. It is safe for concurrent use.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if room := maxOutput - b.buf.Len(); room > 0 {
		b.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
