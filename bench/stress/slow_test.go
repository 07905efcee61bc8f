//go:build linux

package stress_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/bench/internal/proc"
)

// Ordinary clients are served while slow ones hold as many connections as they can.
func TestSlowClients(t *testing.T) {
	need(t, "slowhttptest", "slowhttptest")
	// The rate of new connections is so high that their requests are not the main load.
	connections, perSecond, seconds := either(200, 5000), either(200, 500), either(1, 20)
	for _, c := range []struct {
		name string
		path string
		args []string
	}{
		{"headers", "/json", []string{"-H", "-i", "1"}},
		{"body", "/echo", []string{"-B", "-i", "1", "-s", "8192", "-t", "POST"}},
		{"read", listPath, []string{"-X", "-n", "1", "-z", "32", "-w", "10", "-y", "20", "-k", "3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, addr := startUsers(t, nil)
			slow, err := proc.Start(t.Context(), proc.Command{Path: "slowhttptest", Args: append(c.args,
				"-c", strconv.Itoa(connections), "-r", strconv.Itoa(perSecond), "-l", strconv.Itoa(seconds), "-p", "3",
				"-u", "http://"+addr+c.path)})
			if err != nil {
				t.Fatal(err)
			}
			defer slow.Stop()
			ordinary := load.OpenLoop{
				Addr: addr, Path: "/json", Rate: 200, Connections: 16,
				Duration: time.Duration(seconds) * time.Second, Patience: 2 * time.Second,
			}
			got, err := ordinary.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("beside %d slow connections: %d of %d answered (bar: all), p99 %v, p99.9 %v", connections, got.Answered.Count, got.Due, got.Answered.P99, got.Answered.P999)
			if got.Answered.Count != got.Due {
				t.Errorf("%d refused, %d answered otherwise, %d not at all", got.Rejected.Count, got.Other, got.Unanswered)
			}
			if err := slow.Wait(); err != nil {
				t.Errorf("slowhttptest: %v", err)
			}
			available := strings.Count(slow.Output(), "YES")
			t.Logf("slowhttptest looked %d times and found the service available %d times; %.1f MB of peak memory", available+strings.Count(slow.Output(), "NO\n"), available, float64(resident(t, p.Pid, "VmHWM"))/mb)
			if available == 0 || strings.Contains(slow.Output(), "\x1b[1;32mNO") {
				t.Errorf("slowhttptest did not find the service available:\n%s", slow.Output())
			}
		})
	}
}
