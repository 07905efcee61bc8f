//go:build linux

package stress_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A group is a control group with a memory limit, below the group of this process. The kernel kills processes that exceed the
// limit.
type group struct {
	dir   string
	kills string // the file with the line "oom_kill n", the number of killed processes
}

// newGroup creates a control group, version 1 or 2. The error gives the reason if this is not possible.
func newGroup(t *testing.T, bytes int64) (*group, error) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	reason := errors.New("no control group has a controller for memory")
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		g, limit := &group{}, ""
		switch {
		case fields[1] == "memory":
			g.dir, g.kills, limit = filepath.Join("/sys/fs/cgroup/memory", fields[2]), "memory.oom_control", "memory.limit_in_bytes"
		case fields[0] == "0" && fields[1] == "":
			g.dir, g.kills, limit = filepath.Join("/sys/fs/cgroup", fields[2]), "memory.events", "memory.max"
		default:
			continue
		}
		g.dir = filepath.Join(g.dir, "holds-"+strconv.Itoa(os.Getpid()))
		if err := os.Mkdir(g.dir, 0o755); err != nil {
			reason = err
			continue
		}
		if err := os.WriteFile(filepath.Join(g.dir, limit), strconv.AppendInt(nil, bytes, 10), 0); err != nil {
			reason = errors.Join(err, os.Remove(g.dir))
			continue
		}
		t.Cleanup(func() { g.remove(t) })
		return g, nil
	}
	return nil, reason
}

// remove removes the group. Its processes must have ended.
func (g *group) remove(t *testing.T) {
	err := os.Remove(g.dir)
	for end := time.Now().Add(patience); err != nil && time.Now().Before(end); err = os.Remove(g.dir) {
		time.Sleep(10 * time.Millisecond) // the kernel may not have removed the last process yet
	}
	if err != nil {
		t.Errorf("remove a control group: %v", err)
	}
}

// enter returns a prefix for a command, with which it runs in the group from the start. The program is copied into the
// group's memory, so that its file counts too, as in a container.
func (g *group) enter() []string {
	const script = `echo $$ >"$0" && cp "$1" "$1.grouped" && program="$1.grouped" && shift && exec "$program" "$@"`
	return []string{"/bin/sh", "-c", script, filepath.Join(g.dir, "cgroup.procs")}
}

// peak returns the group's maximum memory use so far, in bytes.
func (g *group) peak(t *testing.T) (n int64) {
	t.Helper()
	for _, name := range []string{"memory.max_usage_in_bytes", "memory.peak"} {
		if text, err := os.ReadFile(filepath.Join(g.dir, name)); err == nil {
			if _, err := fmt.Sscan(string(text), &n); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return n
		}
	}
	return 0
}

// killed returns the number of processes in the group that the kernel has killed.
func (g *group) killed(t *testing.T) (n int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(g.dir, g.kills))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := bytes.Cut(text, []byte("oom_kill "))
	if _, err := fmt.Sscan(string(rest), &n); !found || err != nil {
		t.Fatalf("%s has no count of kills: %q", g.kills, text)
	}
	return n
}
