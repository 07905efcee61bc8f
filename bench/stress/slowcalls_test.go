//go:build linux

package stress_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/load"
	"github.com/dunlinhttp/dunlin/stats"
)

// slowCallsLimit is the configured memory limit of the service, and slowCallsBar is the highest accepted use.
const (
	slowCallsLimit = "64MiB"
	slowCallsBar   = 72 * mb
)

// A route answers at once, except for one request in ten, which waits for a second, like a database under load. With
// thousands of clients, some hundred to thousands of actions wait at a time, also on the event loop. The memory stays within
// the limit, and collections are not much more frequent than with net/http's goroutines.
func TestSlowCalls(t *testing.T) {
	need(t, "wrk", "wrk")
	collections := map[string]float64{}
	for _, engine := range []string{"loop", "std"} {
		s := startService(t, nil, nil, "-engine", engine, "-memory", slowCallsLimit)
		pid, addr := s.serving()
		for range 19 { // the route has been quick so far, with few exceptions
			resp, err := ask(connect(t, addr), "/sometimes")
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%s: got %v (%v)", engine, resp, err)
			}
		}
		before := statsOf(t, addr)
		w := load.Wrk{Threads: 1, Connections: either(500, 2500), Path: "/sometimes"}
		got, err := w.Run(t.Context(), folders(t).Bench, addr, nil, either(2*time.Second, 15*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		after := statsOf(t, addr)
		collections[engine] = float64(after.Runtime.Collections-before.Runtime.Collections) / got.Duration.Seconds()
		t.Logf("%s: %d requests, p50 %v, p99 %v, %.1f collections a second, %d taken over; %d answered with 503, %d failed (bar: 0)", engine,
			got.Requests, got.P50, got.P99, collections[engine], after.Actions.Takeovers-before.Actions.Takeovers, got.Status, got.Connect+got.IO)
		if got.Connect+got.IO > 0 || got.Requests == 0 {
			t.Errorf("%s: got %d connections failed, %d reads or writes, of %d requests", engine, got.Connect, got.IO, got.Requests)
		}
		if engine == "loop" {
			atMost(t, "peak of resident memory of "+engine, resident(t, pid, "VmHWM"), slowCallsBar)
		} else {
			t.Logf("peak of resident memory of std: %.1f MB", float64(resident(t, pid, "VmHWM"))/mb)
		}
	}
	bar := max(1.5*collections["std"], 2) // a second, if std has hardly any
	t.Logf("collections a second: %.1f (bar: %.1f, 1.5 times those of std)", collections["loop"], bar)
	if *full && collections["loop"] > bar {
		t.Errorf("%.1f collections a second, more than %.1f", collections["loop"], bar)
	}
}

// statsOf returns the statistics of a service.
func statsOf(t *testing.T, addr string) (s stats.Snapshot) {
	t.Helper()
	resp, err := ask(connect(t, addr), "/stats")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &s); err != nil {
		t.Fatalf("its stats: status %s: got %v in %.100q", strconv.Itoa(resp.StatusCode), err, body)
	}
	return s
}
