//go:build linux

package scenario

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/dunlinhttp/dunlin/bench/internal/peer"
	"github.com/dunlinhttp/dunlin/bench/internal/results"
)

func TestTakes(t *testing.T) {
	for _, test := range []struct {
		scenario, peer string
		failed         map[string]string
		want           bool
	}{
		{"json", "chi", nil, true},
		{"json", "chi", map[string]string{"json": "status 404"}, false},
		{"json", "chi", map[string]string{"param": "status 404"}, true},
		{"json", "dunlin-16MiB", nil, false},
		{"users", "dunlin-16MiB", nil, true},
		{"users", "nginx", nil, false},
		{"overload", "chi", nil, false}, // runs on net/http's server, which has a row
		{"overload", "nethttp", nil, true},
		{"file", "dunlin-fromstd", nil, true},
		{"file", "dunlin", nil, false},
		{"json", "dunlin-fromstd", nil, false},
		{"tls-64", "dunlin-tls", nil, true},
		{"tls-64", "dunlin", nil, true},
		{"tls-flood", "nethttp-tls", nil, true},
		{"tls-flood", "dunlin", nil, false},
		{"tls-users", "dunlin-24MiB-tls", nil, true},
		{"tls-users", "hertz", nil, true},
		{"tls-64", "dunlin-24MiB-tls", nil, false},
		{"tls-idle-memory", "dunlin", nil, false},
		{"tls-64", "nethttp", nil, false},
		{"tls-bulk-up", "dunlin-bulk-tls", nil, true},
		{"tls-bulk-down", "dunlin-24MiB-bulk-tls", nil, true},
		{"tls-bulk-down", "nethttp-tls", nil, false},
		{"tls-64", "nethttp-bulk-tls", nil, false},
		{"json", "dunlin-tls", nil, false},
		{"h2-json", "dunlin-tls", nil, true},
		{"h2-json", "dunlin-h2", nil, true},
		{"h2-json", "nghttpd-h2", nil, false}, // it has files only
		{"h2-64", "nghttpd-h2", nil, true},
		{"h2-64", "dunlin-h2c", nil, false},
		{"h2c-16x32", "dunlin-h2c", nil, true},
		{"json", "dunlin-h2", nil, false},
		{"db", "dunlin-db", nil, true},
		{"db", "chi-db", map[string]string{"db": "row 7 has the number 1"}, false},
		{"db", "dunlin", nil, false},
		{"waits", "hertz-db", nil, true},
		{"mixed", "fasthttp-db", nil, true},
		{"json", "nethttp-db", nil, false},
		{"stages", "fiber-array", nil, true},
		{"stages", "fiber", nil, false},
		{"json", "fiber-array", nil, false},
	} {
		scenarios, err := Named([]string{test.scenario})
		if err != nil {
			t.Fatal(err)
		}
		peers, err := peer.Named([]string{test.peer})
		if err != nil {
			t.Fatal(err)
		}
		if got := scenarios[0].Takes(peers[0], test.failed); got != test.want {
			t.Errorf("%s with %s, failed checks %v: %v, want %v", test.scenario, test.peer, test.failed, got, test.want)
		}
	}
}

func TestGoroutineCounts(t *testing.T) {
	got := goroutineCounts("fiber ready on http://127.0.0.1:1\nnum go routine 7\nnum go routine 1005\nnum go rou")
	if !slices.Equal(got, []float64{7, 1005}) {
		t.Errorf("got counts %v, want 7 and 1005", got)
	}
}

func TestEveryMetricIsKnown(t *testing.T) {
	for _, s := range All {
		for _, key := range s.MetricKeys() {
			if _, known := results.MetricByKey(key); !known {
				t.Errorf("%s: metric %s is not in results.All", s.Name, key)
			}
		}
	}
}

func TestSettleWaitsForPendingParts(t *testing.T) {
	e := &Env{}
	done := false
	e.later(t.Context(), time.Nanosecond, func() error { done = true; return nil })
	if err := e.Settle(t.Context()); err != nil || !done {
		t.Errorf("Settle: got %v, done %v", err, done)
	}
	failure := errors.New("it has ended")
	e.later(t.Context(), time.Nanosecond, func() error { return failure })
	if err := e.Settle(t.Context()); !errors.Is(err, failure) {
		t.Errorf("Settle: got %v, want the failure", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stopped := false
	e.later(ctx, time.Hour, func() error { stopped = true; return nil })
	if err := e.Settle(ctx); !errors.Is(err, context.Canceled) || !stopped {
		t.Errorf("Settle of an interrupted run: got %v, stopped %v", err, stopped)
	}
}
