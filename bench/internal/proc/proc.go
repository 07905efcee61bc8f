//go:build linux

// Package proc runs the servers and load generators of a comparison: each on the cores it is
// given, in a process group of its own, and none outliving the comparer.
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

// stopGrace is how long a process may take to go after SIGTERM before it is killed.
const stopGrace = 2 * time.Second

// Command says what to run. Stdin stays open until the process is stopped.
type Command struct {
	Path  string
	Args  []string
	Dir   string
	Cores []int               // nil: wherever the kernel likes
	Out   io.Writer           // nil: kept for Output
	Env   []string            // besides this process's own
	As    *syscall.Credential // the user it runs as; nil: that of this process
	// Interrupt sends SIGINT after so long; 0: never.
	Interrupt time.Duration
}

// String is the command as a person would type it, the cores by taskset and the interrupt by timeout.
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

// Process is a started command.
type Process struct {
	Pid   int
	Stdin io.WriteCloser

	cmd  *exec.Cmd
	out  *syncBuffer
	done chan struct{}
	err  error // of Wait; set before done is closed
}

// Start runs c until it ends by itself, Stop is called or ctx is done. The process gets as many
// file descriptors as the hard limit allows.
func Start(ctx context.Context, c Command) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir = c.Dir
	if c.Env != nil {
		cmd.Env = append(os.Environ(), c.Env...)
	}
	cmd.WaitDelay = stopGrace // a grandchild may hold the output open
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
		p.signal(syscall.SIGKILL) // what it left behind
		close(p.done)
	}()
	return p, nil
}

// Run starts c, waits for it and returns what it wrote, on stdout and stderr.
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

// Wait returns when the process has ended, with its exit error.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Output is what the process has written so far.
func (p *Process) Output() string { return p.out.String() }

// Stop ends the process and whatever it started, and returns when it is gone.
func (p *Process) Stop() {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopGrace):
	}
	p.signal(syscall.SIGKILL)
	<-p.done
}

// signal reaches the whole process group. A group that is gone already is no error.
func (p *Process) signal(sig syscall.Signal) {
	syscall.Kill(-p.Pid, sig)
}

// Alive says whether a process exists and is no zombie.
func Alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, found := bytes.Cut(stat, []byte(") "))
	return found && len(state) > 0 && state[0] != 'Z'
}

// raiseFileLimit is best effort: a server that lacks descriptors shows it in its errors.
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

// maxOutput is how much of a process's output is kept; a server that logs every error can write more.
const maxOutput = 1 << 20

// syncBuffer collects output while others read it.
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
