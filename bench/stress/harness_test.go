//go:build linux

package stress_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dunlinhttp/dunlin/bench/internal/layout"
)

var full = flag.Bool("full", false, "measure in the sizes that are promised")

// patience is the time limit for steps that should be immediate on an idle machine.
const patience = 30 * time.Second

// either returns large in full runs, and small otherwise.
func either[T any](small, large T) T {
	if *full {
		return large
	}
	return small
}

// TestMain makes this process the subreaper of its descendants (prctl(2)), so it can read the exit code of a service that took
// over from another.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "holds: become the parent of orphans:", err)
		os.Exit(1)
	}
	code := m.Run()
	if dir, built := builds.dir, builds.dir != ""; built {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// missing ends a test because the machine lacks something: it skips the test, or fails it with DUNLIN_REQUIRE_ALL=1.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	why := fmt.Sprintf(format, args...)
	if os.Getenv("DUNLIN_REQUIRE_ALL") != "" {
		t.Fatalf("DUNLIN_REQUIRE_ALL is set: got %s", why)
	}
	t.Skip(why)
}

// soon waits until cond holds. It polls rarely, to leave the processors to the service.
func soon(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// need ends a test whose tool is not installed.
func need(t *testing.T, tool, debianPackage string) {
	t.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		missing(t, "%s is not installed (Debian package %s)", tool, debianPackage)
	}
}

func folders(t *testing.T) layout.Folders {
	t.Helper()
	f, err := layout.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// builds has the programs built so far, in a folder that is removed at the end of this process.
var builds struct {
	sync.Mutex
	dir string
}

// build returns the program of a package, built as a user would, with optional flags.
func build(t *testing.T, pkg string, flags ...string) string {
	t.Helper()
	builds.Lock()
	defer builds.Unlock()
	if builds.dir == "" {
		dir, err := os.MkdirTemp("", "holds")
		if err != nil {
			t.Fatal(err)
		}
		builds.dir = dir
	}
	program := filepath.Join(builds.dir, filepath.Base(pkg)+strings.Join(flags, ""))
	if _, err := os.Stat(program); err == nil {
		return program
	}
	args := append(append([]string{"build"}, flags...), "-o", program, pkg)
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Fatalf("build %s: got %v\n%s", pkg, err, out)
	}
	return program
}

const servicePackage = "github.com/dunlinhttp/dunlin/bench/stress/service"

// A service is the program of bench/stress/service, and the processes that took over from it.
type service struct {
	t     *testing.T
	first *exec.Cmd
	lines chan string // output lines of all processes; closed when the last one has ended
	log   *bytes.Buffer
}

// startService starts the service. It gets files as its descriptors 3 and higher, with LISTEN_PID set to its own process ID.
func startService(t *testing.T, env []string, files []*os.File, args ...string) *service {
	t.Helper()
	return startProgram(t, build(t, servicePackage), env, files, args...)
}

// startProgram starts a built service.
func startProgram(t *testing.T, program string, env []string, files []*os.File, args ...string) *service {
	t.Helper()
	args = append([]string{program}, args...)
	if len(files) > 0 {
		args = append([]string{"/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`}, args...)
	}
	out, outEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, first: exec.Command(args[0], args[1:]...), lines: make(chan string, 10_000), log: new(bytes.Buffer)}
	errs, errEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	inEnd, stdin, err := os.Pipe() // closing it ends all processes of the service
	if err != nil {
		t.Fatal(err)
	}
	s.first.Stdin, s.first.Stdout, s.first.Stderr = inEnd, outEnd, errEnd
	s.first.ExtraFiles, s.first.Env = files, append(os.Environ(), env...)
	s.first.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // the process and all its successors are one group, which is killed at the end
	if err := s.first.Start(); err != nil {
		t.Fatal(err)
	}
	_, _, _ = inEnd.Close(), outEnd.Close(), errEnd.Close()
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(s.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			s.lines <- scan.Text()
		}
	})
	reading.Go(func() { _, _ = s.log.ReadFrom(errs) })
	t.Cleanup(func() {
		_ = syscall.Kill(-s.first.Process.Pid, syscall.SIGKILL) // the remains of a failed test
		_ = s.first.Wait()
		reading.Wait()
		_, _, _ = stdin.Close(), out.Close(), errs.Close()
		if t.Failed() {
			t.Logf("the service logged:\n%s", s.log)
		}
	})
	return s
}

// await waits for a line that starts with word, and returns the other words of that line.
func (s *service) await(word string) []string {
	s.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case line, open := <-s.lines:
			if !open {
				s.t.Fatalf("the service ended without a line «%s»", word)
			}
			if words := strings.Fields(line); words[0] == word {
				return words[1:]
			}
		case <-limit:
			s.t.Fatalf("the service wrote no line «%s»", word)
		}
	}
}

// serving awaits the next process that serves a listener.
func (s *service) serving() (pid int, addr string) {
	s.t.Helper()
	words := s.await("serving")
	pid, err := strconv.Atoi(words[0])
	if err != nil {
		s.t.Fatal(err)
	}
	return pid, words[1]
}

// signal sends sig to one of the service's processes.
func (s *service) signal(pid int, sig syscall.Signal) {
	s.t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		s.t.Fatalf("send %v to process %d: %v", sig, pid, err)
	}
}

// exitCode waits for the end of one of the service's processes. A successor becomes a child of this process when its
// predecessor has ended.
func (s *service) exitCode(pid int) int {
	s.t.Helper()
	ended := make(chan *os.ProcessState, 1)
	go func() {
		defer close(ended)
		if pid == s.first.Process.Pid {
			_ = s.first.Wait() // the state has the error
			ended <- s.first.ProcessState
		} else if process, err := os.FindProcess(pid); err == nil {
			state, err := process.Wait()
			if err != nil {
				s.t.Errorf("wait for process %d: %v", pid, err)
			}
			ended <- state
		}
	}()
	select {
	case state := <-ended:
		if state != nil {
			return state.ExitCode()
		}
		s.t.Fatalf("process %d cannot be waited for", pid)
	case <-time.After(patience + 30*time.Second): // includes the time to drain
		s.t.Fatalf("process %d does not end", pid)
	}
	return 0
}
