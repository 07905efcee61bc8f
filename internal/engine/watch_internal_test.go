//go:build linux

package engine

import "testing"

// A call has waited if its goroutine was parked and it was not over at once. Computing and short delays do not count.
func TestWatchDistinguishesWaitingFromComputing(t *testing.T) {
	const long = 10 * shortWait
	for _, test := range []struct {
		name     string
		took     int64
		switches int64
		witness  int64
		want     bool
	}{
		{"thread slept", long, 1, 0, true},
		{"thread slept for the shortest wait", shortWait, 1, 0, true},
		{"thread slept for less", shortWait - 1, 1, 0, false},
		{"another thread", long, -7, 0, true},
		{"computes", long, 0, 0, false},
		{"computes while a witness has not run on its thread", long, 0, 4711, false},
		{"others had its thread", long, 0, witnessed, true},
		{"others had its thread for a moment", shortWait - 1, 0, witnessed, false},
	} {
		w := watch{began: 1000, switches: 100}
		if test.witness != 0 {
			w.witness = new(witness)
			w.thread.Store(test.witness)
		}
		if got := w.waited(1000+test.took, 100+test.switches); got != test.want {
			t.Errorf("%s: waited is %v", test.name, got)
		}
		if w.began != 0 || w.witness != nil && w.thread.Load() != 0 {
			t.Errorf("%s: the watch continues", test.name)
		}
	}
}
