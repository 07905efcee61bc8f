//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

// TestMain lets the test program act as the command, for tests that end it.
func TestMain(m *testing.M) {
	if os.Getenv("COMPARE_TEST_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// A run may end by Ctrl-C, by a service manager or by a crash without cleanup: no
// server and no load generator stays.
func TestNothingStaysAfterAnInterrupt(t *testing.T) {
	if _, err := exec.LookPath("wrk"); err != nil {
		if os.Getenv("DUNLIN_REQUIRE_ALL") != "" {
			t.Fatal("DUNLIN_REQUIRE_ALL is set: wrk is not installed")
		}
		t.Skip("wrk is not installed")
	}
	for _, test := range []struct {
		signal syscall.Signal
		code   int // -1: ended by the signal
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 130}, {syscall.SIGHUP, 130}, {syscall.SIGKILL, -1}} {
		cmd := exec.Command(os.Args[0], "-scenario", "plaintext-64", "-peer", "floor", "-rounds", "1000000")
		cmd.Env = append(os.Environ(), "COMPARE_TEST_MAIN=1")
		status, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(status)
		for lines.Scan() && !strings.Contains(lines.Text(), "round 1 of") {
		}
		started := childrenOf(t, cmd.Process.Pid, 2) // the floor and wrk
		cmd.Process.Signal(test.signal)
		io.Copy(io.Discard, status)
		cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != test.code {
			t.Errorf("after %v: got exit code %d, want %d", test.signal, got, test.code)
		}
		for _, pid := range started {
			waitGone(t, pid, test.signal)
		}
	}
}

const patience = 20 * time.Second

// childrenOf waits until pid has at least count children, and returns them.
func childrenOf(t *testing.T, pid, count int) []int {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var children []int
		threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		for _, thread := range threads {
			list, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name()))
			for _, field := range strings.Fields(string(list)) {
				if child, err := strconv.Atoi(field); err == nil {
					children = append(children, child)
				}
			}
		}
		if len(children) >= count {
			return children
		}
	}
	t.Fatalf("got fewer than %d children of process %d", count, pid)
	return nil
}

func waitGone(t *testing.T, pid int, after syscall.Signal) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if !proc.Alive(pid) {
			return
		}
	}
	t.Errorf("after %v: process %d still runs", after, pid)
}
