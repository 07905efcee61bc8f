//go:build linux

package proc_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

// patience is the time limit for steps that should be immediate on an idle machine.
const patience = 20 * time.Second

func TestRunReturnsOutput(t *testing.T) {
	out, err := proc.Run(t.Context(), shell("echo to stdout; echo to stderr >&2"))
	if err != nil {
		t.Fatal(err)
	}
	if out != "to stdout\nto stderr\n" {
		t.Errorf("got output %q", out)
	}
}

func TestRunNamesTheFailure(t *testing.T) {
	_, err := proc.Run(t.Context(), shell("echo first; echo the reason >&2; exit 3"))
	if err == nil || !strings.Contains(err.Error(), "the reason") {
		t.Errorf("got error %v, want the last line of the output in it", err)
	}
}

func TestCancelEndsProcessGroup(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p, child := startWithChild(t, ctx)
	cancel()
	p.Wait()
	waitGone(t, p.Pid)
	waitGone(t, child)
	if _, err := proc.Start(ctx, shell("true")); !errors.Is(err, context.Canceled) {
		t.Errorf("Start after the end: %v, want context.Canceled", err)
	}
}

func TestStopEndsProcessGroup(t *testing.T) {
	p, child := startWithChild(t, t.Context())
	p.Stop()
	waitGone(t, p.Pid)
	waitGone(t, child)
}

// A comparer that is killed cannot clean up: the kernel must.
func TestNothingOutlivesAKilledParent(t *testing.T) {
	if os.Getenv("PROC_TEST_PARENT") != "" {
		p, err := proc.Start(context.Background(), shell("echo ready; exec sleep 600"))
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("child " + strconv.Itoa(p.Pid) + "\n")
		p.Wait()
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent, err := proc.Start(t.Context(), proc.Command{
		Path: "/usr/bin/env",
		Args: []string{"PROC_TEST_PARENT=1", self, "-test.run=^" + t.Name() + "$"},
	})
	if err != nil {
		t.Fatal(err)
	}
	child := readPid(t, parent, "child ")
	syscall.Kill(parent.Pid, syscall.SIGKILL)
	parent.Wait()
	waitGone(t, child)
}

func TestCores(t *testing.T) {
	cores, pinned := proc.Assign()
	if !pinned {
		t.Skip("the test has only one core")
	}
	for _, cores := range [][]int{cores.Server, cores.Load} {
		out, err := proc.Run(t.Context(), proc.Command{
			Path: "/bin/sh", Args: []string{"-c", "grep Cpus_allowed_list /proc/self/status"}, Cores: cores,
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Fields(out)[1], strconv.Itoa(cores[0]); got != want {
			t.Errorf("got cores %s, want %s", got, want)
		}
	}
	if again, _ := proc.Assign(); len(again.Both) != 2 {
		t.Error("starting a pinned process pinned the test process")
	}
}

func TestUsage(t *testing.T) {
	p, err := proc.Start(t.Context(), shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo ready; read line"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	waitOutput(t, p, "ready")
	cpu, err := p.CPU()
	if err != nil {
		t.Fatal(err)
	}
	if cpu <= 0 {
		t.Errorf("got CPU time %v after a busy loop", cpu)
	}
	rss, err := p.RSS()
	if err != nil {
		t.Fatal(err)
	}
	peak, err := p.PeakRSS()
	if err != nil {
		t.Fatal(err)
	}
	if rss <= 0 || peak < rss {
		t.Errorf("got RSS %d and peak %d, want 0 < RSS ≤ peak", rss, peak)
	}
}

func TestCommandAsTyped(t *testing.T) {
	c := proc.Command{Path: "wrk", Args: []string{"-t1", "http://127.0.0.1/sleep?ms=10"}, Cores: []int{0, 1}}
	if got, want := c.String(), "taskset -c 0,1 wrk -t1 'http://127.0.0.1/sleep?ms=10'"; got != want {
		t.Errorf("got command %s, want %s", got, want)
	}
}

func shell(script string) proc.Command {
	return proc.Command{Path: "/bin/sh", Args: []string{"-c", script}}
}

func startWithChild(t *testing.T, ctx context.Context) (p *proc.Process, child int) {
	t.Helper()
	p, err := proc.Start(ctx, shell("sleep 600 & echo child $!; wait"))
	if err != nil {
		t.Fatal(err)
	}
	return p, readPid(t, p, "child ")
}

func readPid(t *testing.T, p *proc.Process, prefix string) int {
	t.Helper()
	out := waitOutput(t, p, prefix)
	_, rest, _ := strings.Cut(out, prefix)
	line, _, _ := strings.Cut(rest, "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatalf("got no pid in %q", out)
	}
	return pid
}

// waitOutput returns the output once it has a whole line that begins with prefix.
func waitOutput(t *testing.T, p *proc.Process, prefix string) string {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, rest, found := strings.Cut(p.Output(), prefix); found && strings.Contains(rest, "\n") {
			return p.Output()
		}
	}
	t.Fatalf("got no %q in the output %q", prefix, p.Output())
	return ""
}

func waitGone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if !proc.Alive(pid) {
			return
		}
	}
	t.Errorf("process %d still runs", pid)
}
