//go:build linux

package runner

import (
	"testing"
	"time"
)

func TestOthers(t *testing.T) {
	start := usage{at: time.Unix(0, 0), all: 100 * time.Second, ours: 10 * time.Second}
	for _, test := range []struct {
		name      string
		all, ours time.Duration
		want      float64
	}{
		{"alone", 110 * time.Second, 20 * time.Second, 0},
		{"half used by others", 120 * time.Second, 20 * time.Second, 0.5},
		{"interrupts counted as ours", 110 * time.Second, 21 * time.Second, 0},
	} {
		end := usage{at: time.Unix(10, 0), all: test.all, ours: test.ours}
		if got := start.others(end, 2); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
	if got := now(); got.all <= 0 || got.ours <= 0 || got.all < got.ours {
		t.Errorf("this machine: got %+v", got)
	}
}
