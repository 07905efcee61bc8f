//go:build linux

package stress_test

import (
	"syscall"
	"testing"
	"time"
)

// ends returns the number of stops and restarts.
func ends() int { return either(1, 20) }

// underLoad is the time that a service runs under load before it is told to stop.
const underLoad = 300 * time.Millisecond

// callersPerBehaviour is the number of callers of each behaviour: more than two processors can serve.
const callersPerBehaviour = 12

// A service that is told to stop finishes its requests, and its exit code reports this.
func TestStopUnderLoad(t *testing.T) {
	for _, engine := range []string{"loop", "std"} {
		t.Run(engine, func(t *testing.T) {
			for range ends() {
				s := startService(t, nil, nil, "-engine", engine)
				pid, addr := s.serving()
				c := call(t, addr, callersPerBehaviour, 1)
				time.Sleep(underLoad)
				c.stopping.Store(true)
				s.signal(pid, syscall.SIGTERM)
				if code := s.exitCode(pid); code != 0 {
					t.Errorf("exit code %d", code)
				}
				c.wantAllAnswered()
			}
		})
	}
}

// A service that is told to restart is always reachable.
func TestRestartUnderLoad(t *testing.T) {
	for _, engine := range []string{"loop", "std"} {
		t.Run(engine, func(t *testing.T) {
			s := startService(t, nil, nil, "-engine", engine)
			pid, addr := s.serving()
			c := call(t, addr, callersPerBehaviour, ends()+1)
			for range ends() {
				time.Sleep(underLoad)
				pid = restart(t, s, pid, addr)
			}
			time.Sleep(underLoad)
			c.stopping.Store(true)
			s.signal(pid, syscall.SIGTERM)
			if code := s.exitCode(pid); code != 0 {
				t.Errorf("exit code %d at the end", code)
			}
			c.wantAllAnswered()
		})
	}
}

// restart replaces a process of the service by a new one, and returns the process ID of that.
func restart(t *testing.T, s *service, pid int, addr string) (next int) {
	t.Helper()
	s.signal(pid, syscall.SIGHUP)
	next, again := s.serving()
	if again != addr || next == pid {
		t.Fatalf("process %d serves %s after process %d served %s", next, again, pid, addr)
	}
	if code := s.exitCode(pid); code != 0 {
		t.Errorf("the process before exited with code %d", code)
	}
	return next
}

// The exit code reports unfinished requests.
func TestExitCodeOfUnfinished(t *testing.T) {
	for _, engine := range []string{"loop", "std"} {
		t.Run(engine, func(t *testing.T) {
			s := startService(t, nil, nil, "-engine", engine, "-drain", "100ms")
			pid, addr := s.serving()
			conn := connect(t, addr)
			if _, err := conn.Write([]byte("GET /sleep/60000" + keptAlive)); err != nil {
				t.Fatal(err)
			}
			if _, err := ask(connect(t, addr), "/pid"); err != nil { // by now the other runs
				t.Fatal(err)
			}
			s.signal(pid, syscall.SIGTERM)
			if code := s.exitCode(pid); code != 1 {
				t.Errorf("exit code %d, want 1", code)
			}
		})
	}
}
